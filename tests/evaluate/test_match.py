import itertools
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from bad_players import BadPlayer

import bgrl.evaluate.match as match_module
from bgrl.errors import BgrlError, CorruptFile
from bgrl.evaluate import NetLuck, PlayerLuck, Sprt, luck_evaluator, play_match, replay
from bgrl.evaluate.luck import WAYS, roll_index, roll_luck
from bgrl.evaluate.stats import mean_and_error
from bgrl.game import BACKGAMMON, HYPERGAMMON
from bgrl.game.dice import ROLLS
from bgrl.players import load_player
from bgrl.players.level import Level, LevelPlayer, Misses
from bgrl.players.style import AGGRESSIVE, BALANCED


def columns(result):
    return [result.pairs, result.outcomes, result.luck, result.plies]


def assert_same(first, second):
    for one, other in zip(columns(first), columns(second), strict=True):
        assert np.array_equal(one, other)


@pytest.fixture
def general(monkeypatch):
    """Matches take the general path, as with a player that isn't a kernel."""
    monkeypatch.setattr(match_module, "fast_pair", lambda *args: None)


def named(name, net_player):
    """A player by name; "missing" and "styled" are levels of net 2."""
    if name.startswith("net"):
        return net_player(int(name[3:]))
    if name in ("missing", "styled"):
        style = replace(AGGRESSIVE, loss=0.05) if name == "styled" else BALANCED
        level = Level(name, misses=Misses(0.8, 0.05), style=style)
        return LevelPlayer(level, net_player(2).net)
    return load_player(name)


@pytest.mark.parametrize(
    "names",
    [("net1", "pubeval"), ("random", "net2"), ("net1", "net2"), ("missing", "net1"),
     ("random", "styled"), ("styled", "missing")],
)  # fmt: skip
@pytest.mark.parametrize("with_luck", [False, True])
def test_the_kernel_plays_the_games_of_the_general_path(names, with_luck, net_player, monkeypatch):
    a, b = (named(name, net_player) for name in names)
    luck = luck_evaluator(net_player(3)) if with_luck else None
    fast = play_match(a, b, 8, seed=5, luck=luck)
    fast_checks = [
        [game.check for game in games]
        for _, games in match_module.fast_pair(a, b, BACKGAMMON, 5, luck).play(0, 8)
    ]
    checks = [
        [replay(a, b, pair, game, 5, luck=luck)[0].check for game in (0, 1)] for pair in (0, 7)
    ]
    assert checks == [fast_checks[0], fast_checks[7]]
    monkeypatch.setattr(match_module, "fast_pair", lambda *args: None)
    assert_same(fast, play_match(a, b, 8, seed=5, luck=luck))


@pytest.mark.parametrize("name", ["random", "pubeval", "net1", "gnubg_0ply"])
@pytest.mark.parametrize("path", ["fast", "general"])
def test_a_player_against_itself_scores_exactly_zero(name, path, net_player, monkeypatch):
    if name.startswith("gnubg"):
        pytest.importorskip("gnubg_nn")
    if path == "general":
        monkeypatch.setattr(match_module, "fast_pair", lambda *args: None)
    player = net_player(1) if name == "net1" else load_player(name)
    result = play_match(player, player, 10, seed=1, luck=luck_evaluator(net_player(2)))
    assert np.any(result.outcomes != 0)
    assert np.array_equal(result.outcomes[:, 0], -result.outcomes[:, 1])
    assert np.all(result.scores == 0)
    assert result.ppg == 0
    assert result.standard_error == 0


def test_any_number_of_processes_plays_the_same_games(net_player):
    a, b = net_player(1), load_player("pubeval")
    here = play_match(a, b, 300, seed=2)
    assert_same(here, play_match(a, b, 300, seed=2, workers=2))
    # A general player: its games are handed out one by one.
    bad = BadPlayer("raise", bad=-1)
    assert_same(play_match(bad, b, 6, seed=2), play_match(bad, b, 6, seed=2, workers=2))


def test_other_seeds_give_other_games(net_player):
    a, b = net_player(1), load_player("pubeval")
    assert not np.array_equal(
        play_match(a, b, 20, seed=1).outcomes, play_match(a, b, 20, seed=2).outcomes
    )


