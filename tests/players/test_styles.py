"""Styles: what they like, what it may cost, and that it shows in games."""

import numpy as np
import pytest

from bgrl.errors import BgrlError
from bgrl.game import BACKGAMMON, Position
from bgrl.game.board import loss_level
from bgrl.game.dice import Dice
from bgrl.nets import FastNet
from bgrl.players import load_player
from bgrl.players.level import Level, LevelPlayer, Misses
from bgrl.players.net import NetPlayer
from bgrl.players.style import STYLES, Style, features, shots, style_named
from bgrl.search import FULL


@pytest.fixture(scope="module")
def net() -> FastNet:
    return load_player("hard").net


def plain_features(board):
    """The four features once more, straight from their definitions."""
    opponent, mover = board.tolist()
    blots = [point for point in range(1, 25) if mover[point] == 1]
    away = {slot - (25 - p) for p in blots for slot in range(1, 26) if opponent[slot]}
    rolls = 0
    for die1 in range(1, 7):
        for die2 in range(1, 7):
            dice = [die1] * 4 if die1 == die2 else [die1, die2]
            reach = {sum(dice[:n]) for n in range(1, len(dice) + 1)} | {die1, die2}
            rolls += bool(away & reach)
    return opponent[25], sum(n >= 2 for n in mover[1:25]), rolls, sum(mover[19:])


def test_features_are_as_defined(decisions):
    seen = set()
    for board, _, _ in decisions:
        assert tuple(features(board)) == plain_features(board)
        seen.add(shots(board))
    assert {0, 36} < seen
    assert len(seen) > 15


@pytest.mark.parametrize(
    ("mover", "opponent", "rolls"),
    [
        ({4: 1}, {23: 1}, 12),  # 2 away: 11 with a 2, and 1-1
        ({4: 1}, {25: 1}, 15),  # 4 away, from the bar: 11 with a 4, 3-1 twice, 2-2 and 1-1
        ({4: 1, 5: 1}, {25: 1}, 26),  # 20 with a 4 or 5, 3-1 and 3-2 twice each, 2-2 and 1-1
        ({4: 1}, {20: 1}, 0),  # already past
        ({4: 2}, {23: 1}, 0),  # no blot
    ],
)
def test_shots_by_hand(mover, opponent, rolls):
    board = np.zeros((2, 26), np.int8)
    for point, count in mover.items():
        board[1, point] = count
    for point, count in opponent.items():
        board[0, point] = count
    assert shots(board) == rolls


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
@pytest.mark.parametrize("plies", [0, 1])
def test_a_style_costs_at_most_its_loss_and_takes_what_it_likes_most(net, decisions, style, plies):
    player = LevelPlayer(Level("styled", plies, FULL, style=style), net)
    turned = 0
    for board, *dice in decisions[::10]:
        ranked = player.rank_plays(Position(board), tuple(dice))
        if not ranked:
            continue
        chosen = player.choose(board, *dice).tobytes()
        near = [play for play in ranked if ranked[0].equity - play.equity <= style.loss]
        assert chosen in {play.position.board.tobytes() for play in near}
        liked = [float(np.dot(style.weights, plain_features(play.position.board))) for play in near]
        assert chosen == near[int(np.argmax(liked))].position.board.tobytes()
        turned += chosen != ranked[0].position.board.tobytes()
    assert turned == 0 if style.name == "balanced" else turned > 2


def test_a_miss_is_not_a_matter_of_style(net, decisions):
    misses = Misses(1.0, 0.1)
    plain = LevelPlayer(Level("plain", misses=misses), net)
    styled = LevelPlayer(Level("styled", misses=misses, style=STYLES["runner"]), net)
    same = 0
    for board, *dice in decisions[::20]:
        best = plain.choose_by(board, *dice, 0.0)
        missed = plain.choose_by(board, *dice, 0.99)
        if not np.array_equal(best, missed):
            np.testing.assert_array_equal(styled.choose_by(board, *dice, 0.99), missed)
            same += 1
    assert same > 50


def turns(net, style, games):
    """(board, dice, board after) of every turn of a style in games against the net's best plays."""
    players = LevelPlayer(Level("styled", style=style), net), NetPlayer(net)
    for game in range(games):
        dice = Dice(1, game)
        board = BACKGAMMON.start_board()
        roll = dice.opening_roll()
        turn = game % 2
        while not loss_level(board):
            after = players[turn].choose(board, *roll)
            if turn == 0:
                yield board, roll, after
            board = after
            turn = 1 - turn
            roll = dice.roll()


def done(board, after):
    """(checkers hit, points held, shots left, checkers back) of a turn."""
    hits, *others = features(after)
    return hits - board[1, 25], *others


def test_styles_show_in_games(net):
    hits, points, exposed, back = range(4)
    games = {
        name: np.mean([done(board, after) for board, _, after in turns(net, style, 200)], axis=0)
        for name, style in STYLES.items()
    }
    balanced = games["balanced"]
    assert games["aggressive"][points] > 1.005 * balanced[points]
    assert games["cautious"][exposed] < 0.97 * balanced[exposed]
    assert games["runner"][back] < 0.98 * balanced[back]

    # In games, more points held leave less to hit: compare plays in the same positions.
    same = list(turns(net, STYLES["balanced"], 100))
    plays = {}
    for name in ("balanced", "aggressive", "cautious"):
        player = LevelPlayer(Level("styled", style=STYLES[name]), net)
        plays[name] = np.mean(
            [done(board, player.choose(board, *roll)) for board, roll, _ in same], axis=0
        )
    assert plays["aggressive"][hits] > 1.02 * plays["balanced"][hits]
    assert plays["cautious"][hits] < plays["balanced"][hits]


def test_bad_styles_are_refused():
    with pytest.raises(BgrlError, match="loss of 0 or more"):
        Style("wild", loss=-0.1)
    with pytest.raises(BgrlError, match="finite"):
        Style("wild", 0.1, hits=float("nan"))
    with pytest.raises(BgrlError, match="no style 'wild'; known are balanced, aggressive"):
        style_named("wild")
