"""The command line: what it lists, how it fails, and that it writes nothing when it does."""

import json
import os
import re
import subprocess
import sys
import time

import pytest

from bgrl.cli.compose import compose, groups, positional, yaml_comments
from bgrl.cli.config import CONFIGS
from bgrl.cli.main import POSITIONAL, STAGES
from bgrl.errors import BgrlError
from bgrl.files import shipped

# Values for the keys that a stage has no default for.
REQUIRED = {
    "loop": ["name=x"],
    "selfplay": ["name=x"],
    "train": ["name=x", "data=[x]"],
    "evaluate": ["player=x"],
    "serve": ["player=x"],
    "calibrate": ["level=x"],
    "export": ["net=x"],
    "report": ["run=x"],
    "describe": ["path=x"],
}


def test_overview_lists_every_stage(run):
    for arguments in ([], ["--help"], ["-h"], ["help"]):
        status, out, err = run(*arguments)
        assert status == 0
        assert not err
        for stage, summary in STAGES.items():
            assert re.search(rf"^  {stage} +{re.escape(summary)}$", out, re.MULTILINE)


def test_overview_needs_no_torch_and_is_quick():
    code = (
        "import sys; from bgrl.cli.main import main; main(['--help']);"
        "print({'torch', 'numba', 'numpy', 'hydra'} & set(sys.modules))"
    )
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n")
    assert time.monotonic() - start < 3  # 0.05 s when nothing else runs


def test_python_dash_m():
    done = subprocess.run([sys.executable, "-m", "bgrl", "lop"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "bgrl: error: no stage 'lop'; did you mean 'loop'?; bgrl --help lists them\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lop"], "no stage 'lop'; did you mean 'loop'?"),
        (["loop"], "loop: name must be given: name=…"),
        (["loop", "name=x", "generatons=3"], "loop: unknown key 'generatons'; did you mean 'gener"),
        (["loop", "name=x", "net.hiden=[8]"], "unknown key 'net.hiden'; did you mean 'net.hidden'"),
        (["loop", "name=x", "zzzzzz=3"], "loop: unknown key 'zzzzzz'"),
        (["loop", "name=x", "hydra.run.dir=y"], "loop: unknown key 'hydra.run.dir'"),
        (["loop", "name=x", "seed=one"], "loop: seed: Value 'one' of type 'str' could not be conv"),
        (["loop", "name=x", "seed=1.5"], "loop: seed: Value '1.5' of type 'float' could not be co"),
        (["loop", "name=x", "seed=null"], "loop: seed: field 'seed' is not Optional"),
        (["loop", "name=x", "seed=1,2"], "loop: Ambiguous value for argument 'seed=1,2'"),
        (["loop", "name=x", "net.hidden=[8,a]"], "loop: net.hidden[1]: Value 'a' of type 'str'"),
        (["loop", "name=x", "net.hidden=8"], "loop: net.hidden: Invalid value assigned: int is n"),
        (["loop", "name=x", "net=8"], "loop: net: Invalid type assigned: int"),
        (["loop", "name=x", "gate.enabled=maybe"], "loop: gate.enabled: Value 'maybe' is not a"),
        (["loop", "name=${nme}"], "loop: Interpolation key 'nme' not found"),
        (["loop", "name=x", "seed=ü"], "loop: seed: Value 'ü' of type 'str' could not be conv"),
        (["loop", "name=x", "net.hidden=[8,ü]"], "loop: net.hidden[1]: Value 'ü' of type 'str'"),
        (["loop", "name=x", "größe=3"], "loop: unknown key 'größe'"),
        (["loop", "name="], "loop: name is empty"),
        (["loop", "name=''"], "loop: name is '', expected the name of a folder"),
        (["evaluate", "player=random", "folder="], "evaluate: folder is empty"),
        (["selfplay", "name=../../esc"], "selfplay: name is '../../esc', expected the name of a"),
        (["train", "name=/tmp/x", "data=[x]"], "train: name is '/tmp/x', expected the name of a"),
        (["loop", "name=."], "loop: name is '.', expected the name of a folder"),
        (["loop", "name=[1,"], "loop: no viable alternative at input '[1,'"),
        (["loop", "name=x", "level=quickstrt"], "no level 'quickstrt'; did you mean 'quickstart'"),
        (["loop", "first"], "loop: 'first' is not key=value"),
        (["loop", "name=x", "+depth=3"], "loop: '+depth=3' is not key=value"),
        (["loop", "name=x", "~seed"], "loop: '~seed' is not key=value"),
        (["loop", "--multirun"], "loop: unknown option '--multirun'"),
        (["describe"], "describe: path must be given"),
        (["describe", "a", "b"], "describe: takes one path, not 2"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(run, tmp_path, arguments, message):
    status, out, err = run(*arguments)
    assert status == 2
    assert out == ""
    assert err.startswith("bgrl: error: ")
    assert message in err
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_debug_keeps_the_traceback(run, monkeypatch):
    monkeypatch.setenv("BGRL_DEBUG", "1")
    with pytest.raises(BgrlError):
        run("lop")


def test_interrupt_is_status_130(run, monkeypatch):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("bgrl.cli.main.dispatch", interrupted)
    assert run("loop") == (130, "", "bgrl: interrupted\n")


def test_a_full_disk_is_one_line():
    """The output is still in Python's buffer when the stage ends."""
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "bgrl", "--help"]
        buffered = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=buffered)
    assert done.returncode == 2
    assert done.stderr == "bgrl: error: standard output: No space left on device\n"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(28, "No space left on device", "a/b"), "a/b: No space left on device"),
        (OSError(98, "Address already in use"), "Address already in use"),
        (OSError("two\nlines"), "two lines"),
    ],
)
def test_an_error_of_the_system_is_one_line(run, monkeypatch, error, line):
    def failing(arguments):
        raise error

    monkeypatch.setattr("bgrl.cli.main.dispatch", failing)
    assert run("loop") == (2, "", f"bgrl: error: {line}\n")
    monkeypatch.setenv("BGRL_DEBUG", "1")
    with pytest.raises(OSError, match=str(error.args[-1])):
        run("loop")


