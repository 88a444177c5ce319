"""All distinct plays of a roll, as a numba kernel that allocates nothing.

The occupied points and the points that are open to the mover are bit masks, so the checkers that
a die can move come from one shift. Doubles are enumerated with the checkers' starting points never
rising, which meets every final position once. With two different dice a final position can be
met twice; an exact 30-bit signature of what changed finds those.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from bgrl.game.board import BAR, HOME, OFF, POINTS, SLOTS, swap_into

MAX_MOVES = 4
# The never-rising sequences of four starting points among 25: no position has more plays.
MAX_PLAYS = 20_475

_NO_MOVES = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW32 = np.uint64(0xFFFFFFFF)
_HIGH32 = np.uint64(0xFFFFFFFF00000000)


def new_play_buffer() -> np.ndarray:
    """An ``int8[MAX_PLAYS, 8]`` buffer for :func:`generate_plays`."""
    return np.empty((MAX_PLAYS, 2 * MAX_MOVES), dtype=np.int8)


@intrinsic
def lowest_bit(typingctx, mask):
    """The number of the lowest bit set in ``mask`` (int64), which may not be 0."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


@intrinsic
def _leading_zeros(typingctx, mask):
    def codegen(context, builder, signature, args):
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), codegen


@njit(cache=True, inline="always")
def _movable(occupied, open_points, die):
    """Mask of the slots from which ``die`` can be played."""
    if occupied >> BAR:
        return (occupied & (open_points << die)) & (1 << BAR)
    movable = occupied & (open_points << die)
    if occupied >> (HOME + 1) == 0 and occupied != 0:
        highest = 63 - _leading_zeros(occupied)
        if highest < die:
            movable |= 1 << highest
        else:
            movable |= occupied & (1 << die)
    return movable


@njit(cache=True, inline="always")
def _signature(from1, to1, from2, to2, blots):
    """What two moves change: the points left and reached, and the blots hit on the way."""
    hit1 = to1 if (blots >> to1) & 1 else 0
    hit2 = to2 if (blots >> to2) & 1 else 0
    if to1 == from2:
        a, b, c, d = from1, 0, to2, 0
    elif to2 == from1:
        a, b, c, d = from2, 0, to1, 0
    else:
        a, b, c, d = max(from1, from2), min(from1, from2), max(to1, to2), min(to1, to2)
    e, f = max(hit1, hit2), min(hit1, hit2)
    return (((((a << 5 | b) << 5 | c) << 5 | d) << 5 | e) << 5) | f


@njit(cache=True)
def generate_plays(board, die1, die2, plays):
    """Write every distinct play of a roll into ``plays`` and return how many there are.

    ``board`` is int8[2, 26], ``die1`` and ``die2`` are 1 to 6, ``plays`` is
    int8[MAX_PLAYS, 8]: a row holds up to four (from, to) pairs in an order in which they can be
    played, then -1. No two rows lead to the same position. Zero plays mean a dance. As many dice
    as possible are played, and the higher one if only one of two can be.
    """
    packed = plays.view(np.uint64)
    occupied = 0
    open_points = 0
    blots = 0
    for slot in range(1, SLOTS):
        occupied |= int(board[0, slot] > 0) << slot
    for point in range(1, POINTS + 1):
        theirs = board[1, 25 - point]
        open_points |= int(theirs < 2) << point
        blots |= int(theirs == 1) << point
    if occupied == 0:
        return 0
    if die1 == die2:
        return _doubles(board, occupied, open_points, die1, packed)
    return _two_dice(board, occupied, open_points, blots, max(die1, die2), min(die1, die2), packed)


