import pickle
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from bgrl.encoding import get_encoder
from bgrl.errors import BgrlError
from bgrl.game import BACKGAMMON, HYPERGAMMON, Position, legal_plays
from bgrl.game.board import BAR, OFF, is_race
from bgrl.game.outcomes import equity
from bgrl.nets.fast import FastNet
from bgrl.nets.net import Net
from bgrl.players import EquityPlayer, Evaluation, load_player
from bgrl.players.net import NetPlayer
from bgrl.players.player import look_deeper, swapped
from bgrl.players.pubeval import load_weights, pubeval_score
from bgrl.players.sage import _sides


def net_player(seed=1, hidden=(16,), variant=BACKGAMMON) -> NetPlayer:
    return NetPlayer(FastNet.from_net(Net(get_encoder("tesauro198"), hidden, variant).reset(seed)))


def players():
    names = ["random", "pubeval"]
    names += ["gnubg_0ply"] * (find_spec("gnubg_nn") is not None)
    names += ["sage_0ply"] * (find_spec("bgsage") is not None)
    return [load_player(name) for name in names] + [net_player()]


def sides(board):
    """The board as gnubg-nn takes it."""
    return [board[1, 1:].tolist(), board[0, 1:].tolist()]


@pytest.mark.gnubg
def test_pubeval_scores_and_plays_as_gnubgs_copy_of_it(decisions):
    import gnubg_nn

    race, contact = load_weights()
    pubeval = load_player("pubeval")
    races = 0
    for board, die1, die2 in decisions:
        races += is_race(board)
        weights = race if is_race(board) else contact
        assert gnubg_nn.pub_eval_score(sides(board)) == pytest.approx(
            pubeval_score(weights, board), abs=2e-5
        )
        theirs = swapped(board)
        moves = gnubg_nn.pub_best_move(sides(board), die1, die2)
        for start, end in zip(moves[::2], moves[1::2], strict=True):
            start, end = start + 1, max(end + 1, OFF)
            theirs[1, start] -= 1
            theirs[1, end] += 1
            if end > OFF and theirs[0, 25 - end] == 1:
                theirs[0, 25 - end] = 0
                theirs[0, BAR] += 1
        ours = pubeval.choose(board, die1, die2)
        # Of equal scores either may be taken.
        assert np.array_equal(ours, theirs) or pubeval_score(weights, ours) == pytest.approx(
            pubeval_score(weights, theirs), abs=1e-5
        )
    assert races > 100


@pytest.mark.parametrize("player", players(), ids=lambda player: player.name)
def test_the_first_ranked_play_is_the_one_chosen(player, decisions):
    for board, die1, die2 in decisions[::40]:
        player.start_game(5, 6, 0)
        chosen = player.choose(board, die1, die2)
        player.start_game(5, 6, 0)
        ranked = player.rank_plays(Position(board), (die1, die2))
        if not ranked:
            assert np.array_equal(chosen, swapped(board))
            continue
        assert np.array_equal(ranked[0].position.board, chosen)
        assert {play.play for play in ranked} == set(legal_plays(Position(board), (die1, die2)))
        scores = [play.score for play in ranked]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    "player", [p for p in players() if isinstance(p, EquityPlayer)], ids=lambda player: player.name
)
def test_probabilities_are_possible_and_make_the_equity(player, decisions):
    for board, die1, die2 in decisions[::20]:
        evaluation = player.evaluate(Position(board))
        p = evaluation.probabilities
        assert p.dtype == np.float32
        assert 0 <= p[2] <= p[1] <= p[0] <= 1
        assert 0 <= p[4] <= p[3] <= np.float32(1) - p[0]
        if board[1, OFF]:
            assert p[1] == p[2] == 0
        if board[0, OFF]:
            assert p[3] == p[4] == 0
        assert evaluation.equity == pytest.approx(float(equity(p)), abs=1e-6)
        for ranked in player.rank_plays(Position(board), (die1, die2))[:2]:
            # Sage knows more of a position when it knows the one before.
            if not ranked.position.is_over and player.name != "sage_0ply":
                after = player.evaluate(ranked.position)
                assert ranked.equity == pytest.approx(-after.equity, abs=2e-5)


