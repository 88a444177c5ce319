"""`bgrl describe FILE`: what a file or folder that bgrl made is, on one screen."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bgrl.cli.compose import Launch
from bgrl.cli.config import DescribeConfig
from bgrl.cli.record import RUN_FORMAT, read_record
from bgrl.errors import BgrlError, CorruptFile
from bgrl.files import read_json, read_object

Facts = dict[str, Any]


def run(config: DescribeConfig, launch: Launch) -> None:
    """Print what the file or folder is. Raises BgrlError when it is nothing that bgrl makes."""
    print(describe(config.path))


def describe(path: Path) -> str:
    """One screen of text about `path`.

    Raises BgrlError when there is no such file or it is nothing that bgrl makes, and CorruptFile or
    SchemaMismatch when it is, but damaged or of another version.
    """
    if not path.exists():
        raise BgrlError(f"{path}: no such file or folder")
    for recognize, tell in KINDS:
        if recognize(path):
            try:
                kind, facts = tell(path)
                return _screen(f"{path}: {kind}", facts)
            except (LookupError, TypeError, AttributeError, ValueError) as error:
                # Every file says what it is; what is behind that may be anything.
                raise CorruptFile(f"{path}: damaged, or not by bgrl: {error!r}") from error
    raise BgrlError(
        f"{path}: not a shard, generation, level, checkpoint, export, match or run of bgrl"
    )


def _shard(path: Path) -> tuple[str, Facts]:
    from bgrl.data import open_shard

    shard = open_shard(path)
    return "a shard of positions", {
        "positions": shard.rows,
        "games": shard.games,
        "truncated games": f"{shard.truncated_games:,}, which have no label and so no positions",
        **_origin(shard.meta),
        "row groups": shard.footer.num_row_groups,
        "size": _size(path.stat().st_size, shard.rows),
        "columns": ", ".join(
            f"{field.name} {field.type}" for field in shard.footer.schema.to_arrow_schema()
        ),
    }


def _generation(path: Path) -> tuple[str, Facts]:
    from bgrl.data import open_generation

    generation = open_generation(path)
    size = sum(shard.path.stat().st_size for shard in generation.shards)
    facts: Facts = {
        "shards": f"{len(generation.shards)}, whole, with the hashes of manifest.json",
        "positions": generation.rows,
        "games": generation.games,
        "truncated games": generation.truncated_games,
    }
    if generation.shards:
        facts |= _origin(generation.shards[0].meta)
        facts["size"] = _size(size, generation.rows)
    for skipped in generation.skipped:
        facts[f"left out {skipped.path.name}"] = skipped.reason
    return "a generation of self-play data", facts


def _reference(path: Path) -> tuple[str, Facts]:
    from bgrl.evaluate.reference import Reference

    reference = Reference.load(path)
    kinds = Counter(decision.kind for decision in reference.decisions)
    made = reference.made
    return "reference positions", {
        "decisions": len(reference.decisions),
        **{f"of kind {kind}": count for kind, count in kinds.most_common()},
        **{name: made[name] for name in ("judge", "seed", "command", "date")},
        "rolled out": sum(decision.rolled_out for decision in reference.decisions),
        **{f"rollouts' {name}": value for name, value in made.get("rollouts", {}).items()},
    }


def _is_reference(path: Path) -> bool:
    """Whether `path` is a Parquet file that says it holds reference positions."""
    from pyarrow import ArrowException, parquet

    if path.suffix != ".parquet" or not path.is_file():
        return False
    try:
        return parquet.read_schema(path).metadata.get(b"bgrl.schema") == b"reference"
    except (ArrowException, AttributeError, OSError):
        return False


def _origin(meta: Any) -> Facts:
    return {
        "variant": meta.variant,
        "played by net": meta.net,
        "generation": meta.generation,
        "run seed": meta.seed,
        "targets": (
            f"λ-returns, λ = {meta.lam:g}{', without the luck of the dice' if meta.exact else ''}"
        ),
        "written": meta.created,
    }


def _checkpoint(path: Path) -> tuple[str, Facts]:
    from bgrl.nets import load_net

    folder = path if path.is_dir() else path.parent
    net = load_net(folder)
    record = read_object(folder / "net.json")
    return "a checkpoint", {
        "net": net.hash,
        "variant": net.variant.name,
        "encoder": f"{net.encoder.name} version {net.encoder.version} ({net.encoder.hash})",
        "layers": net.weights().shape,
        "parameters": net.n_parameters,
        **record.get("made", {}),
    }


def _match(path: Path) -> tuple[str, Facts]:
    folder = path if path.is_dir() else path.parent
    identity = read_object(folder / "match.json")
    pairs = folder / "pairs.jsonl"
    lines = pairs.read_text().splitlines() if pairs.exists() else []
    return "a match", {**identity, "pairs played": sum('"outcomes"' in line for line in lines)}


def _run(path: Path) -> tuple[str, Facts]:
    folder = path if path.is_dir() else path.parent
    record = read_record(folder / "run.json")
    launches = record["launches"]
    git = launches[-1]["git"]
    commit = git["commit"][:12] + (" with changes" if git["diff"] else "") if git else "not known"
    facts: Facts = {
        "seed": record["seed"],
        "started": launches[0]["started"],
        "launches": f"{len(launches)}, the last {launches[-1]['started']}",
        "overrides": " ".join(launches[-1]["overrides"]) or "none",
        "commit": commit,
        "read": ", ".join(f"{k} ({v[:12]})" for k, v in record["read"].items()) or "nothing",
    }
    state = folder / "state.json"
    if state.exists():
        facts |= {k: v for k, v in read_object(state).items() if k not in ("format", "version")}
    result = folder / "result.json"
    if result.exists():
        found = read_object(result)
        facts["net"] = found["net"]
        for row in found["rows"]:
            match = row["match"]
            facts[f"against {row['opponent']}"] = (
                f"{points(match)} points a game in {match['games']:,} games"
                if match and match["games"]
                else row["reason"] or "no games"
            )
    for key, value in record["config"].items():
        section = isinstance(value, dict)
        facts[f"config {key}"] = (
            "  ".join(f"{k}={v}" for k, v in value.items()) if section else value
        )
    return f"a run of bgrl {record['stage']}", facts


def points(match: Mapping[str, Any]) -> str:
    """The points a game of a match that has games, with their error, which one pair has not."""
    error = match["standard_error"]
    return f"{match['ppg']:+.3f} ± " + ("?" if error is None else f"{error:.3f}")


def _onnx(path: Path) -> tuple[str, Facts]:
    from bgrl.export import describe_onnx

    return "an export", describe_onnx(path)


def _bundle(path: Path) -> tuple[str, Facts]:
    from bgrl.players.bundle import open_bundle

    bundle = open_bundle(path if path.is_dir() else path.parent)
    facts: Facts = {
        "written": f"{bundle.record['created']} by bgrl {bundle.record['bgrl']}",
        "licence": bundle.record["licence"],
        "files": f"{len(bundle.record['files'])}, whole, with the hashes of bundle.json",
    }
    for name, level in bundle.levels.items():
        how = _misses(level)
        strength = "".join(
            f", {name} {found.value:.1f} ± {found.error:.1f}"
            for name, found in _strength(level.measured)
        )
        facts[f"level {name}"] = (
            f"net {bundle.nets[name]}, {level.plies} plies{_pruned(level, bundle.pruners[name])}, "
            f"{how}, {level.style.name}{strength}"
        )
    for name, net in bundle.record["nets"].items():
        for storage, stored in net["stored"].items():
            size = bundle.record["files"][stored["files"][0]]["bytes"]
            loss = stored["loss"]
            facts[f"net {name} as {storage}"] = f"{stored['net']}, {size:,} bytes as ONNX" + (
                f", loses {loss['points_a_game']:+.4f} ± {loss['standard_error']:.4f} points a "
                f"game in {loss['games']:,} games"
                if loss
                else ""
            )
    return "a bundle of levels for apps", facts


def _level(path: Path) -> tuple[str, Facts]:
    from bgrl.players.level import read_level

    folder = path if path.is_dir() else path.parent
    level, net_folder, pruner = read_level(folder)
    facts: Facts = {
        "level": f"{level.name}, {level.plies} plies{_pruned(level, pruner and pruner.name)}, "
        f"{_misses(level)}, {level.style.name}",
        "plays the net of": net_folder.name,
    }
    for name, found in _strength(level.measured):
        facts[name] = f"{found.value:.1f} ± {found.error:.1f}"
    if level.measured:
        measured = level.measured
        facts["measured"] = f"{measured.date} with net {measured.net}: {measured.command}"
    if net_folder.resolve() == folder.resolve():
        facts |= _checkpoint(folder)[1]
    return "a level", facts


def _pruned(level: Any, pruner: Any) -> str:
    return f" pruned to {level.keep} by {pruner}" if pruner else ""


def _misses(level: Any) -> str:
    misses = level.misses
    return f"misses at rate {misses.rate:g}, scale {misses.scale:g}" if misses else "no misses"


def _strength(measured: Any) -> list[tuple[str, Any]]:
    found = [("rating", measured.rating), ("PR", measured.pr)] if measured else []
    return [(name, value) for name, value in found if value]


def _flat(path: Path) -> tuple[str, Facts]:
    from bgrl.nets.flat import read_flat

    weights = read_flat(path)
    return "a flat net", {
        "net": weights.hash,
        "variant": weights.variant.name,
        "encoder": f"{weights.encoder.name} version {weights.encoder.version}",
        "layers": weights.shape,
        "parameters": weights.n_parameters,
    }


def _bearoff(path: Path) -> tuple[str, Facts]:
    from bgrl.search.compact import CompactBearoff

    database = CompactBearoff.load(path)
    return "a one-sided bear-off database", {
        "checkers": database.description["checkers"],
        "homes": len(database.arrays.all_off),
        "size": f"{path.stat().st_size:,} bytes",
    }


def _has(name: str) -> Callable[[Path], bool]:
    """Recognizes a folder that holds the file `name`, and that file itself."""
    return lambda path: path.name == name or (path / name).is_file()


def _is_run(path: Path) -> bool:
    return _has("run.json")(path) and _format(path, "run.json") == RUN_FORMAT


def _format(path: Path, name: str) -> Any:
    record = read_json(path if path.name == name else path / name)
    return record.get("format") if isinstance(record, dict) else None


KINDS: tuple[tuple[Callable[[Path], bool], Callable[[Path], tuple[str, Facts]]], ...] = (
    (_is_reference, _reference),
    (lambda path: path.suffix == ".parquet" and path.is_file(), _shard),
    (lambda path: path.suffix == ".onnx" and path.is_file(), _onnx),
    (lambda path: path.suffix == ".bgnet" and path.is_file(), _flat),
    (lambda path: path.suffix == ".bgoff" and path.is_file(), _bearoff),
    (_has("bundle.json"), _bundle),
    (_is_run, _run),
    (_has("level.json"), _level),
    (_has("net.json"), _checkpoint),
    (lambda path: path.name == "net.safetensors", _checkpoint),
    (_has("match.json"), _match),
    (lambda path: (path / "manifest.json").is_file(), _generation),
)


def _size(size: int, rows: int) -> str:
    each = f", {size / rows:.1f} bytes a position" if rows else ""
    return f"{size:,} bytes{each}"


def _screen(title: str, facts: Facts) -> str:
    width = max(map(len, facts))
    lines = [title, ""]
    for name, value in facts.items():
        if isinstance(value, dict | list):
            value = json.dumps(value, ensure_ascii=False)
        text = f"{value:,}" if isinstance(value, int) and name != "run seed" else str(value)
        first, *rest = text.split("\n")
        lines.append(f"  {name:<{width}}  {first}".rstrip())
        lines += [f"    {line}" for line in rest]
    return "\n".join(lines)
