"""A net that looks ahead, by name and as a player."""

import pickle

import numpy as np
import pytest

from bgrl.encoding import get_encoder
from bgrl.errors import BgrlError
from bgrl.evaluate import play_match
from bgrl.game import BACKGAMMON, Position
from bgrl.nets.net import Net, save_net
from bgrl.players import load_player
from bgrl.players.search import SearchPlayer
from bgrl.search import Searcher
from bgrl.search.bearoff import build


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A checkpoint, in a current folder with small databases."""
    monkeypatch.chdir(tmp_path)
    build("data/bearoff", 4, 2)
    return save_net(Net(get_encoder("tesauro198"), (16,)).reset(1), tmp_path / "small")


def test_by_name(folder):
    player = load_player(f"{folder}@1ply")
    assert isinstance(player, SearchPlayer)
    assert player.name == "small@1ply"
    assert player.searcher.bearoff is not None
    assert player.identity != load_player(f"{folder}@2ply").identity
    with pytest.raises(BgrlError, match="'random' is no net"):
        load_player("random@1ply")
    with pytest.raises(BgrlError, match="unknown player"):
        load_player(f"{folder}@4ply")


def test_its_identity_names_the_databases(folder):
    player = load_player(f"{folder}@0ply")
    assert player.searcher.bearoff.hash in player.identity
    build("data/bearoff", 4, 1)
    other = load_player(f"{folder}@0ply")
    assert other.identity != player.identity
    without = SearchPlayer(Searcher(player.searcher.net, 0))
    assert without.identity.endswith(", without bear-off databases")


def test_ranks_and_chooses(folder, decisions):
    player = load_player(f"{folder}@1ply")
    agree = 0
    for board, die1, die2 in decisions[::300]:
        ranked = player.rank_plays(Position(board), (die1, die2))
        chosen = player.choose(board, die1, die2)
        if not ranked:
            np.testing.assert_array_equal(chosen, board[::-1])
            continue
        scores = [play.score for play in ranked]
        assert scores == sorted(scores, reverse=True)
        equities = [player.evaluate(play.position.swap().swap()).equity for play in ranked]
        np.testing.assert_allclose(scores, [-e for e in equities], atol=1e-5)
        agree += np.array_equal(chosen, ranked[0].position.board)
    assert agree >= 5


def test_zero_plies_play_as_the_net_until_bearing_off(folder, decisions):
    player, net = load_player(f"{folder}@0ply"), load_player(folder)
    for board, die1, die2 in decisions[:200]:
        if not board[1, 7:].any():
            continue
        np.testing.assert_array_equal(
            player.choose(board, die1, die2), net.choose(board, die1, die2)
        )


def test_plays_the_same_match_after_pickling(folder):
    player = load_player(f"{folder}@1ply")
    again = pickle.loads(pickle.dumps(player))
    board = BACKGAMMON.start_board()
    np.testing.assert_array_equal(player.choose(board, 3, 1), again.choose(board, 3, 1))
    first = play_match(player, load_player("random"), 2, 1)
    second = play_match(again, load_player("random"), 2, 1)
    np.testing.assert_array_equal(first.scores, second.scores)
