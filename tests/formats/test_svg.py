"""The SVG picture: well-formed, self-contained, and every checker of the position in it."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from oracles.strategies import dice, positions

from bgrl.errors import BgrlError
from bgrl.formats import svg_board
from bgrl.formats.svg import _ARROW, _CHECKERS, _HIT
from bgrl.game import Position, legal_plays, parse_play

SVG = "{http://www.w3.org/2000/svg}"


def drawn(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


def attributes(root, tag, name):
    return [element.get(name) for element in root.iter(SVG + tag)]


def labels(root):
    return [element.text for element in root.iter(SVG + "text")]


@given(positions(), dice)
def test_every_checker_is_drawn(position, roll):
    plays = legal_plays(position, roll)
    text = svg_board(position, play=plays[0] if plays else None, dice=roll, cube=2, cube_owner=1)
    root = drawn(text)
    for side, (fill, _, _) in enumerate(_CHECKERS):
        # Stacks of more than five show five checkers and their number.
        stacks = position.board[side, 1:].clip(max=5).sum()
        checkers = [c for c in root.iter(SVG + "circle") if c.get("fill") == fill]
        assert len([c for c in checkers if float(c.get("r")) > 20]) == stacks
        for count in position.board[side, 1:]:
            assert count <= 5 or str(count) in labels(root)
        assert str(position.pip_counts[side]) in labels(root)
        assert position.off[side] == 0 or str(position.off[side]) in labels(root)
    description = root.find(SVG + "desc").text
    for row in position.board:
        assert all(f"{row[p]} on {p}" in description for p in range(1, 25) if row[p])


def test_the_picture_is_self_contained_and_accessible():
    root = drawn(svg_board(Position.start(), title="A <quiet> start & more"))
    assert root.tag == SVG + "svg"
    assert root.get("viewBox").startswith("0 0 ")
    assert root.get("role") == "img"
    assert root[0].tag == SVG + "title"
    assert root[0].text == "A <quiet> start & more"
    assert "2 on 24, 5 on 13, 3 on 8, 5 on 6; 167 pips" in root[1].text
    for element in root.iter():
        assert not {"id", "href", "style", "onclick"} & set(element.attrib)
    assert "4HPwATDgc/ABMA" in drawn(svg_board(Position.start()))[0].text


def test_arrows_and_hits():
    position = Position.from_gnubg_id("ACAA+P8BEAAAAA")
    root = drawn(svg_board(position, play=parse_play(position, (3, 2), "13/11*/8")))
    assert attributes(root, "line", "stroke").count(_ARROW) == 2
    assert attributes(root, "circle", "stroke").count(_HIT) == 1
    assert "Play 13/11*/8." in root[1].text
    assert "Roll 3-2." in root[1].text
    quiet = drawn(svg_board(position))
    assert not list(quiet.iter(SVG + "line"))


@pytest.mark.parametrize(("owner", "words"), [(None, "middle"), (0, "roll's"), (1, "opponent's")])
def test_cube(owner, words):
    root = drawn(svg_board(Position.start(), cube=64, cube_owner=owner))
    assert "64" in labels(root)
    assert words in root[1].text
    assert "64" not in labels(drawn(svg_board(Position.start())))


def test_cubes_stand_apart():
    start = Position.start()
    pictures = {svg_board(start, cube=2, cube_owner=owner) for owner in (None, 0, 1)}
    assert len(pictures) == 3


def test_pip_counts_can_be_left_out():
    assert "167" not in labels(drawn(svg_board(Position.start(), pip_counts=False)))


def test_the_sides_differ_in_brightness():
    light, dark = (int(fill[1:3], 16) for fill, _, _ in _CHECKERS)
    assert light - dark > 150


def test_bad_arguments_are_named():
    with pytest.raises(BgrlError, match="dice"):
        svg_board(Position.start(), dice=(0, 0))
    with pytest.raises(BgrlError, match="owner"):
        svg_board(Position.start(), cube=2, cube_owner=2)
