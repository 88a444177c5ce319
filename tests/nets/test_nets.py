"""The torch net, its numba twin and checkpoints."""

import json
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles.walk import random_boards

from bgrl.encoding import get_encoder
from bgrl.errors import BgrlError, CorruptFile, EncoderMismatch, SchemaMismatch
from bgrl.game import BACKGAMMON, HYPERGAMMON
from bgrl.game.outcomes import clamp, equity, flip
from bgrl.game.plays import apply_play, generate_plays, new_play_buffer
from bgrl.nets import FastNet, Net, Weights, boards_tensor, load_net, save_net
from bgrl.nets.kernels import best_play, new_scratch

SHAPES = [(8,), (16,), (40, 24), (128, 32), (33, 17, 5)]


def make(hidden=(40, 24), encoder="tesauro198", seed=3, variant=BACKGAMMON, products=False) -> Net:
    net = Net(get_encoder(encoder), hidden, variant, products).reset(seed)
    with torch.no_grad():
        # Biases that matter, and outputs far enough from 1/2 that the clamp has work to do.
        for layer in net.layers:
            layer.bias.normal_(0, 0.3, generator=torch.Generator().manual_seed(seed))
        net.layers[-1].weight.mul_(3)
    return net


def apply_net(net: Net, boards: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return net(boards_tensor(boards)).numpy()


@pytest.fixture(scope="module")
def boards() -> np.ndarray:
    return random_boards(6)


@pytest.mark.parametrize("encoder", ["tesauro198", "thermometer324"])
@pytest.mark.parametrize("products", [False, True])
@pytest.mark.parametrize("hidden", SHAPES)
def test_twin_computes_what_torch_does_for_any_shape(hidden, products, encoder, boards):
    net = make(hidden, encoder, products=products)
    np.testing.assert_allclose(
        FastNet.from_net(net).evaluate(boards), apply_net(net, boards), atol=1e-5
    )


def test_a_unit_can_be_a_product_of_two_relus(boards):
    net = make((3, 4), products=True)
    x = get_encoder("tesauro198").encode(boards).astype(float)
    (first, bias), *later = net.weights().layers
    assert first.shape == (6, 198)
    assert [weight.shape for weight, _ in later] == [(4, 3), (5, 4)]
    sums = np.maximum(x @ first.T + bias, 0)
    x = np.stack([sums[:, k] * sums[:, k + 3] for k in range(3)], axis=1)
    for weight, bias in later[:-1]:
        x = np.maximum(x @ weight.T + bias, 0)
    weight, bias = later[-1]
    p = 1 / (1 + np.exp(-(x @ weight.T + bias)))
    clamp(p, boards)
    np.testing.assert_allclose(apply_net(net, boards), p, atol=1e-6)


def test_twin_of_another_number_of_checkers():
    net = make(variant=HYPERGAMMON)
    boards = random_boards(30, variant=HYPERGAMMON)
    np.testing.assert_allclose(
        FastNet.from_net(net).evaluate(boards), apply_net(net, boards), atol=1e-5
    )


@pytest.mark.parametrize(
    ("hidden", "products"), [((8,), False), ((128, 32), False), ((72, 16), True)]
)
def test_plays_are_valued_like_whole_boards(hidden, products, boards):
    """The first layer's row exchanges give what evaluating each final position does."""
    fast = FastNet.from_net(make(hidden, products=products))
    buffer = new_play_buffer()
    after = np.empty((2, 26), np.int8)
    for board in boards[::9]:
        for roll in ((6, 5), (2, 1), (1, 1), (4, 4)):
            plays, equities, probabilities = fast.plays(board, *roll)
            n = generate_plays(board, *roll, buffer)
            np.testing.assert_array_equal(plays, buffer[:n])
            if n == 0:
                best_play(fast.arrays, fast.scratch, board, *roll, after)
                np.testing.assert_array_equal(after, board[::-1])
                continue
            finals = []
            for play in buffer[:n]:
                apply_play(board, play, after)
                finals.append(after.copy())
            plain = fast.evaluate(np.array(finals))
            np.testing.assert_allclose(probabilities, plain, atol=2e-6)
            np.testing.assert_allclose(equities, -equity(plain), atol=1e-5)
            best_play(fast.arrays, fast.scratch, board, *roll, after)
            np.testing.assert_array_equal(after, finals[np.argmax(equities)])
            np.testing.assert_allclose(
                fast.scratch.outputs, probabilities[np.argmax(equities)], atol=0
            )


def test_a_list_longer_than_a_chunk_is_valued_whole():
    board = np.zeros((2, 26), np.int8)
    board[0, 2:17] = 1
    board[1, 24] = 15
    fast = FastNet.from_net(make())
    plays, equities, _ = fast.plays(board, 1, 1)
    assert len(plays) > 1000
    after = np.empty((2, 26), np.int8)
    best_play(fast.arrays, new_scratch(fast.arrays), board, 1, 1, after)
    expected = np.empty((2, 26), np.int8)
    apply_play(board, plays[np.argmax(equities)], expected)
    np.testing.assert_array_equal(after, expected)
    np.testing.assert_allclose(-equity(fast.evaluate(after)), equities.max(), atol=1e-5)


def test_a_won_game_is_worth_its_points():
    board = np.zeros((2, 26), np.int8)
    board[0, [1, 0]] = [1, 14]
    board[1, [19, 6]] = [1, 14]
    fast = FastNet.from_net(make())
    _, equities, probabilities = fast.plays(board, 2, 1)
    assert equities.tolist() == [3.0]
    assert probabilities.tolist() == [[0, 0, 0, 1, 1]]


def test_outputs_are_always_possible(boards):
    for p, board in zip(apply_net(make(), boards), boards, strict=True):
        win, win_gammon, win_backgammon, lose_gammon, lose_backgammon = p
        assert 0 <= win_backgammon <= win_gammon <= win <= 1
        assert 0 <= lose_backgammon <= lose_gammon <= 1 - win
        if board[1, 0]:
            assert win_gammon == win_backgammon == 0
        if board[0, 0]:
            assert lose_gammon == lose_backgammon == 0
        assert -3 <= equity(p) <= 3


def test_t04_impossible_outputs_are_mended():
    p = np.array([[0.30, 0.35, 0.4, 0, 0]], np.float32)
    clamp(p, BACKGAMMON.start_board()[np.newaxis])
    np.testing.assert_allclose(p, [[0.3, 0.3, 0.3, 0, 0]])
    board = BACKGAMMON.start_board()
    board[1, [6, 0]] = [4, 1]
    p = np.array([[0.6, 0.2, 0.1, 0.2, 0.1]], np.float32)
    clamp(p, board[np.newaxis])
    np.testing.assert_allclose(p, [[0.6, 0, 0, 0.2, 0.1]])


def test_no_backgammon_in_a_race_from_outside_the_winners_home():
    board = np.zeros((2, 26), np.int8)
    board[0, 3] = 15
    board[1, 18] = 15
    p = np.array([[0.99, 0.9, 0.5, 0.001, 0.001]], np.float32)
    clamp(p, board[np.newaxis])
    np.testing.assert_allclose(p, [[0.99, 0.9, 0, 0.001, 0]])
    board[1, [18, 19]] = [14, 1]
    p = np.array([[0.99, 0.9, 0.5, 0.001, 0.001]], np.float32)
    clamp(p, board[np.newaxis])
    assert p[0, 2] == np.float32(0.5)


def test_t05_flip_and_equity():
    p = np.array([0.60, 0.20, 0.01, 0.12, 0.005])
    np.testing.assert_allclose(flip(p), [0.40, 0.12, 0.005, 0.20, 0.01])
    assert equity(p) == pytest.approx(0.285)
    assert equity(flip(p)) == pytest.approx(-0.285)
    # A variant without backgammons (a gammon counts 2).
    assert equity(p, (1, 2, 2)) == pytest.approx(0.28)


@given(st.lists(st.floats(0, 1, width=32), min_size=5, max_size=5))
def test_flipping_twice_changes_nothing(values):
    p = np.array(values, np.float32)
    np.testing.assert_allclose(flip(flip(p)), p, atol=1e-7)


def test_seed_determines_the_first_weights():
    assert make(seed=3).hash == make(seed=3).hash != make(seed=4).hash
    assert make((16, 8)).hash != make((8, 16)).hash


@pytest.mark.parametrize("products", [False, True])
def test_a_grown_net_computes_the_same_and_can_learn_more(boards, products):
    net = Net(get_encoder("tesauro198"), (16, 8), products=products).reset(1)
    grown = net.grown((20, 8), seed=2)
    x = boards_tensor(boards)
    torch.testing.assert_close(grown(x), net(x))
    grown(x).sum().backward()
    assert grown.layers[1].weight.grad[:, 16:].any()
    torch.testing.assert_close(net.grown((16, 8), 3)(x), net(x), rtol=0, atol=0)
    for narrower in ((20,), (20, 7), (20, 8, 8)):
        with pytest.raises(ValueError, match="can't grow"):
            net.grown(narrower, 2)


@pytest.mark.parametrize("products", [False, True])
def test_checkpoint_round_trip(tmp_path, products):
    net = make((24, 12), "thermometer324", products=products)
    save_net(net, tmp_path / "net", {"seed": 3})
    again = load_net(tmp_path / "net")
    assert again.hash == net.hash
    assert Weights.load(tmp_path / "net").made == {"seed": 3}
    board = BACKGAMMON.start_board()
    np.testing.assert_array_equal(
        FastNet.load(tmp_path / "net").evaluate(board), FastNet.from_net(net).evaluate(board)
    )


def edit(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("keep", [0, 7, 100, -1])
def test_weights_cut_short_are_named(tmp_path, keep):
    save_net(make(), tmp_path / "net")
    path = tmp_path / "net" / "net.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(CorruptFile, match=r"net\.safetensors"):
        load_net(tmp_path / "net")


def test_a_flipped_bit_in_the_weights_is_noticed(tmp_path):
    save_net(make(), tmp_path / "net")
    path = tmp_path / "net" / "net.safetensors"
    data = bytearray(path.read_bytes())
    data[-7] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptFile, match=r"net\.safetensors: the weights' hash"):
        load_net(tmp_path / "net")


def test_net_of_another_encoder_hash_is_refused(tmp_path):
    save_net(make(), tmp_path / "net")
    encoder = {"name": "tesauro198", "version": 0, "hash": "0123456789ab"}
    edit(tmp_path / "net" / "net.json", encoder=encoder)
    with pytest.raises(EncoderMismatch, match="tesauro198 0123456789ab, but here"):
        load_net(tmp_path / "net")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"format": "other"}, SchemaMismatch),
        ({"version": 99}, SchemaMismatch),
        ({"hidden": []}, CorruptFile),
        ({"hidden": [40, "24"]}, CorruptFile),
        ({"hidden": [40, 25]}, CorruptFile),
        ({"products": True}, CorruptFile),
        ({"products": 0}, CorruptFile),
        ({"hash": 5}, CorruptFile),
        ({"encoder": "tesauro198"}, CorruptFile),
        ({"variant": "chess"}, BgrlError),
        ({"encoder": {"name": "tesauro199", "hash": "0"}}, BgrlError),
        ({"made": None}, CorruptFile),
        ({"made": []}, CorruptFile),
        ({"made": "by hand"}, CorruptFile),
    ],
)
def test_description_that_does_not_fit_is_refused(tmp_path, changes, error):
    save_net(make(), tmp_path / "net")
    edit(tmp_path / "net" / "net.json", **changes)
    with pytest.raises(error, match=re.escape(str(tmp_path / "net"))):
        load_net(tmp_path / "net")


def test_folder_without_a_net(tmp_path):
    with pytest.raises(BgrlError, match="not a checkpoint folder"):
        load_net(tmp_path)


def test_hidden_layers_need_a_width():
    with pytest.raises(ValueError, match="hidden"):
        Net(get_encoder("tesauro198"), ())