# me{1:1} to roll 2-1 wins whatever the play; what it wins depends on the opponent.
WINS = [
    ("/z8AAIAAAAAAAA", 1),
    ("4P8PAAABAAAAAA", 2),
    ("4P8HAEABAAAAAA", 3),
    ("4P8HAAEBAAAAAA", 3),
    ("4P8HgAABAAAAAA", 2),
    ("4P8DAKAAAAAAAA", 1),
]


@pytest.mark.parametrize(("position_id", "points"), WINS)
def test_a_winning_play_is_worth_exactly_what_it_wins(position_id, points):
    position = Position.from_gnubg_id(position_id)
    for player in players():
        if isinstance(player, EquityPlayer):
            (ranked,) = player.rank_plays(position, (2, 1))
            assert ranked.equity == points
            assert ranked.probabilities.tolist() == [1, points > 1, points > 2, 0, 0]
            assert player.evaluate(ranked.position).equity == -points
            assert player.evaluate(ranked.position.swap()).equity == points


def test_every_player_that_judges_takes_the_win():
    # 3-1 wins at once by 3/off 1/off; 3/2*/off hits and goes on.
    position = Position.from_points({3: 1, 1: 1}, {6: 14, 23: 1})
    assert {play.position.is_over for play in legal_plays(position, (1, 3))} == {True, False}
    for player in players():
        if player.name != "random":
            assert player.rank_plays(position, (1, 3))[0].position.is_over


def test_random_is_a_function_of_seed_game_and_seat():
    player = load_player("random")
    board = BACKGAMMON.start_board()

    def first_choices(seed, game, seat):
        player.start_game(seed, game, seat)
        return [player.choose(board, 6, 6).tobytes() for _ in range(20)]

    reference = first_choices(1, 2, 0)
    assert first_choices(1, 2, 0) == reference
    for other in [(1, 2, 1), (1, 3, 0), (2, 2, 0)]:
        assert first_choices(*other) != reference


def test_random_takes_every_play_alike():
    player = load_player("random")
    board = BACKGAMMON.start_board()
    n = len(legal_plays(Position.start(), (3, 1)))
    counts: dict[bytes, int] = {}
    draws = 400 * n
    for _ in range(draws):
        key = player.choose(board, 3, 1).tobytes()
        counts[key] = counts.get(key, 0) + 1
    assert len(counts) == n
    chi2 = sum((count - 400) ** 2 / 400 for count in counts.values())
    assert chi2 < 40  # 15 degrees of freedom: exceeded once in 2,000 seeds


@pytest.mark.gnubg
def test_gnubg_gives_its_published_opening_evaluation():
    evaluation = load_player("gnubg_0ply").evaluate(Position.start())
    expected = [0.52149, 0.15418, 0.00757, 0.12965, 0.00750]
    assert evaluation.probabilities == pytest.approx(expected, abs=1e-4)
    assert isinstance(evaluation, Evaluation)
    assert "+0.06" in str(evaluation)


@pytest.mark.gnubg
def test_gnubg_1ply_is_the_mean_over_the_best_0ply_replies():
    zero, one = load_player("gnubg_0ply"), load_player("gnubg_1ply")
    position = Position.from_gnubg_id("4HPwATDgc/ABMA")
    total = 0.0
    for die1 in range(1, 7):
        for die2 in range(1, 7):
            total += zero.rank_plays(position, (die1, die2))[0].equity
    assert one.evaluate(position).equity == pytest.approx(total / 36, abs=1e-4)


def test_players_survive_pickling(decisions):
    board, die1, die2 = decisions[10]
    for player in players():
        copy = pickle.loads(pickle.dumps(player))
        for twin in (player, copy):
            twin.start_game(1, 1, 1)
        assert np.array_equal(copy.choose(board, die1, die2), player.choose(board, die1, die2))
        assert copy.identity == player.identity


