"""Positions on which an export is compared with the net that it came from."""

import numpy as np

from bgrl.encoding import Encoder
from bgrl.errors import InvalidPosition
from bgrl.game import Position, Variant
from bgrl.game.board import BAR, OFF, POINTS, SLOTS, empty_board, is_race, loss_level
from bgrl.game.dice import Dice
from bgrl.game.plays import apply_play, generate_plays, new_play_buffer
from bgrl.nets import FastNet
from bgrl.nets.kernels import best_play

KINDS = ("contact", "bar", "race", "bear-off", "over")


def kind_of(board: np.ndarray) -> str:
    """Which of :data:`KINDS` a board int8[2, 26] is; the later ones in the list come first."""
    if loss_level(board):
        return "over"
    if board[0, OFF] or board[1, OFF]:
        return "bear-off"
    if is_race(board):
        return "race"
    return "bar" if board[:, BAR].any() else "contact"


def sampled_positions(net: FastNet, count: int, seed: int) -> np.ndarray:
    """``count`` distinct positions int8[count, 2, 26] out of games, of all kinds alike.

    Half of the games are played by ``net``, half by chance. The same arguments give the same
    positions. A kind of which the games have too few leaves its share to the others.
    """
    random = np.random.default_rng(seed)
    found: dict[str, dict[bytes, np.ndarray]] = {kind: {} for kind in KINDS}
    share = -(-count // len(KINDS))
    game = 0
    # Deep contact is common and the end of a game rare: it takes about as many games as ends.
    while game < 20 or (game < 4 * share and min(map(len, found.values())) < share):
        for board in _game(net, seed, game, by_chance=game % 2 == 1):
            found[kind_of(board)].setdefault(board.tobytes(), board)
        game += 1
    queues = [[*boards.values()] for boards in found.values()]
    for queue in queues:
        random.shuffle(queue)
    chosen: list[np.ndarray] = []
    while len(chosen) < count and any(queues):
        chosen += [queue.pop() for queue in queues if queue]
    return np.stack(chosen[:count])


def constructed_positions(variant: Variant, seed: int) -> np.ndarray:
    """Positions int8[N, 2, 26] with every possible count on every slot of either side.

    The other checkers stand at random. Counts that no position can hold are left out.
    """
    random = np.random.default_rng(seed)
    boards = []
    for side in (0, 1):
        for slot in range(SLOTS):
            for count in range(1, variant.checkers + 1):
                board = _with(variant, side, slot, count, random)
                if board is not None:
                    boards.append(board)
    return np.stack(boards)


def covering(encoder: Encoder, boards: np.ndarray) -> np.ndarray:
    """Indices int64[K] of few of ``boards`` in which every input takes every sign it takes in all.

    Greedy: always the board that shows the most inputs not yet seen at zero or above it.
    """
    positive = encoder.encode(boards) > 0
    shown = np.concatenate([positive, ~positive], axis=1)
    missing = shown.any(axis=0)
    chosen = []
    while missing.any():
        best = int(np.argmax((shown & missing).sum(axis=1)))
        chosen.append(best)
        missing &= ~shown[best]
    return np.array(chosen, np.int64)


def _game(net: FastNet, seed: int, game: int, by_chance: bool) -> list[np.ndarray]:
    """Every position of one game, the finished one last; at most 400."""
    dice, choices = Dice(seed, game), Dice(seed, game, purpose=1)
    plays = new_play_buffer()
    boards = [net.variant.start_board()]
    die1, die2 = dice.opening_roll()
    while not loss_level(boards[-1]) and len(boards) < 400:
        after = empty_board()
        if by_chance and (n := generate_plays(boards[-1], die1, die2, plays)):
            apply_play(boards[-1], plays[choices.below(n)], after)
        else:
            best_play(net.arrays, net.scratch, boards[-1], die1, die2, after)
        boards.append(after)
        die1, die2 = dice.roll()
    return boards


def _with(
    variant: Variant, side: int, slot: int, count: int, random: np.random.Generator
) -> np.ndarray | None:
    """A board with exactly ``count`` checkers of ``side`` on ``slot``, or None if there is none."""
    for _ in range(20):
        board = empty_board()
        board[side, slot] = count
        others = [s for s in range(SLOTS) if s != slot]
        for _ in range(variant.checkers - count):
            board[side, random.choice(others)] += 1
        taken = 25 - np.flatnonzero(board[side, 1 : POINTS + 1]) - 1
        free = [s for s in range(SLOTS) if s not in taken]
        for _ in range(variant.checkers):
            board[1 - side, random.choice(free)] += 1
        try:
            return Position(board, variant).board.copy()
        except InvalidPosition:
            continue
    return None
