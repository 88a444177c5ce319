"""The rules of backgammon in plain Python, written to be read and checked by eye.

A side is a tuple of 26 counts seen by its owner: 0 borne off, 1 to 24 the points, 25 the bar. A
position is the pair (mover, opponent). The mover's point p is the opponent's point 25 - p.
Nothing here shares code, or an idea for speed, with the package.
"""

OFF, BAR = 0, 25

Side = tuple[int, ...]
Sides = tuple[Side, Side]


def one_checker_moves(sides: Sides, die: int) -> set[Sides]:
    """Every position that one legal movement of one checker by one die leads to."""
    mover, opponent = sides
    if mover[BAR] > 0:
        sources = [BAR]  # a checker on the bar must enter before any other moves
    else:
        sources = [point for point in range(1, 25) if mover[point] > 0]
    results = set()
    for source in sources:
        if source > die:
            target = source - die
            facing = 25 - target
            if opponent[facing] >= 2:
                continue  # the point is held
        else:
            if any(mover[slot] > 0 for slot in range(7, 26)):
                continue  # bearing off needs every checker home
            if source < die and any(mover[slot] > 0 for slot in range(source + 1, 26)):
                continue  # a larger die bears off only from the highest occupied point
            target = OFF
        new_mover, new_opponent = list(mover), list(opponent)
        new_mover[source] -= 1
        new_mover[target] += 1
        if target != OFF and opponent[facing] == 1:
            new_opponent[facing] = 0
            new_opponent[BAR] += 1
        results.add((tuple(new_mover), tuple(new_opponent)))
    return results


def play_in_order(sides: Sides, dice: list[int]) -> list[set[Sides]]:
    """Element k holds every position reached by playing the first k dice, in the given order."""
    reached = [{sides}]
    for die in dice:
        reached.append(
            {after for before in reached[-1] for after in one_checker_moves(before, die)}
        )
    return reached


def plain_plays(sides: Sides, die1: int, die2: int) -> tuple[int, set[Sides]]:
    """The largest number of dice that can be played, and every position that a legal play leads to.

    The mover stays first in the resulting pairs. With no legal play: (0, empty set).
    """
    if die1 == die2:
        reached = play_in_order(sides, [die1] * 4)
        for used in (4, 3, 2, 1):
            if reached[used]:
                return used, reached[used]
        return 0, set()
    high, low = max(die1, die2), min(die1, die2)
    high_first = play_in_order(sides, [high, low])
    low_first = play_in_order(sides, [low, high])
    if high_first[2] or low_first[2]:
        return 2, high_first[2] | low_first[2]  # both dice whenever that is possible
    if high_first[1]:
        return 1, high_first[1]  # either, but not both: the higher
    if low_first[1]:
        return 1, low_first[1]
    return 0, set()


def plain_result(sides: Sides) -> int:
    """0 while the game goes on; 1, 2 or 3 if the mover has just won that many points."""
    mover, opponent = sides
    if sum(mover) == 0 or sum(mover) > mover[OFF]:
        return 0
    if opponent[OFF] > 0:
        return 1
    in_winners_home_or_bar = sum(opponent[19:26])
    return 3 if in_winners_home_or_bar else 2


def pips(side: Side) -> int:
    return sum(slot * count for slot, count in enumerate(side))
