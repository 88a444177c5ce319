"""The encoders, by name."""

from bgrl.encoding.encoder import Encoder, EncoderBuilder
from bgrl.errors import BgrlError
from bgrl.game.board import BAR, OFF, POINTS


def _tesauro198() -> Encoder:
    inputs = EncoderBuilder()
    for side in (0, 1):
        for point in range(1, POINTS + 1):
            for count in (1, 2, 3):
                inputs.at_least(side, point, count)
            inputs.ramp(side, point, above=3, divide=2)
        inputs.ramp(side, BAR, above=0, divide=2)
        inputs.ramp(side, OFF, above=0, divide=15)
    inputs.constant(1)
    inputs.constant(0)
    return inputs.build(
        "tesauro198",
        1,
        "Sutton and Barto, Reinforcement Learning, 2nd ed., 16.1, after Tesauro 1992: four units "
        "a point, of which three are a thermometer and the fourth is (n - 3) / 2, n / 2 on the "
        "bar, n / 15 borne off; the last two say whose turn it is, here always the first player's",
    )


def _thermometer324() -> Encoder:
    inputs = EncoderBuilder()
    for side in (0, 1):
        for point in range(1, POINTS + 1):
            for count in (1, 2, 3, 4, 5):
                inputs.at_least(side, point, count)
            inputs.ramp(side, point, above=5, divide=5)
        for count in (1, 2):
            inputs.at_least(side, BAR, count)
        inputs.ramp(side, BAR, above=2, divide=3)
        for count in range(1, 16):
            inputs.at_least(side, OFF, count)
    return inputs.build(
        "thermometer324",
        1,
        "bgrl: a longer thermometer for each point and the bar, and one for the checkers off",
    )


ENCODERS: dict[str, Encoder] = {
    encoder.name: encoder for encoder in (_tesauro198(), _thermometer324())
}


def get_encoder(name: str) -> Encoder:
    """The encoder called ``name``; :class:`BgrlError` lists the known ones."""
    try:
        return ENCODERS[name]
    except KeyError:
        known = ", ".join(ENCODERS)
        raise BgrlError(f"unknown encoder {name!r}; known encoders: {known}") from None