def test_cfg_prints_the_resolved_config(run, tmp_path):
    status, out, _ = run("loop", "level=quickstart", "seed=7", "--cfg")
    assert status == 0
    assert "seed: 7\n" in out
    assert f"folder: {tmp_path}/data/runs/quickstart\n" in out
    assert list(tmp_path.iterdir()) == []


def test_shipped_checkpoints_are_found_from_anywhere(run, tmp_path):
    _, out, _ = run("loop", "name=x", "start=checkpoints/hard", "--cfg")
    assert f"start: {shipped('checkpoints')}/hard\n" in out
    # What is there comes first, and what is nowhere is looked for here.
    (tmp_path / "checkpoints" / "hard").mkdir(parents=True)
    for name in ("hard", "nowhere"):
        _, out, _ = run("loop", "name=x", f"start=checkpoints/{name}", "--cfg")
        assert f"start: {tmp_path}/checkpoints/{name}\n" in out


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_has_types_values_and_comments(stage):
    assert stage in CONFIGS
    text = (shipped("configs") / f"{stage}.yaml").read_text()
    first, second, *_ = text.splitlines()
    assert first.startswith(f"# bgrl {stage}")
    assert second.startswith(f"# bgrl {stage} ")
    assert first != second
    launch = compose(stage, REQUIRED.get(stage, []))
    assert isinstance(launch.config, CONFIGS[stage])
    # Plain data, which any process and any logger takes (cases H03, H04).
    assert json.loads(json.dumps(launch.resolved)) == launch.resolved

    def leaves(config, prefix=""):
        for key, value in config.items():
            if isinstance(value, dict):
                yield from leaves(value, f"{prefix}{key}.")
            else:
                yield prefix + key

    assert set(leaves(launch.resolved)) <= set(yaml_comments(text))