@njit(cache=True, inline="always")
def _two_dice(board, occupied, open_points, blots, high, low, packed):
    count = 0
    first_high = _movable(occupied, open_points, high)
    for order in range(2):
        die_a, die_b = (high, low) if order == 0 else (low, high)
        firsts = first_high if order == 0 else _movable(occupied, open_points, low)
        while firsts:
            from1 = lowest_bit(firsts)
            firsts &= firsts - 1
            to1 = max(from1 - die_a, OFF)
            after = occupied
            if board[0, from1] == 1:
                after ^= 1 << from1
            if to1 > OFF:
                after |= 1 << to1
            seconds = _movable(after, open_points, die_b)
            while seconds:
                from2 = lowest_bit(seconds)
                seconds &= seconds - 1
                to2 = max(from2 - die_b, OFF)
                if order == 1 and from2 != to1 and to2 > OFF and (first_high >> from2) & 1:
                    continue  # the same two checkers with the high die first, met already
                signature = _signature(from1, to1, from2, to2, blots)
                entry = np.uint64(signature) << np.uint64(32)
                if order == 1 or from2 == to1:
                    known = False
                    for i in range(count):
                        if packed[i, 0] & _HIGH32 == entry:
                            known = True
                            break
                    if known:
                        continue
                packed[count, 0] = entry | np.uint64(from1 | to1 << 8 | from2 << 16 | to2 << 24)
                count += 1
    if count > 0:
        for i in range(count):
            packed[i, 0] |= _HIGH32
        return count
    for order in range(2):
        die = high if order == 0 else low
        firsts = _movable(occupied, open_points, die)
        while firsts:
            from1 = lowest_bit(firsts)
            firsts &= firsts - 1
            to1 = max(from1 - die, OFF)
            packed[count, 0] = (_NO_MOVES << np.uint64(16)) | np.uint64(from1 | to1 << 8)
            count += 1
        if count > 0:
            return count
    return 0


@njit(cache=True, inline="always")
def _after_double(board, occupied, slot, to, moved_away):
    """The mask after one more move from ``slot``, where ``moved_away`` checkers have left."""
    if board[0, slot] == moved_away:
        occupied ^= 1 << slot
    if to > OFF:
        occupied |= 1 << to
    return occupied


@njit(cache=True, inline="always")
def _not_above(slot):
    return (1 << (slot + 1)) - 1


@njit(cache=True)
def _doubles(board, occupied, open_points, die, packed):
    count = 0
    longest = 1
    mask1 = _movable(occupied, open_points, die)
    while mask1:
        f1 = lowest_bit(mask1)
        mask1 &= mask1 - 1
        t1 = max(f1 - die, OFF)
        row1 = np.uint64(f1 | t1 << 8)
        occupied1 = _after_double(board, occupied, f1, t1, 1)
        mask2 = _movable(occupied1, open_points, die) & _not_above(f1)
        if mask2 == 0 and longest == 1:
            packed[count, 0] = (_NO_MOVES << np.uint64(16)) | row1
            count += 1
        while mask2:
            f2 = lowest_bit(mask2)
            mask2 &= mask2 - 1
            t2 = max(f2 - die, OFF)
            row2 = row1 | np.uint64(f2 | t2 << 8) << np.uint64(16)
            left = 1 + (f2 == f1) - (f2 == t1)
            occupied2 = _after_double(board, occupied1, f2, t2, left)
            if longest < 2:
                longest = 2
                count = 0
            mask3 = _movable(occupied2, open_points, die) & _not_above(f2)
            if mask3 == 0 and longest == 2:
                packed[count, 0] = (_NO_MOVES << np.uint64(32)) | row2
                count += 1
            while mask3:
                f3 = lowest_bit(mask3)
                mask3 &= mask3 - 1
                t3 = max(f3 - die, OFF)
                row3 = row2 | np.uint64(f3 | t3 << 8) << np.uint64(32)
                left = 1 + (f3 == f1) + (f3 == f2) - (f3 == t1) - (f3 == t2)
                occupied3 = _after_double(board, occupied2, f3, t3, left)
                if longest < 3:
                    longest = 3
                    count = 0
                mask4 = _movable(occupied3, open_points, die) & _not_above(f3)
                if mask4 == 0 and longest == 3:
                    packed[count, 0] = (_NO_MOVES << np.uint64(48)) | row3
                    count += 1
                if mask4 and longest < 4:
                    longest = 4
                    count = 0
                while mask4:
                    f4 = lowest_bit(mask4)
                    mask4 &= mask4 - 1
                    t4 = max(f4 - die, OFF)
                    packed[count, 0] = row3 | np.uint64(f4 | t4 << 8) << np.uint64(48)
                    count += 1
    return count


@njit(cache=True, inline="always")
def make_moves(board, play):
    """Make ``play``, one row of :func:`generate_plays`, for the side NOT on roll of ``board``."""
    for i in range(0, 2 * MAX_MOVES, 2):
        if play[i] < 0:
            break
        to = play[i + 1]
        board[1, play[i]] -= 1
        board[1, to] += 1
        if to > OFF and board[0, 25 - to] == 1:
            board[0, 25 - to] = 0
            board[0, BAR] += 1


@njit(cache=True)
def apply_play(board, play, out):
    """Write into ``out`` (int8[2, 26]) the position that the opponent faces after ``play``.

    ``play`` is one row of :func:`generate_plays`; ``out`` may not be ``board``.
    """
    swap_into(board, out)
    make_moves(out, play)
