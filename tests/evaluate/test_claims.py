"""What the evaluation is worth, shown at full size: minutes each, with `make test-slow`."""

import numpy as np
import pytest

from bgrl.evaluate import luck_evaluator, play_match
from bgrl.evaluate.stats import mean_and_error
from bgrl.players import load_player

pytestmark = pytest.mark.slow
WORKERS = 2


@pytest.mark.gnubg
@pytest.mark.parametrize(
    "names", [("pubeval", "random"), ("net2", "pubeval"), ("gnubg", "pubeval")]
)
def test_luck_adjusted_and_raw_results_agree_over_20_000_games(names, net_player):
    """Whatever the evaluator: here an untrained net, which knows nothing."""
    a, b = (
        net_player(2) if name == "net2" else load_player({"gnubg": "gnubg_0ply"}.get(name, name))
        for name in names
    )
    result = play_match(a, b, 10_000, seed=1, luck=luck_evaluator(net_player(1)), workers=WORKERS)
    print(result)
    luck, error = mean_and_error(result.luck.mean(axis=1))
    assert result.games == 20_000
    assert abs(luck) < 3.5 * error
    assert error < 0.02


@pytest.mark.gnubg
@pytest.mark.parametrize("name", ["sage_0ply", "hard"])
def test_static_players_are_told_apart_to_a_hundredth_within_minutes(name):
    if name.startswith("sage"):
        pytest.importorskip("bgsage")
    a, b = load_player(name), load_player("gnubg_0ply")
    result = play_match(a, b, 400, seed=1, luck=luck_evaluator(b), workers=WORKERS)
    print(result, f"in {result.seconds:.0f} s")
    assert result.standard_error <= 0.01
    assert result.seconds < 300
    assert result.variance_reduction["both"] >= 30
    if name.startswith("sage"):
        # Measured elsewhere over 18,046 games with duplicate dice: +0.001 ± .009.
        assert abs(result.ppg - 0.001) < 4 * np.hypot(result.standard_error, 0.009)


@pytest.mark.gnubg
def test_gnubg_at_2_plies_beats_itself_at_0():
    """By +0.088 ± .014, as measured elsewhere."""
    pytest.importorskip("gnubg")
    a, b = load_player("gnubg107_2ply"), load_player("gnubg_0ply")
    result = play_match(a, b, 300, seed=1, luck=luck_evaluator(b), workers=WORKERS)
    print(result)
    assert abs(result.ppg - 0.088) < 0.03 + 2 * result.standard_error


@pytest.mark.gnubg
def test_gnubg_beats_pubeval_by_the_known_margin():
    a, b = load_player("gnubg_0ply"), load_player("pubeval")
    result = play_match(a, b, 500, seed=1, luck=luck_evaluator(a), workers=WORKERS)
    print(result)
    assert abs(result.ppg - 0.63) < 0.03
