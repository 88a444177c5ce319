"""Players by name."""

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bgrl.errors import BgrlError
from bgrl.files import shipped
from bgrl.game import BACKGAMMON, Variant
from bgrl.players.player import Player
from bgrl.players.style import STYLES, Style

if TYPE_CHECKING:
    from bgrl.players.level import Level

GNUBG_PROGRAM = re.compile(r"gnubg_program_([0-3])ply")
GNUBG = re.compile(r"gnubg(107)?_([0-3])ply")
SAGE = re.compile(r"sage_([0-2])ply")
SEARCH = re.compile(r"(.+)@([0-3])ply")
ADAPTIVE = re.compile(r"adaptive@(\d+(?:\.\d+)?)")
STYLED = re.compile(rf"(.+)@({'|'.join(STYLES)})")


def load_player(spec: str | Path, variant: Variant = BACKGAMMON) -> Player:
    """The player that `spec` names.

    "random"; "pubeval"; "gnubg_0ply" to "gnubg_3ply" (GNU Backgammon, the extra `gnubg`);
    "gnubg107_0ply" to "gnubg107_3ply" (with its pruning nets, faster) and "sage_0ply" to
    "sage_2ply" (Sage), both of the extra `engines`; "gnubg_program_0ply" to "gnubg_program_3ply"
    (the program gnubg, installed on the machine); a level in checkpoints/, or the folder of a
    level or checkpoint; "NET@2ply" (0 to 3), where NET is one that plays by itself, which looks
    ahead and bears off by the databases in data/bearoff, built there if need be; "LEVEL@cautious",
    which plays a level in a style; BUNDLE/LEVEL, or the bundle alone if it has one level; or a
    flat net (.bgnet). Plies count as GNU Backgammon counts them.

    Raises BgrlError, naming what there is, for anything else, or with the line that installs the
    missing program; MissingExtra with the one that installs a missing package; CorruptFile,
    SchemaMismatch and EncoderMismatch for a level or net that can't be loaded.
    """
    text = str(spec)
    if text == "random":
        from bgrl.players.random import RandomPlayer

        return RandomPlayer(variant)
    if text == "pubeval":
        from bgrl.players.pubeval import PubevalPlayer

        return PubevalPlayer(variant)
    if match := GNUBG.fullmatch(text):
        from bgrl.players.gnubg import Gnubg107Player, GnubgPlayer

        return (Gnubg107Player if match[1] else GnubgPlayer)(int(match[2]), variant)
    if match := GNUBG_PROGRAM.fullmatch(text):
        from bgrl.players.gnubg_program import GnubgProgramPlayer

        return GnubgProgramPlayer(int(match[1]), variant)
    if match := SAGE.fullmatch(text):
        from bgrl.players.sage import SagePlayer

        return SagePlayer(int(match[1]), variant)
    levels = shipped("checkpoints")
    if match := SEARCH.fullmatch(text):
        return _search_player(match[1], int(match[2]), variant)
    if match := ADAPTIVE.fullmatch(text):
        return _adaptive_player(text, float(match[1]), levels, variant)
    if match := STYLED.fullmatch(text):
        return _styled_player(match[1], STYLES[match[2]], variant)
    for folder in (Path(text), levels / text):
        if is_level(folder):
            from bgrl.players.level import read_level

            return _level_player(*read_level(folder), variant)
    if text.endswith(".bgnet") or any(is_bundle(f) for f in (text, Path(text).parent)):
        from bgrl.players.bundle import load_exported

        return load_exported(Path(text), variant)
    raise BgrlError(f"unknown player {text!r}: {_known(levels)}, or a checkpoint or bundle folder")


def _search_player(spec: str, plies: int, variant: Variant) -> Player:
    from bgrl.players.net import NetPlayer
    from bgrl.players.search import SearchPlayer
    from bgrl.search import Bearoff, Searcher

    player = load_player(spec, variant)
    if type(player) is not NetPlayer:
        raise BgrlError(f"{spec!r} is no net that could look {plies} plies ahead")
    return SearchPlayer(
        Searcher(player.net, plies, bearoff=Bearoff.open()), f"{player.name}@{plies}ply"
    )


def _styled_player(spec: str, style: Style, variant: Variant) -> Player:
    from bgrl.players.level import Level, LevelPlayer, level_player
    from bgrl.players.net import NetPlayer

    player = load_player(spec, variant)
    name = f"{player.name}@{style.name}"
    bearoff = pruner = None
    if isinstance(player, LevelPlayer):
        level, search = player.level, player.searcher
        net, bearoff = search.net, search.bearoff
        pruner = search.pruner.net if search.pruner else None
    elif isinstance(player, NetPlayer):
        level, net = Level(player.name), player.net
    else:
        raise BgrlError(f"{spec!r} is no level or net that could play in a style")
    return level_player(replace(level, name=name, style=style, measured=None), net, bearoff, pruner)


def _adaptive_player(name: str, pr: float, levels: Path, variant: Variant) -> Player:
    from bgrl.players.adaptive import adapt
    from bgrl.players.level import read_level

    known = [read_level(folder) for folder in sorted(levels.glob("*")) if is_level(folder)]
    level, (net, pruner) = adapt(pr, [(level, (net, pruner)) for level, net, pruner in known])
    return _level_player(replace(level, name=name), net, pruner, variant)


def _level_player(level: "Level", net: Path, pruner: Path | None, variant: Variant) -> Player:
    from bgrl.nets import FastNet
    from bgrl.players.level import level_player
    from bgrl.players.net import NetPlayer

    small = FastNet.load(pruner) if pruner else None
    return level_player(level, NetPlayer.load(net, variant).net, pruner=small)


def is_level(folder: str | Path) -> bool:
    """Whether `folder` holds a level or a net (see ``bgrl.players.level.read_level``)."""
    return any((Path(folder) / name).is_file() for name in ("level.json", "net.json"))


def is_bundle(folder: str | Path) -> bool:
    """Whether `folder` holds levels exported for apps (see ``bgrl.players.bundle``)."""
    return (Path(folder) / "bundle.json").is_file()


def _known(levels: Path) -> str:
    engines = (("gnubg", 3), ("gnubg107", 3), ("sage", 2), ("gnubg_program", 3))
    names = ["random", "pubeval", *(f"{name}_0ply to {name}_{most}ply" for name, most in engines)]
    names += sorted(folder.name for folder in levels.glob("*") if is_level(folder))
    return "known are " + ", ".join(names)