def test_seats_are_swapped_under_the_same_dice(net_player):
    a, b = net_player(1), load_player("pubeval")
    forward, backward = play_match(a, b, 40, seed=3), play_match(b, a, 40, seed=3)
    assert np.array_equal(forward.outcomes, -backward.outcomes[:, ::-1])
    _, first = replay(a, b, 4, 0, seed=3)
    _, second = replay(a, b, 4, 1, seed=3)
    assert first[0].seat == second[0].seat
    assert first[0].player != second[0].player
    shared = min(len(first), len(second))
    assert [turn.dice for turn in first[:shared]] == [turn.dice for turn in second[:shared]]


def test_a_replay_is_a_legal_game_with_the_recorded_result(net_player):
    a, b = net_player(1), load_player("random")
    luck = luck_evaluator(net_player(2))
    result = play_match(a, b, 8, seed=9, luck=luck)
    for game in (0, 1):
        again, turns = replay(a, b, 6, game, seed=9, luck=luck)
        assert again.outcome == result.outcomes[6, game]
        assert again.luck == result.luck[6, game]
        assert len(turns) == result.plies[6, game]
        for turn, following in itertools.pairwise(turns):
            reached = turn.play.position if turn.play else turn.position.swap()
            assert reached == following.position
        assert turns[-1].play.position.is_over
        mine = sum(turn.luck if turn.player == a.name else -turn.luck for turn in turns)
        assert mine == pytest.approx(again.luck)


def test_the_luck_of_all_rolls_adds_up_to_nothing(net_player):
    values = luck_evaluator(net_player(1)).roll_values(BACKGAMMON.start_board())
    total = sum(WAYS[i] * roll_luck(values, WAYS, i) for i in range(21))
    assert total == pytest.approx(0, abs=1e-12)
    assert [roll_index(a, b) for a, b, _ in ROLLS] == list(range(21))
    assert all(roll_index(b, a) == roll_index(a, b) for a, b, _ in ROLLS)


def test_both_luck_evaluators_of_a_net_agree(net_player):
    player = net_player(1)
    _, turns = replay(player, load_player("random"), 0, 0)
    for turn in turns:
        board = turn.position.board.copy()
        slow, fast = PlayerLuck(player).roll_values(board), NetLuck(player.net).roll_values(board)
        assert fast == pytest.approx(slow, abs=1e-5)


def test_the_luck_evaluator_values_the_best_play_of_each_roll(net_player):
    player = net_player(1)
    _, turns = replay(player, load_player("random"), 1, 0)
    for turn in turns[::8]:
        values = NetLuck(player.net).roll_values(turn.position.board.copy())
        for (die1, die2, _), value in zip(ROLLS, values, strict=True):
            ranked = player.rank_plays(turn.position, (int(die1), int(die2)))
            best = ranked[0].equity if ranked else -player.evaluate(turn.position.swap()).equity
            assert value == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("names", [("pubeval", "random"), ("net1", "net2"), ("net2", "pubeval")])
def test_a_bad_luck_evaluator_still_gives_the_right_mean(names, net_player):
    a, b = (net_player(int(n[3:])) if n.startswith("net") else load_player(n) for n in names)
    # An untrained net knows nothing of backgammon: its luck is noise of mean 0.
    pairs = 20 if "pubeval" not in names else 100  # untrained nets play long games
    result = play_match(a, b, pairs, seed=4, luck=luck_evaluator(net_player(7)))
    mean, error = mean_and_error(result.luck.mean(axis=1))
    assert error > 0.005
    assert abs(mean) < 4 * error


@pytest.mark.gnubg
def test_a_good_luck_evaluator_takes_the_variance_out():
    a, b = load_player("gnubg_0ply"), load_player("pubeval")
    result = play_match(a, b, 10, seed=1, luck=luck_evaluator(a))
    reduction = result.variance_reduction
    assert reduction["luck"] > 3
    assert reduction["both"] > 4
    raw, raw_error = mean_and_error(result.raw_scores)
    assert abs(result.ppg - raw) < 4 * raw_error
    assert f"as exact as {20 * reduction['both']:,.0f} games" in str(result)
    assert result.to_json()["variance_reduction"] == reduction
    # GNU Backgammon beats pubeval by about .63 points a game.
    assert abs(result.ppg - 0.63) < 4 * result.standard_error


