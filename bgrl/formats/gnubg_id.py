"""GNU Backgammon's match ID, and the pair of position ID and match ID that it calls a GNUbg ID.

Source: GNU Backgammon manual, "A technical description of the match ID", which stops at 66 bits;
gnubg 1.07 adds a 67th that is set if the Jacoby rule is off.
"""

from bgrl.errors import InvalidPosition
from bgrl.formats.match_state import STATUSES, MatchState, Offer
from bgrl.game import BACKGAMMON, Position, Variant
from bgrl.game.position import decode_id, encode_id

# The fields in their order and how many bits each takes, lowest bit first.
_FIELDS = {
    "cube": 4,
    "owner": 2,
    "on_roll": 1,
    "crawford": 1,
    "status": 3,
    "to_decide": 1,
    "doubled": 1,
    "resignation": 2,
    "die1": 3,
    "die2": 3,
    "length": 15,
    "score0": 15,
    "score1": 15,
    "no_jacoby": 1,
}
_BYTES = 9
_CENTRED = 3


def parse_match_id(match_id: str) -> MatchState:
    """The state that a 12-character match ID describes; the board is in the position ID.

    Whether beavers are allowed and how high the cube may go is not part of it. A status of "none"
    means that there is no game, whatever the other fields say. Raises InvalidPosition if the ID
    is malformed or contradicts itself.
    """
    bits = int.from_bytes(decode_id(match_id, _BYTES, "match ID"), "little")
    field = {}
    for name, size in _FIELDS.items():
        field[name] = bits & ((1 << size) - 1)
        bits >>= size

    def wrong(what: str) -> InvalidPosition:
        return InvalidPosition(f"match ID {match_id!r}: {what}")

    if field["owner"] == 2:
        raise wrong("its cube belongs to a player 2")
    if field["status"] >= len(STATUSES):
        raise wrong(f"there is no game state {field['status']}")
    dice = (field["die1"], field["die2"])
    if max(dice) > 6 or (min(dice) == 0) != (max(dice) == 0):
        raise wrong(f"no dice show {dice[0]}-{dice[1]}")
    offer: Offer | None = None
    if field["doubled"]:
        # Whoever is on roll has doubled. If the decision is back there, the answer was a beaver.
        answered = field["to_decide"] == field["on_roll"]
        offer = "beaver" if answered == (field["resignation"] == 0) else "double"
    try:
        state = MatchState(
            on_roll=field["on_roll"],
            dice=dice if dice[0] else None,
            cube=1 << field["cube"],
            cube_owner=None if field["owner"] == _CENTRED else field["owner"],
            score=(field["score0"], field["score1"]),
            length=field["length"],
            crawford=bool(field["crawford"]),
            jacoby=not field["no_jacoby"],
            offer=offer,
            resignation=field["resignation"],
            status=STATUSES[field["status"]],
        )
    except InvalidPosition as error:
        raise wrong(str(error)) from None
    if state.status == "playing" and state.to_decide != field["to_decide"]:
        raise wrong("the player who is not on roll is to decide, but nothing has been offered")
    return state


def format_match_id(state: MatchState) -> str:
    """The 12-character match ID of ``state``.

    Raises InvalidPosition if a field of the ID is too small for it, or if it is a raccoon, which
    a match ID cannot tell from a double.
    """
    if state.offer == "raccoon":
        raise InvalidPosition("a match ID cannot hold a raccoon")
    die1, die2 = state.dice or (0, 0)
    values = {
        "cube": state.cube.bit_length() - 1,
        "owner": _CENTRED if state.cube_owner is None else state.cube_owner,
        "on_roll": state.on_roll,
        "crawford": int(state.crawford),
        "status": STATUSES.index(state.status),
        "to_decide": state.to_decide,
        "doubled": int(state.offer is not None),
        "resignation": state.resignation,
        "die1": die1,
        "die2": die2,
        "length": state.length,
        "score0": state.score[0],
        "score1": state.score[1],
        "no_jacoby": int(not state.jacoby),
    }
    bits, at = 0, 0
    for name, size in _FIELDS.items():
        if values[name] >> size:
            raise InvalidPosition(f"{name} {values[name]} does not fit a match ID's {size} bits")
        bits |= values[name] << at
        at += size
    return encode_id(bits.to_bytes(_BYTES, "little"))


def parse_gnubg_id(gnubg_id: str, variant: Variant = BACKGAMMON) -> tuple[Position, MatchState]:
    """Position and state of a GNUbg ID, ``positionID:matchID``.

    Raises InvalidPosition if it is malformed or impossible.
    """
    position_id, colon, match_id = gnubg_id.strip().partition(":")
    if not colon:
        raise InvalidPosition(f"GNUbg ID {gnubg_id!r} is not positionID:matchID")
    return Position.from_gnubg_id(position_id, variant), parse_match_id(match_id)


def format_gnubg_id(position: Position, state: MatchState) -> str:
    """The GNUbg ID, ``positionID:matchID``, of a position seen by the player on roll."""
    return f"{position.gnubg_id}:{format_match_id(state)}"
