"""Hypothesis strategies for positions that a game can reach, or that at least look like it."""

import numpy as np
from hypothesis import strategies as st

from bgrl.errors import InvalidPosition
from bgrl.game import BACKGAMMON, HYPERGAMMON, NACKGAMMON, Position

variants = st.sampled_from([BACKGAMMON, NACKGAMMON, HYPERGAMMON])
dice = st.tuples(st.integers(1, 6), st.integers(1, 6))


@st.composite
def positions(draw, variant=variants, over=True) -> Position:
    """Any valid position of ``variant``; unless ``over``, one in which the game goes on."""
    rules = draw(variant)
    # Few distinct slots make points, and so blocked moves and doublets, common.
    slots = st.lists(st.integers(0, 25), min_size=1, max_size=8)
    mine = draw(slots)
    theirs = [slot for slot in draw(slots) if slot in (0, 25) or 25 - slot not in mine] or [0]
    board = np.zeros((2, 26), dtype=np.int64)
    for side, choices in enumerate((mine, theirs)):
        for slot in draw(
            st.lists(st.sampled_from(choices), min_size=rules.checkers, max_size=rules.checkers)
        ):
            board[side, slot] += 1
    try:
        position = Position(board, rules)
    except InvalidPosition:
        position = Position.start(rules)
    return Position.start(rules) if position.is_over and not over else position
