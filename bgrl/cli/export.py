"""`bgrl export`: levels or a net as a bundle for apps."""

from collections.abc import Iterator
from pathlib import Path

from bgrl.cli.compose import Launch
from bgrl.cli.config import ExportConfig
from bgrl.cli.nets import cores
from bgrl.errors import BgrlError
from bgrl.evaluate import luck_evaluator, play_match
from bgrl.export import Loss, export_levels, record_losses
from bgrl.files import shipped
from bgrl.nets import Weights
from bgrl.players.bundle import FLAT_SUFFIX, Bundle, load_exported, open_bundle
from bgrl.players.level import Level, read_level
from bgrl.players.registry import is_level


def run(config: ExportConfig, launch: Launch) -> None:
    """Write the bundle and print what it holds and how the comparison went."""
    if (config.net is None) == (config.level is None):
        raise BgrlError("export: give net=FOLDER or level=NAME (or level=all), and not both")
    if config.games < 0 or config.games % 2:
        raise BgrlError(f"export: games is {config.games}, expected an even number from 0")
    if config.net is None:
        levels, pruners = shipped_levels(shipped("checkpoints"), config.level or "")
    else:
        levels, pruners = [(Level("net"), Weights.load(config.net))], {}
    print(
        export_levels(
            levels,
            config.folder,
            config.positions,
            config.seed,
            config.coreml,
            smaller=dict(_smaller(entry) for entry in config.small),
            pruners=pruners,
        )
    )
    if config.games:
        workers = cores() if config.workers is None else config.workers
        losses = {}
        for (net, storage), loss in measured_losses(
            open_bundle(config.folder), config.games, config.seed, workers
        ):
            losses[net, storage] = loss
            print(
                f"{net} as {storage}: loses {loss.points_a_game:+.4f} ± {loss.standard_error:.4f} "
                f"points a game in {loss.games:,} games",
                flush=True,
            )
        record_losses(config.folder, losses)


def _smaller(entry: str) -> tuple[str, Weights]:
    level, colon, folder = entry.partition(":")
    if not colon:
        raise BgrlError(f"export: small has {entry!r}, expected LEVEL:FOLDER")
    return level, Weights.load(folder)


def measured_losses(
    bundle: Bundle, games: int, seed: int, workers: int
) -> Iterator[tuple[tuple[str, str], Loss]]:
    """((net, how it is stored), its loss) for every file but the full nets.

    Each plays ``games`` games against the full net of its level, in pairs with the same dice and
    the seats swapped, less the luck as the full net sees it.
    """
    for net, record in bundle.record["nets"].items():
        source = record["smaller_than"] or net
        full = load_exported(bundle.folder / f"{source}{FLAT_SUFFIX}")
        for storage in record["stored"]:
            if net == source and storage == "float32":
                continue
            stem = net if storage == "float32" else f"{net}.{storage}"
            match = play_match(
                full,
                load_exported(bundle.folder / f"{stem}{FLAT_SUFFIX}"),
                games // 2,
                seed,
                variant=full.variant,
                luck=luck_evaluator(full),
                workers=workers,
                label=stem,
            )
            yield (net, storage), Loss(match.ppg, match.standard_error, match.games, seed)


def shipped_levels(
    checkpoints: Path, wanted: str
) -> tuple[list[tuple[Level, Weights]], dict[str, Weights]]:
    """The level called `wanted` in `checkpoints`, or all of them, with their nets; and by level
    the net that prunes its search.

    From the weakest to the strongest by what was measured; those not measured come last. Raises
    BgrlError for an unknown level, and as :func:`bgrl.players.level.read_level` does.
    """
    known = sorted(folder.name for folder in checkpoints.iterdir() if is_level(folder))
    if not known or wanted not in (*known, "all"):
        raise BgrlError(f"no level {wanted!r} in {checkpoints}; it has {known or 'none yet'}")
    levels = []
    pruners = {}
    for name in known if wanted == "all" else [wanted]:
        level, net, pruner = read_level(checkpoints / name)
        levels.append((level, Weights.load(net)))
        if pruner:
            pruners[name] = Weights.load(pruner)
    return sorted(levels, key=lambda entry: _rating(entry[0])), pruners


def _rating(level: Level) -> float:
    rating = level.measured and level.measured.rating
    return rating.value if rating else float("inf")
