"""`bgrl ladder`: a round robin and the ratings that it gives."""

from bgrl.cli.compose import Launch
from bgrl.cli.config import LadderConfig
from bgrl.cli.nets import cores
from bgrl.errors import BgrlError
from bgrl.evaluate import MatchResult, luck_evaluator, play_match
from bgrl.evaluate.ratings import ONE_POINT, ladder_json, one_point, rate, round_robin
from bgrl.evaluate.report import Report
from bgrl.game import get_variant
from bgrl.players import EquityPlayer, Player, load_player


def run(config: LadderConfig, launch: Launch) -> None:
    """Play every pairing, or what is left of it; print the ratings and where the report is."""
    if config.games < 2 or config.games % 2:
        raise BgrlError(f"ladder: games is {config.games}, expected an even number from 2")
    if len(config.players) < 2:
        raise BgrlError(f"ladder: players needs two or more, not {len(config.players)}")
    if config.anchor not in config.players:
        raise BgrlError(f"ladder: anchor {config.anchor!r} is not one of the players")
    variant = get_variant(config.variant)
    players = [load_player(spec, variant) for spec in config.players]
    names = [player.name for player in players]
    if len(set(names)) < len(names):
        raise BgrlError(f"ladder: players need different names, and these are {', '.join(names)}")
    luck = None
    if config.luck is not None:
        judge = load_player(config.luck, variant)
        if not isinstance(judge, EquityPlayer):
            raise BgrlError(f"ladder: luck={config.luck} estimates no equities")
        luck = luck_evaluator(judge, ONE_POINT)

    def play(a: Player, b: Player) -> MatchResult:
        return play_match(
            a,
            b,
            config.games // 2,
            config.seed,
            variant=one_point(variant),
            luck=luck,
            folder=config.folder / "matches" / f"{a.name}-{b.name}",
            workers=cores() if config.workers is None else config.workers,
        )

    matches = round_robin(players, play)
    anchor = names[config.players.index(config.anchor)]
    ratings = rate(matches, anchor, config.anchor_rating, config.scale)
    report = Report("Ladder", f"{config.games:,} games a pairing, seed {config.seed}")
    report.add_ladder(ladder_json(ratings, matches))
    report.add_matches([match.to_json() for match in matches])
    for match in matches:
        if match.failures or match.ended != "complete":
            print(match)
    print(ratings)
    print(report.write(config.folder))