def test_results_count_points_rates_and_errors(net_player):
    result = play_match(load_player("pubeval"), load_player("random"), 50, seed=6)
    points = np.sign(result.outcomes) * np.abs(result.outcomes)
    assert result.ppg == pytest.approx(points.mean())
    pair_means = points.mean(axis=1)
    assert result.standard_error == pytest.approx(pair_means.std(ddof=1) / math.sqrt(50))
    rates = result.rates()
    assert rates["win"] + rates["lose"] == pytest.approx(1)
    assert rates["win_gammon"] == pytest.approx((result.outcomes >= 2).mean())
    assert rates["lose_backgammon"] == pytest.approx((result.outcomes == -3).mean())
    low, high = result.interval()
    assert low < result.ppg < high
    assert json.loads(json.dumps(result.to_json()))["games"] == 100
    single = play_match(load_player("pubeval"), load_player("random"), 1)
    assert set(single.to_json()["variance_reduction"].values()) == {None}
    assert "pubeval against random: +2." in str(result)
    assert " ±? ppg over 2 games" in str(single)
    none = play_match(load_player("pubeval"), load_player("random"), 0)
    assert str(none) == "pubeval against random: no games"


def test_hypergammon_is_played_too():
    a = load_player("random", HYPERGAMMON)
    result = play_match(a, a, 50, variant=HYPERGAMMON)
    assert result.ppg == 0
    assert result.plies.mean() < 80


def test_a_killed_match_goes_on_where_it_was(tmp_path, net_player):
    a, b = net_player(1), load_player("pubeval")
    whole = play_match(a, b, 60, seed=8, luck=luck_evaluator(a))
    folder = tmp_path / "match"
    play_match(a, b, 25, seed=8, luck=luck_evaluator(a), folder=folder)
    pairs = folder / "pairs.jsonl"
    lines = pairs.read_bytes().splitlines(keepends=True)
    # Killed in the middle of writing pair 20, after a pair that came out of order.
    pairs.write_bytes(b"".join([*lines[:12], *lines[15:19], lines[20][:37]]))
    before = pairs.read_bytes().rpartition(b"\n")[0]
    resumed = play_match(a, b, 60, seed=8, luck=luck_evaluator(a), folder=folder, workers=2)
    assert_same(whole, resumed)
    assert pairs.read_bytes().startswith(before)
    assert len(pairs.read_bytes().splitlines()) == 60
    assert_same(whole, play_match(a, b, 60, seed=8, luck=luck_evaluator(a), folder=folder))


MATCH = """
import sys
from bgrl.evaluate import play_match
from bgrl.players import load_player
if __name__ == "__main__":
    a, b = load_player("pubeval"), load_player("random")
    play_match(a, b, int(sys.argv[2]), seed=3, folder=sys.argv[1], workers=int(sys.argv[3]))
"""


def test_sigkill_at_any_moment_loses_nothing(tmp_path):
    script = tmp_path / "play.py"
    script.write_text(MATCH)
    folder = tmp_path / "match"
    total = 60_000
    for wait in (0.02, 0.15):
        process = subprocess.Popen(
            [sys.executable, script, folder, str(total), "1"], stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        written = folder / "pairs.jsonl"
        size = written.stat().st_size if written.exists() else 0
        while not (written.exists() and written.stat().st_size > size):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.002)
        time.sleep(wait)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    done = len(written.read_bytes().splitlines())
    assert 0 < done < total
    a, b = load_player("pubeval"), load_player("random")
    resumed = play_match(a, b, done + 50, seed=3, folder=folder)
    assert_same(resumed, play_match(a, b, done + 50, seed=3))


def test_a_folder_of_another_match_is_refused_by_name(tmp_path, net_player):
    folder = tmp_path / "match"
    play_match(net_player(1), load_player("random"), 2, seed=1, folder=folder)
    before = (folder / "pairs.jsonl").read_bytes()
    with pytest.raises(BgrlError, match="another match: its seed is 1, not 2"):
        play_match(net_player(1), load_player("random"), 2, seed=2, folder=folder)
    with pytest.raises(BgrlError, match="another match: its a is 'net "):
        play_match(net_player(2), load_player("random"), 2, seed=1, folder=folder)
    assert (folder / "pairs.jsonl").read_bytes() == before