def test_a_net_ranks_what_its_twin_evaluates(decisions):
    player = net_player()
    for board, die1, die2 in decisions[:300:30]:
        for ranked in player.rank_plays(Position(board), (die1, die2)):
            if not ranked.position.is_over:
                p = player.net.evaluate(ranked.position.board)
                assert ranked.equity == pytest.approx(-float(equity(p)), abs=1e-5)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gnubg_9ply", "known are random, pubeval, gnubg_0ply"),
        ("no/such/folder", "unknown player 'no/such/folder'"),
        ("", "unknown player ''"),
    ],
)
def test_an_unknown_player_is_told_what_there_is(spec, message):
    with pytest.raises(BgrlError, match=message):
        load_player(spec)


@pytest.mark.gnubg
def test_a_deeper_player_looks_further_at_good_plays_only(decisions):
    player = load_player("gnubg_1ply")
    for board, die1, die2 in decisions[:200:40]:
        ranked = player.rank_plays(Position(board), (die1, die2))
        if len(ranked) > 1:
            chosen = player.choose(board, die1, die2)
            found = [play.equity for play in ranked if np.array_equal(play.position.board, chosen)]
            assert found[0] >= ranked[0].equity - 0.01


@pytest.mark.gnubg
def test_both_gnubg_packages_hold_the_same_net(decisions):
    pytest.importorskip("gnubg")
    one, other = load_player("gnubg_0ply"), load_player("gnubg107_0ply")
    for board, _, _ in decisions[::100]:
        p, q = (player.evaluate(Position(board)).probabilities for player in (one, other))
        # They differ in detail: bear-off databases, and what they take for impossible.
        assert p == pytest.approx(q, abs=0.005 if not is_race(board) else 0.02)
    one, other = load_player("gnubg_1ply"), load_player("gnubg107_1ply")
    for board, _, _ in decisions[::300]:
        p, q = (player.evaluate(Position(board)).equity for player in (one, other))
        assert p == pytest.approx(q, abs=0.05)  # pruning looks at fewer replies


def test_look_deeper_keeps_what_is_worth_it():
    asked = []

    def deeper(plays):
        asked.append(plays.tolist())
        return plays * 10.0

    first = np.array([0.1, 0.5, 0.45, -0.2, 0.44])
    scores = look_deeper(first, deeper, plays=3, within=0.055)
    assert asked == [[1, 2]]
    assert scores.tolist() == [-np.inf, 10, 20, -np.inf, -np.inf]
    look_deeper(first, deeper, plays=3, within=9)
    assert asked[1] == [1, 2, 4]


def test_sage_plays_as_its_own_analyzer_does(decisions):
    bgsage = pytest.importorskip("bgsage")
    analyzer = bgsage.BgBotAnalyzer(eval_level="1ply", cubeful=False)
    player = load_player("sage_0ply")
    same = total = 0
    for board, die1, die2 in decisions[::30]:
        theirs = analyzer.checker_play(_sides(board), die1, die2).moves
        ranked = player.rank_plays(Position(board), (die1, die2))
        if ranked:
            total += 1
            same += list(theirs[0].board) == _sides(swapped(ranked[0].position.board.copy()))
    assert same > 0.95 * total


@pytest.mark.gnubg
def test_gnubg_refuses_a_variant_of_other_checkers():
    with pytest.raises(BgrlError, match="15 checkers a side, not hypergammon's 3"):
        load_player("gnubg_0ply", HYPERGAMMON)


def test_a_missing_package_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "gnubg_nn", None)
    with pytest.raises(BgrlError, match=r"pip install 'bgrl\[gnubg\]'"):
        load_player("gnubg_0ply")


def test_players_without_equities_say_so():
    with pytest.raises(BgrlError, match="pubeval ranks plays"):
        load_player("pubeval").evaluate(Position.start())
    ranked = load_player("pubeval").rank_plays(Position.start(), (3, 1))[0]
    assert ranked.equity is None
    assert str(ranked).startswith("8/5 6/5 score ")


def test_players_play_hypergammon():
    position = Position.start(HYPERGAMMON)
    for player in (load_player("random", HYPERGAMMON), net_player(variant=HYPERGAMMON)):
        assert len(player.rank_plays(position, (3, 1))) == 7
