"""A Hypothesis strategy for positions of any number of checkers, also such as no game reaches."""

from hypothesis import strategies as st

from .plain_rules import BAR, OFF

ROLLS = [(high, low) for high in range(1, 7) for low in range(1, high + 1)]
REGIONS = {
    "anywhere": range(26),
    "bearing off": range(7),
    "nearly home": range(9),
    "long way": range(12, 26),
    "bar and home": [*range(7), BAR, BAR],
    "bar and anywhere": [*range(26), *[BAR] * 5],
}


@st.composite
def any_positions(draw):
    """(mover, opponent) with 1, 3, 15 or 20 checkers a side, no point held by both."""
    checkers = draw(st.sampled_from([1, 3, 15, 15, 15, 20]))

    def some(slots):
        """A side of stacks of one to three on these slots, the rest borne off."""
        stack = draw(st.sampled_from([1, 1, 2, 3]))
        least = draw(st.sampled_from([0, checkers // stack]))
        one = st.lists(st.sampled_from(slots), min_size=least, max_size=checkers)
        placed = [slot for slot in draw(one) for _ in range(stack)][:checkers]
        placed += [OFF] * (checkers - len(placed))
        return tuple(placed.count(slot) for slot in range(26))

    mover = some(list(REGIONS[draw(st.sampled_from(sorted(REGIONS)))]))
    free = [s for s in range(26) if s in (OFF, BAR) or not mover[25 - s]]
    opponents_home_only = draw(st.booleans())  # where his points block entering checkers
    return mover, some([s for s in free if s <= 8] if opponents_home_only else free)