def test_a_folder_by_way_of_one_that_is_missing_is_the_same_folder(tmp_path, net_player):
    play_match(net_player(1), load_player("random"), 2, seed=1, folder=tmp_path / "match")
    with pytest.raises(BgrlError, match="another match: its seed is 1, not 2"):
        play_match(
            net_player(1), load_player("random"), 2, seed=2, folder=tmp_path / "no" / ".." / "match"
        )


def test_pairs_without_their_match_json_are_refused(tmp_path, net_player):
    play_match(net_player(1), load_player("random"), 2, folder=tmp_path)
    (tmp_path / "match.json").unlink()
    with pytest.raises(CorruptFile, match=r"pairs\.jsonl: there is no match\.json"):
        play_match(net_player(2), load_player("random"), 2, folder=tmp_path)


def test_a_damaged_record_is_named(tmp_path, net_player):
    folder = tmp_path / "match"
    play_match(net_player(1), load_player("random"), 3, folder=folder)
    pairs = folder / "pairs.jsonl"
    pairs.write_text(pairs.read_text().replace('"outcomes"', '"outcome"', 1))
    with pytest.raises(CorruptFile, match=r"pairs\.jsonl line 1"):
        play_match(net_player(1), load_player("random"), 3, folder=folder)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"pair": -1}, "pair -1 is no pair's number"),
        ({"pair": 1.5}, "pair 1.5"),
        ({"pair": True}, "pair True"),
        ({"pair": 2**63}, "pair 9223372036854775808"),
        ({"pair": 0}, "pair 0 again, with another result"),
        ({"outcomes": [0, 0]}, "outcome 0 is not ±1, ±2 or ±3"),
        ({"outcomes": [1.9, -1.2]}, "outcome 1.9"),
        ({"outcomes": [7, -7]}, "outcome 7"),
        ({"outcomes": [True, 1]}, "outcome True"),
        ({"outcomes": "11"}, "outcome '1'"),
        ({"outcomes": [1]}, "longer"),
        ({"outcomes": None}, "NoneType"),
        ({"luck": [math.nan, 0]}, "luck nan is no number of points"),
        ({"luck": [0, -math.inf]}, "luck -inf"),
        ({"luck": [0, 10**400]}, "luck 1000"),
        ({"luck": ["0", 0]}, "luck '0'"),
        ({"luck": [0.5, 0]}, "luck, which this match does not measure"),
        ({"plies": [0, 50]}, "plies 0 is no number of turns"),
        ({"plies": [50, 10**10]}, "plies 10000000000"),
        ({"checks": ["-1", "0"]}, "check '-1' is not 16 hexadecimal digits"),
        ({"checks": [1, 2]}, "check 1"),
    ],
)
def test_a_record_that_no_match_writes_is_named(change, reason, tmp_path, net_player):
    play_match(net_player(1), load_player("random"), 3, folder=tmp_path)
    pairs = tmp_path / "pairs.jsonl"
    lines = pairs.read_text().splitlines()
    lines[1] = json.dumps(json.loads(lines[1]) | change)
    before = "\n".join(lines) + "\n"
    pairs.write_text(before)
    with pytest.raises(CorruptFile, match=rf"pairs\.jsonl line 2: .*{re.escape(reason)}"):
        play_match(net_player(1), load_player("random"), 3, folder=tmp_path)
    assert pairs.read_text() == before


@pytest.mark.parametrize("line", ["[]", "5", '["failed"]', '"failed"'])
def test_a_line_that_is_no_record_is_named(line, tmp_path, net_player):
    play_match(net_player(1), load_player("random"), 1, folder=tmp_path)
    with open(tmp_path / "pairs.jsonl", "a") as file:
        file.write(line + "\n")
    with pytest.raises(CorruptFile, match=r"pairs\.jsonl line 2: not a JSON object"):
        play_match(net_player(1), load_player("random"), 1, folder=tmp_path)


