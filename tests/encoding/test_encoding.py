"""Encoders: the published definition, golden vectors, and the same bits everywhere."""

import numpy as np
import pytest
import torch
from oracles.walk import random_boards

from bgrl.encoding import ENCODERS, get_encoder
from bgrl.errors import BgrlError
from bgrl.game import BACKGAMMON, HYPERGAMMON
from bgrl.nets import Net, boards_tensor

# A hash changes when, and only when, an encoder computes something else: then its version must
# rise, and nets made with the old one no longer load.
HASHES = {"tesauro198": (1, 198, "56eecb7b94ad"), "thermometer324": (1, 324, "f0868e67d75c")}


def tesauro(board: np.ndarray) -> list[float]:
    """The 198 units as Sutton and Barto's text (2nd ed., 16.1) describes them, one by one."""
    units: list[float] = []
    for side in board.tolist():
        for n in side[1:25]:
            units += [n >= 1, n >= 2, n >= 3, (n - 3) / 2 if n > 3 else 0]
        units += [side[25] / 2, side[0] / 15]
    return [*map(float, units), 1.0, 0.0]


@pytest.mark.parametrize("name", ENCODERS)
def test_name_version_and_hash_are_the_known_ones(name):
    encoder = get_encoder(name)
    assert (encoder.version, encoder.n_inputs, encoder.hash) == HASHES[name]
    assert encoder.name == name


def test_tesauro198_is_the_published_encoding():
    boards = random_boards(3)
    expected = np.array([tesauro(board) for board in boards], np.float32)
    np.testing.assert_array_max_ulp(get_encoder("tesauro198").encode(boards), expected, 1)


def test_golden_vector_of_the_start():
    inputs = get_encoder("tesauro198").encode(BACKGAMMON.start_board())
    one_side = {
        5 * 4: 1, 5 * 4 + 1: 1, 5 * 4 + 2: 1, 5 * 4 + 3: 1,  # 5 on the 6 point
        7 * 4: 1, 7 * 4 + 1: 1, 7 * 4 + 2: 1,  # 3 on the 8 point
        12 * 4: 1, 12 * 4 + 1: 1, 12 * 4 + 2: 1, 12 * 4 + 3: 1,  # 5 on the midpoint
        23 * 4: 1, 23 * 4 + 1: 1,  # 2 on the 24 point
    }  # fmt: skip
    expected = np.zeros(198, np.float32)
    for unit, value in one_side.items():
        expected[unit] = expected[98 + unit] = value
    expected[196] = 1
    np.testing.assert_array_equal(inputs, expected)


def test_golden_vector_with_bar_and_borne_off():
    board = np.zeros((2, 26), np.int8)
    board[0, [25, 6, 0]] = [1, 4, 10]
    board[1, [1, 24, 0]] = [7, 2, 6]
    inputs = get_encoder("tesauro198").encode(board)
    on = {20: 1, 21: 1, 22: 1, 23: 0.5, 96: 0.5, 97: 10 / 15}
    on |= {98: 1, 99: 1, 100: 1, 101: 2, 98 + 92: 1, 98 + 93: 1, 98 + 97: 6 / 15, 196: 1}
    assert {i: pytest.approx(inputs[i]) for i in np.flatnonzero(inputs)} == on


def test_thermometer_counts_every_checker_off():
    board = HYPERGAMMON.start_board()
    board[0] = 0
    board[0, 0] = 3
    inputs = get_encoder("thermometer324").encode(board)
    assert inputs[147:162].tolist() == [1, 1, 1] + [0] * 12


@pytest.mark.parametrize("name", ENCODERS)
def test_torch_and_numba_encode_the_same_bits(name):
    """T18: a client's encoder that differs from the trainer's."""
    encoder = get_encoder(name)
    boards = random_boards(5)
    with torch.no_grad():
        by_torch = Net(encoder, (4,)).encode(boards_tensor(boards)).numpy()
    np.testing.assert_array_equal(by_torch, encoder.encode(boards))


@pytest.mark.parametrize("name", ENCODERS)
def test_table_rows_add_up_to_the_inputs(name):
    encoder = get_encoder(name)
    table = encoder.table(15)
    for board in random_boards(1):
        total = table[np.arange(52), board.reshape(-1)].sum(0, dtype=np.float64)
        np.testing.assert_allclose(total, encoder.encode(board), atol=1e-6)


@pytest.mark.parametrize("name", ENCODERS)
def test_distinct_boards_have_distinct_inputs(name):
    boards = np.unique(random_boards(20), axis=0)
    assert len(np.unique(get_encoder(name).encode(boards), axis=0)) == len(boards)


def test_every_input_is_described():
    encoder = get_encoder("tesauro198")
    assert encoder.describe(0) == "own point 1: n >= 1"
    assert encoder.describe(3) == "own point 1: (n - 3) / 2"
    assert encoder.describe(96) == "own bar: n / 2"
    assert encoder.describe(98 + 97) == "opponent's borne off: n / 15"
    assert (encoder.describe(196), encoder.describe(197)) == ("always 1", "always 0")
    described = {encoder.describe(i) for i in range(encoder.n_inputs)}
    assert len(described) == encoder.n_inputs


def test_unknown_encoder_lists_the_known_ones():
    with pytest.raises(BgrlError, match=r"unknown encoder 'tesauro'.*tesauro198"):
        get_encoder("tesauro")