@pytest.mark.parametrize("stage", STAGES)
def test_the_launch_lines_of_every_config_compose(stage):
    files = [shipped("configs") / f"{stage}.yaml"]
    for group, choices in groups(stage).items():
        files += [shipped("configs") / group / f"{choice}.yaml" for choice in choices]
    for file in files:
        lines = [line for line in file.read_text().splitlines() if line.startswith("# bgrl ")]
        assert len(lines) >= 2, file
        for line in lines:
            _, _, named, *overrides = line.split()
            assert named == stage
            if named in POSITIONAL:
                overrides[0] = positional(named, POSITIONAL[named], overrides[0])
            compose(stage, overrides)


@pytest.mark.parametrize("stage", STAGES)
def test_help_shows_every_option_with_its_comment(run, stage):
    status, out, _ = run(stage, "--help")
    assert status == 0
    assert out.startswith(f"bgrl {stage}: {STAGES[stage]}\n")
    comments = yaml_comments((shipped("configs") / f"{stage}.yaml").read_text())
    for key, comment in comments.items():
        name = key.split(".")[-1]
        assert re.search(rf"^ +{name}: .*# {re.escape(comment)}$", out, re.MULTILINE)


def test_help_shows_the_values_of_a_preset(run):
    _, plain, _ = run("loop", "--help")
    _, preset, _ = run("loop", "level=quickstart", "--help")
    assert re.search(r"^  name: \?\?\? ", plain, re.MULTILINE)
    assert re.search(r"^  name: quickstart ", preset, re.MULTILINE)
    assert re.search(r"^Presets: level=.*\bquickstart\b", plain, re.MULTILINE)


def test_any_file_name_can_be_described(run, tmp_path):
    name = "it's (1), a=b{}.txt"
    (tmp_path / name).write_text("hello")
    status, _, err = run("describe", name)
    assert status == 2
    assert name in err


@pytest.mark.parametrize(
    "text",
    [
        "ünet",
        "a#b",
        "nets(1)/net",
        "a=b",
        "x~1",
        "1e3",
        "true",
        "0x10",
        "it's",
        "a b",
        "a,b",
        "-1",
        "a\\b",
        "a\\",
        "\\'",
        "100%",
        "a:b",
        "a&b!",
        "a]",
        '"',
        "@a",
        "a{1}",
    ],
)
def test_a_name_or_path_stays_the_text_it_is(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    config = compose("loop", [f"name={text}", f"start={text}"]).config
    assert (config.name, config.start) == (text, tmp_path / text)
    assert config.folder == tmp_path / "data" / "runs" / text
    assert str(compose("export", [f"level={text}"]).config.level) == text
    if "," not in text and not text.startswith('"'):
        listed = [f"players=[{text}, pubeval]", f"engines=[{text}]"]
        config = compose("verify", listed).config
        assert (config.players, config.engines) == ([text, "pubeval"], [text])


def test_what_is_quoted_null_or_interpolated_stays_that(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = compose("evaluate", ["player='a, b'", 'opponent="#"', "luck=null"]).config
    assert (config.player, config.opponent, config.luck) == ("a, b", "#", None)
    config = compose("ladder", ["players=['a,b', \"c\" , d]", "folder=x-${seed}", "seed=3"]).config
    assert (config.players, config.folder) == (["a,b", "c", "d"], tmp_path / "x-3")
    assert compose("train", ["name=x", "data=[]"]).config.data == []


def test_no_preset_is_null(run):
    plain, null = (run("loop", "name=x", *level, "--cfg") for level in ([], ["level=null"]))
    assert plain == null
    assert run("loop", "level=hard", "level=null", "name=x", "--cfg") == plain


def test_h01_paths_are_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert str(compose("describe", ["path=a/b"]).config.path) == f"{tmp_path}/a/b"
    for path in ("~/b", "'~/b'"):
        assert str(compose("describe", [f"path={path}"]).config.path) == "/home/me/b"
