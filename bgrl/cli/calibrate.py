"""`bgrl calibrate`: a level of a wanted strength, by measured play."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bgrl.cli.compose import Launch
from bgrl.cli.config import CalibrateConfig
from bgrl.cli.nets import cores
from bgrl.errors import BgrlError
from bgrl.evaluate import luck_evaluator, play_match
from bgrl.evaluate.calibrate import MissErrors, find_scale, nearest
from bgrl.evaluate.errors import ALL, PR, measure
from bgrl.evaluate.ratings import FIBS, ONE_POINT, one_point, rate
from bgrl.evaluate.reference import Reference
from bgrl.evaluate.stats import error_text
from bgrl.files import shipped
from bgrl.game import BACKGAMMON
from bgrl.nets import FastNet
from bgrl.players import EquityPlayer, Player, load_player
from bgrl.players.level import (
    Level,
    LevelPlayer,
    Measured,
    MeasuredPr,
    MeasuredRating,
    Misses,
    checkpoint_beside,
    level_player,
    read_level,
    write_level,
)
from bgrl.players.registry import is_level
from bgrl.players.style import style_named
from bgrl.search import Pruner

# Overrides that change nothing about the level.
FREE_KEYS = ("workers=", "folder=")
# How near a trial has to come, a rating on the FIBS scale; the check's error is what the level's
# rating is known to.
RATING_TOLERANCE, PR_TOLERANCE = 4.0, 0.02
# The scale of misses that is tried first where a level has none yet.
START = 0.05


def run(config: CalibrateConfig, launch: Launch) -> None:
    """Search for the misses that the wanted strength needs, measure, and write the level."""
    _check(config)
    folder = Path(config.level)
    if len(folder.parts) == 1:
        folder = shipped("checkpoints") / folder
    level, net, pruner = _before(config, folder.resolve())
    weights = FastNet.load(checkpoint_beside(folder, "net", net, "calibrate"))
    small = None
    if pruner is not None:
        small = FastNet.load(checkpoint_beside(folder, "pruner", pruner, "calibrate"))
    if config.pr is not None and weights.variant != BACKGAMMON:
        raise BgrlError(
            f"calibrate: pr is {config.pr:g}, but it is measured on positions of backgammon, "
            f"and net {net!r} plays {weights.variant.name}"
        )
    calibration = Calibration(config, level, weights, small)
    if config.rating is not None:
        level = calibration.to_rating(config.rating)
    elif config.pr is not None:
        level = calibration.to_pr(config.pr)
    elif level.misses is not None:
        level = calibration.with_scale(level.misses.scale)
    given = [one for one in launch.overrides if not one.startswith(FREE_KEYS)]
    measured = calibration.measured(level, " ".join(["bgrl calibrate", *given]))
    level = replace(level, measured=measured)
    path = write_level(level, folder, net, pruner)
    print(_text(level, config))
    print(path)


class Calibration:
    """The measurements of one command, each level with the same nets."""

    def __init__(self, config: CalibrateConfig, level: Level, net: FastNet, pruner: FastNet | None):
        self.config = config
        self.level = level
        self.net = net
        self.pruner = pruner
        self.anchor = load_player(config.anchor, net.variant)
        self.workers = cores() if config.workers is None else config.workers
        self.luck = None
        if config.luck is not None:
            judge = load_player(config.luck, net.variant)
            if not isinstance(judge, EquityPlayer):
                raise BgrlError(f"calibrate: luck={config.luck} estimates no equities")
            self.luck = luck_evaluator(judge, ONE_POINT)
        self.reference = Reference.load(None)

    def player(self, level: Level) -> EquityPlayer:
        """The player of a level."""
        return level_player(level, self.net, pruner=self.pruner)

    def with_scale(self, scale: float) -> Level:
        """The level with misses of such a scale."""
        before = self.level.misses or Misses(1.0, scale)
        rate, depth = self.config.miss_rate, self.config.miss_depth
        misses = Misses(
            before.rate if rate is None else rate, scale, before.depth if depth is None else depth
        )
        return replace(self.level, misses=misses, measured=None)

    def to_rating(self, wanted: float) -> Level:
        """The level with the misses that bring its rating to what is wanted."""
        config = self.config
        return self._search(
            lambda level: self.rating(level, config.seed, config.games),
            wanted,
            RATING_TOLERANCE * config.scale / FIBS,
            rising=False,
        )

    def to_pr(self, wanted: float) -> Level:
        """The level with the misses that bring its PR to what is wanted."""
        return self._search(self.pr_of_misses(), wanted, PR_TOLERANCE, rising=True)

    def _search(
        self,
        value: Callable[[Level], tuple[float, float]],
        wanted: float,
        tolerance: float,
        rising: bool,
    ) -> Level:
        start = self.level.misses.scale if self.level.misses else START

        def trial(scale: float) -> tuple[float, float]:
            found = value(self.with_scale(scale))
            print(f"misses of scale {scale:.5f}: {found[0]:.2f} {error_text(found[1], 2)}")
            return found

        trials = find_scale(trial, wanted, tolerance, rising, start)
        return self.with_scale(float(f"{nearest(trials, wanted).scale:.5g}"))

    def rating(self, level: Level, seed: int, games: int) -> tuple[float, float]:
        """The level's rating and its standard error, by a match against the anchor."""
        config = self.config
        # Never the anchor's name, which it may share.
        player: Player = self.player(replace(level, name=f"{level.name}, tried"))
        players = f"{player.identity} {self.anchor.identity} {self.luck and self.luck.identity}"
        name = hashlib.sha256(f"{players} {seed}".encode()).hexdigest()[:16]
        match = play_match(
            player,
            self.anchor,
            games // 2,
            seed,
            variant=one_point(self.net.variant),
            luck=self.luck,
            folder=config.folder / level.name / name,
            workers=self.workers,
        )
        if match.failures:
            raise BgrlError(f"calibrate: {match.failures[0]}")
        ratings = rate([match], self.anchor.name, config.anchor_rating, config.scale)
        return float(ratings.values[ratings.players.index(player.name)]), ratings.error(player.name)

    def pr_of_misses(self) -> Callable[[Level], tuple[float, float]]:
        """PR on the reference positions, exact in the misses, as a function of the level."""
        level = self.with_scale(START)
        assert level.misses is not None
        player = LevelPlayer(level, self.net, pruner=self.pruner)
        errors = MissErrors(player, self.reference.decisions, level.misses.depth)
        return lambda level: errors.pr(level.misses or Misses(0.0, START))

    def measured(self, level: Level, command: str) -> Measured:
        """What the level plays like, measured with dice that no trial had."""
        config = self.config
        seed = config.seed + 1
        games = 0
        value, error = config.anchor_rating, 0.0
        if self.player(level).identity != self.anchor.identity:
            games = config.check_games
            value, error = self.rating(level, seed, games)
        return Measured(
            self.net.hash,
            command,
            time.strftime("%Y-%m-%d"),
            MeasuredRating(
                round(value, 1), round(error, 1), config.anchor, config.anchor_rating,
                config.scale, games, seed,
            ),
            # The reference positions are backgammon's.
            self.measured_pr(level) if self.net.variant == BACKGAMMON else None,
        )  # fmt: skip

    def measured_pr(self, level: Level) -> MeasuredPr:
        """The level's PR on the reference positions."""
        decisions = self.reference.decisions
        if level.misses is None:
            rates = measure(self.player(level), decisions, self.workers).rates()[ALL]
            pr, error = rates.pr, PR * rates.standard_error
        else:
            pr, error = self.pr_of_misses()(level)
        return MeasuredPr(
            round(pr, 2), round(error, 2), len(decisions), self.reference.made["judge"]
        )