@pytest.mark.parametrize("text", ["[]", "null", '"match"'])
def test_a_match_json_that_is_none_is_named(text, tmp_path, net_player):
    (tmp_path / "match.json").write_text(text)
    with pytest.raises(CorruptFile, match=r"match\.json: not a JSON object"):
        play_match(net_player(1), load_player("random"), 1, folder=tmp_path)


def test_a_line_twice_is_one_pair_and_fewer_pairs_are_the_first(tmp_path, net_player):
    a, b = net_player(1), load_player("random")
    whole = play_match(a, b, 3, folder=tmp_path)
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(pairs.read_text() * 2)
    assert_same(play_match(a, b, 3, folder=tmp_path), whole)
    assert_same(play_match(a, b, 2, folder=tmp_path), play_match(a, b, 2))


def test_less_than_no_workers_are_refused(tmp_path, net_player):
    with pytest.raises(BgrlError, match="0 or more workers, not -1"):
        play_match(net_player(1), load_player("random"), 1, folder=tmp_path / "match", workers=-1)
    assert not (tmp_path / "match").exists()


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("raise", "RuntimeError: lost my dice"),
        ("illegal", "illegal play of"),
        ("nonsense", "answered '24/18', which is no board"),
    ],
)
def test_a_failing_player_loses_one_pair_only(how, reason, tmp_path):
    bad, other = BadPlayer(how, bad=2), load_player("pubeval")
    good = play_match(BadPlayer(how, bad=-1), other, 6)
    folder = tmp_path / "match"
    result = play_match(bad, other, 6, folder=folder)
    assert result.pairs.tolist() == [0, 1, 3, 4, 5]
    assert np.array_equal(result.outcomes, np.delete(good.outcomes, 2, axis=0))
    (failure,) = result.failures
    assert (failure.task, failure.game, failure.player) == (2, 0, bad.name)
    assert reason in failure.reason
    assert "1 games set aside" in str(result)
    # The player is mended: the same command plays the game that was set aside.
    mended = play_match(BadPlayer(how, bad=-1), other, 6)
    again = play_match_as(bad.name, BadPlayer(how, bad=-1), other, folder)
    assert_same(again, mended)
    assert not again.failures


def play_match_as(name, player, other, folder):
    player.name = name
    return play_match(player, other, 6, folder=folder)


@pytest.mark.parametrize(
    ("how", "reason"),
    [("hang", "no answer within 3 s"), ("crash", "its process ended with exit code 7")],
)
def test_a_process_that_hangs_or_dies_loses_one_pair_only(how, reason):
    other = load_player("pubeval")
    good = play_match(BadPlayer(how, bad=-1), other, 5)
    result = play_match(BadPlayer(how, bad=1), other, 5, workers=2, timeout=3)
    assert result.pairs.tolist() == [0, 2, 3, 4]
    assert np.array_equal(result.outcomes, np.delete(good.outcomes, 1, axis=0))
    (failure,) = result.failures
    assert (failure.task, failure.game, failure.reason) == (1, 0, reason)
    assert result.ended == "complete"


def test_a_match_with_too_many_failures_ends_and_says_why(monkeypatch):
    bad = BadPlayer("raise", bad=0)
    monkeypatch.setattr(BadPlayer, "start_game", always_game_0)
    result = play_match(bad, load_player("random"), 50, max_failures=3)
    assert result.games == 0
    assert len(result.failures) == 4
    assert "more than 3 games were set aside" in result.ended
    assert "RuntimeError: lost my dice" in result.ended
    assert result.to_json()["ppg"] is None
    json.dumps(result.to_json(), allow_nan=False)


def always_game_0(self, seed, game, seat):
    self.game = self.turns = 0


def test_a_sequential_test_ends_the_match_at_the_same_pair(net_player):
    a, b = load_player("pubeval"), net_player(1)
    stop = Sprt(0.0, 1.5, min_pairs=20)
    here = play_match(a, b, 400, seed=1, stop=stop)
    assert here.ended.startswith("H1 accepted after ")
    assert 40 <= here.games < 800
    assert_same(here, play_match(a, b, 400, seed=1, stop=stop, workers=2))
    never = play_match(a, a, 30, seed=1, stop=stop)
    assert never.ended == "complete"
