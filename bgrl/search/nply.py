"""n-ply lookahead: what a net thinks of a position once every roll has been looked through.

Plies count as GNU Backgammon counts them. At 0 plies a position is worth what the net says. At n
plies it is worth the mean, over the 21 rolls by their ways, of what it is worth at n - 1 plies,
seen from the other side, after the best play of each. Finished games and, given the databases,
bear-offs have their exact values at any depth.

Looking at every play of every roll at full depth (:data:`FULL`) grows 400-fold a ply. Filters drop
most plays by their value at fewer plies; they are data (:class:`Filters`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from bgrl.errors import BgrlError
from bgrl.game.board import HOME, SLOTS, loss_level, swap_into
from bgrl.game.dice import ROLLS, mix
from bgrl.game.outcomes import clamp_to, equity, equity1, loss_into, possible
from bgrl.game.plays import MAX_PLAYS, apply_play, generate_plays
from bgrl.nets import FastNet, Weights
from bgrl.nets.kernels import (
    NetArrays,
    Scratch,
    evaluate_board,
    evaluate_listed,
    evaluate_roll,
    lean,
    prepare_rolls,
)
from bgrl.search.bearoff import NO_BEAROFF, Bearoff, bearoff_into, in_database

MAX_PLIES = 3


class MoveFilter(NamedTuple):
    """Which of the ranked plays stay: the ``accept`` best, and up to ``extra`` more whose equity
    is at most ``threshold`` points less than the best one's. At least one always stays."""

    accept: int
    extra: int = 0
    threshold: float = 0.0


ALL = MoveFilter(MAX_PLAYS)
BEST = MoveFilter(1)


@dataclass(frozen=True)
class Filters:
    """What a search leaves out.

    ``root``: element p chooses, among the plays to decide on that are left, those to look at more
    deeply than p plies, by their values at p plies; None (and what is missing) keeps all of them,
    unvalued at p plies. ``reply`` chooses, inside the search, the plays of a roll that are looked
    at more deeply, by their values at 0 plies.
    """

    root: tuple[MoveFilter | None, ...] = ()
    reply: MoveFilter = ALL


FULL = Filters()
# GNU Backgammon's "normal" and "tiny" move filters, and its choice of the best reply at 0 plies.
NORMAL = Filters((MoveFilter(0, 8, 0.16), None, MoveFilter(0, 2, 0.04)), BEST)
TINY = Filters((MoveFilter(0, 5, 0.08), None, MoveFilter(0, 2, 0.02)), BEST)


@dataclass(frozen=True)
class Pruner:
    """A cheap net that chooses, where the best play of a roll ends the search, the ``keep`` plays
    that the net itself looks at."""

    net: FastNet
    keep: int = 4

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise BgrlError(f"a pruner keeps at least 1 play, not {self.keep}")


class PrunerArrays(NamedTuple):
    """A pruner as the kernels take it; one that keeps MAX_PLAYS evaluates nothing."""

    net: NetArrays
    scratch: Scratch
    keep: int
    values: np.ndarray  # float32[MAX_PLAYS]


class Cache(NamedTuple):
    """Values met before, each in the one place that its hash names; the newest stays."""

    keys: np.ndarray  # uint64[size, 5]: the board's counts, four bits each, and plies; or zeros
    values: np.ndarray  # float32[size, 5]


class Work(NamedTuple):
    """Working memory of one search; the first index is the plies left to look."""

    values: np.ndarray  # float32[MAX_PLIES + 1, MAX_PLAYS]: equities of plays for the mover
    probabilities: np.ndarray  # float32[MAX_PLIES + 1, MAX_PLAYS, 5], for the opponent
    boards: np.ndarray  # int8[MAX_PLIES + 1, MAX_PLAYS, 2, 26]: what the opponent faces
    totals: np.ndarray  # float64[MAX_PLIES + 1, 5]
    best: np.ndarray  # float32[MAX_PLIES + 1, 5]
    value: np.ndarray  # float32[MAX_PLIES + 1, 5]
    key: np.ndarray  # uint64[5]


def new_cache(size: int) -> Cache:
    """An empty cache of ``size`` places, a power of two, or 0 for none; 60 bytes each."""
    return Cache(np.zeros((size, 5), np.uint64), np.zeros((size, 5), np.float32))


def new_work() -> Work:
    """Working memory for one thread."""
    levels = MAX_PLIES + 1
    return Work(
        np.zeros((levels, MAX_PLAYS), np.float32),
        np.zeros((levels, MAX_PLAYS, 5), np.float32),
        np.zeros((levels, MAX_PLAYS, 2, SLOTS), np.int8),
        np.zeros((levels, 5)),
        np.zeros((levels, 5), np.float32),
        np.zeros((levels, 5), np.float32),
        np.zeros(5, np.uint64),
    )


