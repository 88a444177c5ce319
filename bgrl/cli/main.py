"""The dispatcher: finds the stage, composes its config, runs it, and reports errors as one line."""

import difflib
import importlib
import os
import sys
from collections.abc import Sequence

from bgrl.errors import BgrlError

STAGES = {
    "loop": "self-play, train, evaluate, keep the better net; generation after generation",
    "selfplay": "play games with a net and write them as training data",
    "train": "train a net on self-play data",
    "evaluate": "play a match between two players",
    "ladder": "rate players by a round robin",
    "calibrate": "set a level to a wanted rating or PR by measuring it",
    "errors": "measure how much players err, by kind of position",
    "reference": "build the reference positions that errors are measured by",
    "export": "write a net as ONNX and prove that it gives the same answers",
    "demo": "play against exported bots in the browser",
    "serve": "offer a player to the program gnubg, as its external player",
    "report": "show a run's learning curve and positions as one HTML file",
    "describe": "say what a file or folder is",
    "verify": "compare our rules with other engines' on many positions",
    "bench": "measure how fast and how small bgrl is here, beside other engines",
    "bearoff": "build the bear-off databases",
}

# Stages whose first argument may be bare: the key that it sets.
POSITIONAL = {"describe": "path", "verify": "what", "report": "run", "bench": "what"}
# Options of a stage beside --help and --cfg: the override that each is short for.
SWITCHES = {"bench": {"--profile": "profile=true"}}

USAGE_ERROR, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status.

    0: done; 2: an error that the user can mend or that the system names (a full disk), said in one
    line on standard error; 130: interrupted. With BGRL_DEBUG=1 in the environment errors keep their
    traceback.
    """
    try:
        dispatch(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
        return 0
    except BgrlError as error:
        if os.environ.get("BGRL_DEBUG") == "1":
            raise
        print("bgrl: error:", " ".join(str(error).split()), file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        print("bgrl: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output (head, less) has seen enough.
        _drop_output()
        return 0
    except OSError as error:
        if os.environ.get("BGRL_DEBUG") == "1":
            raise
        where, what = _where(error), " ".join(str(error.strerror or error).split())
        print("bgrl: error:", f"{where}: {what}" if where else what, file=sys.stderr)
        return USAGE_ERROR


def _where(error: OSError) -> str | None:
    """The file that an error of the system is about, as far as that is known."""
    if error.filename is not None:
        return str(error.filename)
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()
        return "standard output"
    return None


def _drop_output() -> None:
    """Send what Python has not written yet nowhere, lest it fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def dispatch(arguments: list[str]) -> None:
    """Run one command. Raises BgrlError."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(overview())
        return
    stage, *rest = arguments
    if stage not in STAGES:
        raise BgrlError(f"no stage {stage!r}{suggestion(stage, STAGES)}; bgrl --help lists them")

    switches = SWITCHES.get(stage, {})
    flags = [argument for argument in rest if argument.startswith("-")]
    overrides = [argument for argument in rest if not argument.startswith("-")]
    overrides += [switches[flag] for flag in flags if flag in switches]
    for flag in flags:
        if flag not in ("-h", "--help", "--cfg", *switches):
            there_are = " and ".join(["--help", "--cfg", *switches])
            raise BgrlError(f"{stage}: unknown option {flag!r}; there are {there_are}")

    # Imported here, since composing a config takes longer than listing the stages may.
    from bgrl.cli import compose

    if stage in POSITIONAL:
        key = POSITIONAL[stage]
        bare = 1 + sum("=" not in argument for argument in overrides[1:])
        if bare > 1:
            raise BgrlError(f"{stage}: takes one {key}, not {bare}")
        overrides[:1] = [compose.positional(stage, key, argument) for argument in overrides[:1]]
    if "-h" in flags or "--help" in flags:
        print(compose.stage_help(stage, STAGES[stage], overrides))
        return
    launch = compose.compose(stage, overrides)
    if "--cfg" in flags:
        print(compose.to_yaml(launch.resolved), end="")
        return
    importlib.import_module(f"bgrl.cli.{stage}").run(launch.config, launch)


def overview() -> str:
    """The text of `bgrl --help`."""
    lines = ["usage: bgrl <stage> [key=value ...]", "", "stages:"]
    lines += [f"  {stage:<10} {summary}" for stage, summary in STAGES.items()]
    lines += ["", "bgrl <stage> --help shows its options, --cfg the config that it would run with."]
    return "\n".join(lines)


def suggestion(word: str, known: Sequence[str] | dict) -> str:
    """`; did you mean 'x'?` for the known word nearest to `word`, or nothing when none is near."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""