def _check(config: CalibrateConfig) -> None:
    if config.rating is not None and config.pr is not None:
        raise BgrlError("calibrate: give rating or pr, not both")
    # A single pair leaves the error unknown that the level's rating is stated with.
    for name, least in (("games", 2), ("check_games", 4)):
        games = getattr(config, name)
        if games < least or games % 2:
            raise BgrlError(f"calibrate: {name} is {games}, expected an even number from {least}")


def _before(config: CalibrateConfig, folder: Path) -> tuple[Level, str, str | None]:
    """The level of a folder without symbolic links, with the options that change it, and the names
    of its nets' folders."""
    level, net, pruner = Level(folder.name), "hard", config.pruner
    if is_level(folder):
        level, net_folder, small_folder = read_level(folder)
        net = str(net_folder.relative_to(folder.parent))
        if pruner is None and small_folder is not None:
            pruner = str(small_folder.relative_to(folder.parent))
    if config.net is not None:
        net = config.net
    if config.pruner is not None:
        level = replace(level, keep=level.keep or Pruner.keep)
    if config.plies is not None:
        level = replace(level, plies=config.plies)
    if config.style is not None:
        level = replace(level, style=style_named(config.style))
    if level.misses is None and config.rating is None and config.pr is None:
        for name in ("miss_rate", "miss_depth"):
            if (value := getattr(config, name)) is not None:
                raise BgrlError(
                    f"calibrate: {name} is {value}, but level {level.name} has no misses, and "
                    "neither rating nor pr says how many it should have"
                )
    return level, net, pruner


def _text(level: Level, config: CalibrateConfig) -> str:
    measured = level.measured
    assert measured is not None
    rating, pr = measured.rating, measured.pr
    assert rating is not None
    wanted = "" if config.rating is None else f" (wanted {config.rating:g})"
    wanted_pr = "" if config.pr is None else f" (wanted {config.pr:g})"
    against = f" over {rating.games:,} games against {rating.anchor}" if rating.games else ""
    text = f"{level.name}: rating {rating.value:.1f} ± {rating.error:.1f}{wanted}{against}"
    if pr is not None:
        text += f", PR {pr.value:.2f} ± {pr.error:.2f}{wanted_pr} on {pr.decisions:,} decisions"
    return f"{text}; {level.misses or 'no misses'}"