@lean
def _place(cache, key, board, plies):
    """The place in ``cache`` of ``board`` at so many plies, and its exact ``key``."""
    code = np.uint64(0x9E3779B97F4A7C15)
    for word in range(4):
        packed = np.uint64(0)
        for slot in range(13 * (word % 2), 13 * (word % 2) + 13):
            packed = packed << np.uint64(4) | np.uint64(board[word // 2, slot])
        key[word] = packed
        code = mix(code ^ packed)
    key[4] = np.uint64(plies)
    return np.int64(mix(code ^ key[4]) & np.uint64(cache.keys.shape[0] - 1))


@lean
def _find(cache, key, board, plies, out):
    """Whether ``cache`` holds the value, written into ``out``."""
    at = _place(cache, key, board, plies)
    for word in range(5):
        if cache.keys[at, word] != key[word]:
            return False
    for k in range(5):
        out[k] = cache.values[at, k]
    return True


@lean
def _keep(cache, key, board, plies, value):
    at = _place(cache, key, board, plies)
    for word in range(5):
        cache.keys[at, word] = key[word]
    for k in range(5):
        cache.values[at, k] = value[k]


@lean
def value_plays(net, scratch, db, board, die1, die2, values, probabilities):
    """``bgrl.nets.kernels.evaluate_roll``, bear-offs by ``db``; both arrays must be long enough."""
    n = evaluate_roll(net, scratch, board, die1, die2, values, probabilities)
    if _may_reach(db, board):
        for i in range(n):
            apply_play(board, scratch.plays[i], scratch.best_board)
            if in_database(db, scratch.best_board):
                bearoff_into(db, scratch.best_board, probabilities[i])
                values[i] = -equity1(probabilities[i], 0, net.points)
    return n


@lean
def _may_reach(db, board):
    """Whether a play from ``board`` may lead into ``db``: its opponent has come home."""
    outside = 0
    for slot in range(HOME + 1, SLOTS):
        outside += board[1, slot]
    return outside == 0 and db.all_off.shape[0] > 0


@lean
def _candidates(net, scratch, db, reply, board, die1, die2, values, probabilities, boards):
    """The plays of a roll that ``reply`` lets through; returns their number, at least 1.

    Writes what the opponent faces after each into ``boards`` and its value at 0 plies into
    ``probabilities``. A single one is the best. A dance counts as a play.
    """
    n = value_plays(net, scratch, db, board, die1, die2, values, probabilities)
    if n == 0:
        swap_into(board, boards[0])
        for k in range(5):
            probabilities[0, k] = scratch.outputs[k]
        if in_database(db, boards[0]):
            bearoff_into(db, boards[0], probabilities[0])
        return 1
    accept, extra, threshold = reply
    if n <= accept:
        for i in range(n):
            apply_play(board, scratch.plays[i], boards[i])
        return n
    kept = 0
    least = np.float32(0.0)
    while kept < max(accept + extra, 1):
        best = -1
        for i in range(n):
            if values[i] > -1e8 and (best < 0 or values[i] > values[best]):
                best = i
        if best < 0:
            break
        if kept == 0:
            least = values[best] - np.float32(threshold)
        elif kept >= accept and values[best] < least:
            break
        apply_play(board, scratch.plays[best], boards[kept])
        if kept == 0:
            for k in range(5):
                scratch.outputs[k] = probabilities[best, k]
        values[best] = -1e9
        kept += 1
    for k in range(5):
        probabilities[0, k] = scratch.outputs[k]
    return kept


@lean
def _best_reply(net, scratch, pruner, board, die1, die2):
    """``scratch.outputs`` of ``evaluate_roll``, for the best play of those that pass ``pruner``."""
    plays = scratch.plays
    n = generate_plays(board, die1, die2, plays)
    if n > pruner.keep:
        small = pruner.scratch
        values = pruner.values
        evaluate_listed(pruner.net, small, board, plays, n, values, small.no_probabilities)
        for _ in range(pruner.keep):
            best = 0
            for i in range(1, n):
                if values[i] > values[best]:
                    best = i
            values[best] = -1e9
        kept = 0
        for i in range(n):
            if values[i] == np.float32(-1e9):
                for k in range(plays.shape[1]):
                    plays[kept, k] = plays[i, k]
                kept += 1
        n = kept
    evaluate_listed(net, scratch, board, plays, n, scratch.best_value, scratch.no_probabilities)


@lean
def value_into(plies, net, scratch, pruner, db, cache, reply, rolls, work, board, out):
    """The five probabilities of ``board`` (int8[2, 26]) at ``plies`` into ``out`` (float32[5]).

    ``db`` may be NO_BEAROFF, ``cache`` of size 0; ``reply`` is a MoveFilter as a plain tuple.
    """
    level = loss_level(board)
    if level > 0:
        loss_into(level, out, 0)
        return
    if in_database(db, board):
        bearoff_into(db, board, out)
        return
    if plies == 0:
        evaluate_board(net, scratch, board, out)
        return
    caching = cache.keys.shape[0] > 0
    if caching and _find(cache, work.key, board, plies, out):
        return
    total = work.totals[plies]
    for k in range(5):
        total[k] = 0.0
    # One ply without databases needs no list of plays, only the best one's value.
    best_only = plies == 1 and not _may_reach(db, board)
    boards = work.boards[plies]
    best = work.best[plies]
    value = work.value[plies]
    if best_only and pruner.keep < MAX_PLAYS:
        prepare_rolls(pruner.net, pruner.scratch, board)
    for r in range(rolls.shape[0]):
        if r == 0 or plies > 1:
            prepare_rolls(net, scratch, board)
        if best_only:
            _best_reply(net, scratch, pruner, board, rolls[r, 0], rolls[r, 1])
            _add(total, scratch.outputs, rolls[r, 2])
            continue
        n = _candidates(
            net,
            scratch,
            db,
            reply if plies > 1 else (1, 0, 0.0),
            board,
            rolls[r, 0],
            rolls[r, 1],
            work.values[plies],
            work.probabilities[plies],
            boards,
        )
        if plies == 1:
            _add(total, work.probabilities[plies, 0], rolls[r, 2])
            continue
        highest = np.float32(-1e9)
        for i in range(n):
            value_into(
                plies - 1, net, scratch, pruner, db, cache, reply, rolls, work, boards[i], value
            )
            mine = -equity1(value, 0, net.points)
            if mine > highest:
                highest = mine
                for k in range(5):
                    best[k] = value[k]
        _add(total, best, rolls[r, 2])
    for k in range(5):
        out[k] = total[k] / 36.0
    clamp_to(out, 0, possible(board))
    if caching:
        _keep(cache, work.key, board, plies, out)


@lean
def _add(total, theirs, ways):
    """Add what the opponent expects (float32[5]) to the player's total, ``ways`` times."""
    total[0] += ways * (1.0 - theirs[0])
    total[1] += ways * theirs[3]
    total[2] += ways * theirs[4]
    total[3] += ways * theirs[1]
    total[4] += ways * theirs[2]


@njit(cache=True, nogil=True)
def values_into(plies, net, scratch, pruner, db, cache, reply, rolls, work, boards, out):
    """:func:`value_into` for each of ``boards`` (int8[N, 2, 26]) into ``out`` float32[N, 5]."""
    for i in range(boards.shape[0]):
        value_into(plies, net, scratch, pruner, db, cache, reply, rolls, work, boards[i], out[i])


@njit(cache=True, nogil=True)
def _root_plays(net, scratch, db, board, die1, die2, work):
    prepare_rolls(net, scratch, board)
    n = value_plays(net, scratch, db, board, die1, die2, work.values[0], work.probabilities[0])
    for i in range(n):
        apply_play(board, scratch.plays[i], work.boards[0, i])
    return n


class RankedPlays(NamedTuple):
    """The plays of a roll, as the generator lists them, and what the search found."""

    plays: np.ndarray  # int8[n, 8], as bgrl.game.plays.generate_plays
    boards: np.ndarray  # int8[n, 2, 26]: what the opponent faces
    equities: np.ndarray  # float32[n]: cubeless, in points, for the mover
    probabilities: np.ndarray  # float32[n, 5], for the opponent
    plies: np.ndarray  # int64[n]: how deeply each play was looked at

    def order(self) -> np.ndarray:
        """int64[n], best first: what was looked at more deeply, then by equity, then as listed."""
        return np.lexsort((-self.equities, -self.plies))


class Searcher:
    """A net that looks ahead, with the memory of one thread.

    ``net``: the numba twin, or weights; ``plies``: 0 to 3; ``filters``: what to leave out;
    ``bearoff``: databases to end in, or None; ``cache``: places for values met before, rounded up
    to a power of two, 0 for none. The cache changes no result. ``pruner``: a net to choose the
    plays that are looked at in the last ply, or None to look at all.

    Raises BgrlError for other plies, or for a pruner of another variant.
    """

    def __init__(
        self,
        net: FastNet | Weights,
        plies: int,
        filters: Filters = NORMAL,
        bearoff: Bearoff | None = None,
        cache: int = 1 << 16,
        pruner: Pruner | None = None,
    ):
        _check_plies(plies)
        self.net = FastNet(net) if isinstance(net, Weights) else net
        if pruner and pruner.net.variant != self.net.variant:
            raise BgrlError(
                f"a pruner for {pruner.net.variant.name}, but a net for {self.net.variant.name}"
            )
        self.plies = plies
        self.filters = filters
        self.bearoff = bearoff
        self.pruner = pruner
        small, keep = (pruner.net, pruner.keep) if pruner else (self.net, MAX_PLAYS)
        self._pruner = PrunerArrays(
            small.arrays, small.scratch, min(keep, MAX_PLAYS), np.zeros(MAX_PLAYS, np.float32)
        )
        self._db = bearoff.arrays if bearoff else NO_BEAROFF
        self._cache = new_cache(1 << (cache - 1).bit_length() if cache > 0 else 0)
        self._work = new_work()
        accept, extra, threshold = filters.reply
        self._reply = (int(accept), int(extra), float(threshold))

    def __reduce__(self) -> tuple:
        size = len(self._cache.keys)
        return Searcher, (self.net, self.plies, self.filters, self.bearoff, size, self.pruner)

    def evaluate(self, boards: np.ndarray, plies: int | None = None) -> np.ndarray:
        """The five probabilities float32[N, 5] of ``boards`` int8[N, 2, 26] (or of one board).

        For the player on roll before the dice, at the searcher's plies unless told otherwise.
        Raises BgrlError for plies other than 0 to 3.
        """
        plies = self.plies if plies is None else plies
        _check_plies(plies)
        boards = _boards(boards)
        flat = boards.reshape(-1, 2, SLOTS)
        out = np.empty((len(flat), 5), np.float32)
        values_into(
            plies,
            self.net.arrays,
            self.net.scratch,
            self._pruner,
            self._db,
            self._cache,
            self._reply,
            ROLLS,
            self._work,
            flat,
            out,
        )
        return out[0] if boards.ndim == 2 else out

    def plays(self, board: np.ndarray, die1: int, die2: int, every: bool = False) -> RankedPlays:
        """Every play of a roll from ``board`` (int8[2, 26]), none for a dance.

        ``every``: look at all of them at full depth, whatever the filters at the root say.
        """
        return self._plays(board, die1, die2, () if every else self.filters.root, least=1)

    def _plays(
        self,
        board: np.ndarray,
        die1: int,
        die2: int,
        root: Sequence[MoveFilter | None],
        least: int,
    ) -> RankedPlays:
        """:meth:`plays`, looking more deeply only while ``least`` plays or more are left."""
        board = _boards(board)
        work = self._work
        net, scratch = self.net.arrays, self.net.scratch
        n = _root_plays(net, scratch, self._db, board, die1, die2, work)
        found = RankedPlays(
            scratch.plays[:n].copy(),
            work.boards[0, :n].copy(),
            work.values[0, :n].copy(),
            work.probabilities[0, :n].copy(),
            np.zeros(n, np.int64),
        )
        left = np.arange(n)
        for plies in range(self.plies):
            chosen = root[plies] if plies < len(root) else None
            if chosen is not None:
                self._look(found, left, plies)
                left = left[_chosen(found.equities[left], chosen)]
                if len(left) < least:
                    return found
        self._look(found, left, self.plies)
        return found

    def _look(self, found: RankedPlays, which: np.ndarray, plies: int) -> None:
        """Value the plays numbered ``which`` at ``plies``."""
        if plies == 0 or len(which) == 0:
            return
        theirs = self.evaluate(found.boards[which], plies)
        found.probabilities[which] = theirs
        found.equities[which] = -equity(theirs, self.net.variant.points)
        found.plies[which] = plies

    def best_play(self, board: np.ndarray, die1: int, die2: int) -> np.ndarray:
        """The position int8[2, 26] that the opponent faces after the best play, or a dance."""
        # Where a single play is left, it is the best without a deeper look.
        found = self._plays(board, die1, die2, self.filters.root, least=2)
        if len(found.boards) == 0:
            after = np.empty((2, SLOTS), np.int8)
            swap_into(_boards(board), after)
            return after
        return found.boards[found.order()[0]]


def _check_plies(plies: int) -> None:
    """Raise BgrlError unless the search has memory for so many plies."""
    if not 0 <= plies <= MAX_PLIES:
        raise BgrlError(f"a search looks 0 to {MAX_PLIES} plies ahead, not {plies}")


def _boards(boards: np.ndarray) -> np.ndarray:
    """The boards as one kind of array (a read-only one would have the kernels compiled again)."""
    return np.require(boards, np.int8, ["C", "W"])


def _chosen(equities: np.ndarray, chosen: MoveFilter) -> np.ndarray:
    """The positions in ``equities`` of those that ``chosen`` keeps, in their order."""
    ranked = np.argsort(-equities, kind="stable")
    near = equities[ranked] >= equities[ranked[0]] - chosen.threshold if len(ranked) else ranked
    rank = np.arange(len(ranked))
    keep = (rank < max(chosen.accept, 1)) | (near & (rank < chosen.accept + chosen.extra))
    return np.sort(ranked[keep])
