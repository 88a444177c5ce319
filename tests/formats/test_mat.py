"""Match files: the forms that programs write, and what must not get through."""

from pathlib import Path

import pytest

from bgrl.errors import BgrlError, CorruptFile, IllegalPlay
from bgrl.formats import parse_mat, read_mat
from bgrl.game import BACKGAMMON, HYPERGAMMON, NACKGAMMON

CASES = Path(__file__).parent / "cases"


def text_of(name: str) -> str:
    return (CASES / f"{name}.mat").read_text()


def actions_of(name: str):
    return [game.actions for game in read_mat(CASES / f"{name}.mat").games]


def seats(text: str) -> list[int]:
    (only,) = parse_mat(text).games
    return [action.seat for action in only.actions]


def result(text: str) -> tuple[int | None, int, tuple[str, ...]]:
    match = parse_mat(text)
    return match.games[0].winner, match.games[0].points, match.warnings


def game(*lines: str, length: int = 3, score: tuple[int, int] = (0, 0)) -> str:
    return "\n".join(
        [
            f" {length} point match",
            "",
            " Game 1",
            f" Alice : {score[0]:<28}Bob : {score[1]}",
            *lines,
        ]
    )


@pytest.mark.parametrize("name", ["m3_a_same", "m_basic"])
def test_m01_baseline(name):
    match = read_mat(CASES / f"{name}.mat")
    assert match.players == ("Alice", "Bob")
    assert match.length == 3
    assert match.warnings == ()
    first, second = match.games
    assert (first.winner, first.points) == (1, 2)
    assert not first.crawford
    assert [(a.move, a.seat, a.kind, a.cube) for a in first.actions] == [
        (1, 0, "play", 1),
        (1, 1, "play", 1),
        (2, 0, "double", 1),
        (2, 1, "take", 1),
        (3, 0, "play", 2),
        (3, 1, "play", 2),
        (4, 0, "play", 2),
        (4, 1, "double", 2),
        (5, 0, "drop", 2),
    ]
    assert [str(a.play) for a in first.actions if a.play] == [
        "8/5 6/5",
        "24/14",
        "24/18(2) 13/7(2)",
        "24/22 6/5(2)",
        "13/11*/10",  # written as 13/10: the only way there hits
    ]
    assert second.score == (0, 2)
    assert second.crawford, "the first game with a player 1 point away"
    assert (second.winner, second.points) == (None, 0)
    assert [a.seat for a in second.actions] == [1, 0]


def test_m03_a_missing_result_follows_from_the_drop():
    match = read_mat(CASES / "m3_c_nowins.mat")
    assert (match.games[0].winner, match.games[0].points) == (1, 2)
    assert match.games == read_mat(CASES / "m3_a_same.mat").games
    (warning,) = match.warnings
    assert "game 1" in warning
    assert "no result is written" in warning


def test_m05_tags_and_free_text():
    plain, tagged, free = (read_mat(CASES / f"{n}.mat") for n in ("m_basic", "m_hdr", "m_free"))
    assert plain.games == tagged.games == free.games
    assert tagged.tags == {
        "Site": "x",
        "Player 1": "Alice",
        "EventDate": "2026.01.02",
        "Crawford": "On",
    }
    assert free.tags == {}


def test_m05_the_tag_switches_the_crawford_game_off():
    text = text_of("m_hdr").replace('"On"', '"Off"')
    assert not any(game.crawford for game in parse_mat(text).games)


def test_m06_three_ways_to_write_a_dance():
    blank, cannot, question = map(actions_of, ("m_dance_blank", "m_dance_cannot", "m_dance_q"))
    assert blank == cannot == question
    (actions,) = blank
    assert [(a.seat, a.kind, a.dice, str(a.play or "")) for a in actions] == [
        (0, "play", (6, 2), "24/18 13/11"),
        (1, "play", (6, 1), "13/7* 8/7"),
        (0, "dance", (6, 6), ""),
        (1, "play", (2, 1), "13/10"),
        (0, "play", (6, 3), "bar/22 13/7"),
    ]


def test_m08_an_illegal_play_is_refused_with_game_move_and_dice():
    with pytest.raises(IllegalPlay, match=r"m_illegal.mat: game 1, move 2, 21: .*4 pips"):
        read_mat(CASES / "m_illegal.mat")


def test_m09_a_blocked_play_is_refused():
    text = game("  1) 31: 8/5 6/5                     55: 8/3(2) 6/1*(2)")
    with pytest.raises(IllegalPlay, match=r"game 1, move 1, 55: .*point 1 is held"):
        parse_mat(text)


def test_m10_25_for_the_bar_and_missing_stars():
    assert actions_of("m_nostar") == actions_of("m_dance_blank")


def test_m12_a_money_session():
    match = read_mat(CASES / "m_money.mat")
    assert match.length == 0
    assert match.jacoby
    assert not read_mat(CASES / "m_money.mat", jacoby=False).jacoby
    assert not read_mat(CASES / "m_basic.mat").jacoby, "there is no Jacoby rule in a match"
    assert not any(game.crawford for game in match.games)


def test_a_game_won_by_resignation():
    match = read_mat(CASES / "m3_f_doubles_no_take.mat")
    assert (match.games[0].winner, match.games[0].points) == (0, 2)
    assert "2 points do not win the match at 2" in match.warnings[0]


def test_a_score_that_does_not_add_up_is_a_warning():
    match = parse_mat(text_of("m_basic").replace("Bob : 2", "Bob : 1"))
    assert "game 2 starts at 0-1, but game 1 ended at 0-2" in match.warnings


def test_a_wrong_result_is_a_warning_and_the_rules_count():
    match = parse_mat(text_of("m_basic").replace("Wins 2 points", "Wins 4 points"))
    assert match.games[0].points == 2
    assert "Bob wins 2: the file says 4" in match.warnings[0]


OPENING = "  1) 31: 8/5 6/5                     64: 24/14"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["  1) 33: 8/5(2) 6/3(2)"], "does not start with a double"),
        ([OPENING, "  2) 62:"], "move 2, 62: something can be played"),
        ([OPENING, "  2) 62: Cannot Move"], "something can be played"),
        ([OPENING, "  2)  Doubles => 4"], "doubles to 4 from 1"),
        ([OPENING, "  2)  Takes"], "takes, but nobody has doubled"),
        ([OPENING, "  2)  Doubles => 2                   31: 8/5 6/5"], "has not been answered"),
        (["  1)  Doubles => 2"], "before the opening roll"),
        ([OPENING, "  2)  Doubles => 2                    Takes", "  3)  Doubles => 4"],
         "Alice doubles without owning the cube"),
        ([OPENING, "  2)  Doubles => 2                    Drops", "  3) 31: 8/5 6/5"],
         "the game is over"),
    ],
)  # fmt: skip
def test_what_the_rules_forbid(lines, reason):
    with pytest.raises(IllegalPlay, match="game 1, move") as error:
        parse_mat(game(*lines))
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def test_c04_no_doubling_in_the_crawford_game():
    with pytest.raises(IllegalPlay, match="Crawford"):
        parse_mat(game(OPENING, "  2)  Doubles => 2", score=(0, 2)))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no line says 'N point match'"),
        ("a letter\n", "no line says 'N point match'"),
        ("3 point match\n 1) 31: 8/5 6/5\n", "line 2: .* is in no game"),
        ("3 point match\n Game 1\n", "game 1 has no line with the players"),
        (game("  1) 31: 8/5 6/5       hello"), "line 5: cannot read 'hello'"),
        (game(OPENING, "  2)                                 31: 8/5 6/5"), "out of turn"),
    ],
)
def test_what_is_no_match_file(text, reason):
    with pytest.raises(CorruptFile, match=reason):
        parse_mat(text)


def test_any_cut_of_a_file_gives_a_shorter_match_or_an_error():
    text = text_of("m_basic")
    for end in range(len(text)):
        refusal = ""
        try:
            match = parse_mat(text[:end])
        except BgrlError as error:
            refusal = str(error)
        assert refusal or len(match.games) <= 2
        assert "\n" not in refusal


def test_a_missing_file_is_named():
    with pytest.raises(BgrlError, match=r"nowhere\.mat"):
        read_mat("nowhere.mat")


def test_the_name_of_a_file_may_be_nonsense():
    with pytest.raises(BgrlError, match="null byte"):
        read_mat("a\0b")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "latin-1"])
def test_names_in_the_encodings_that_programs_write(tmp_path, encoding):
    path = tmp_path / "match.mat"
    path.write_bytes(game(OPENING).replace("Alice", "José Ñúñez").encode(encoding))
    assert read_mat(path).players == ("José Ñúñez", "Bob")


def test_any_byte_in_a_name_can_be_read(tmp_path):
    path = tmp_path / "match.mat"
    line_ends = b"\r\n\v\f\x1c\x1d\x1e"
    for byte in set(range(256)) - set(line_ends):
        path.write_bytes(game(OPENING).encode().replace(b"lice", bytes([byte])))
        assert len(read_mat(path).games) == 1


@pytest.mark.parametrize(
    "text",
    [
        "{} point match\n Game 1\n",
        "3 point match\n Game {}\n Alice : 0  Bob : 0\n",
        "3 point match\n Game 1\n Alice : {}  Bob : 0\n",
        "3 point match\n Game 1\n Alice : 0  Bob : {}\n",
        "3 point match\n Game 1\n Alice : 0  Bob : 0\n {}) 31: 8/5 6/5",
        "3 point match\n Game 1\n Alice : 0  Bob : 0\n 1) 31: 8/5 6/5\n 2) Doubles => {}",
        "3 point match\n Game 1\n Alice : 0  Bob : 0\n 1) 31: 8/5 6/5\n Wins {} points",
    ],
)
def test_numbers_without_end_are_refused(text):
    with pytest.raises(CorruptFile):
        parse_mat(text.format("9" * 5000))


LONG = " Bartholomew_Featherstonehaugh_III : 0  Takumitsu_Suzuki_(JPN) : 0"
NAMES = " Alice : 0                           Bob : 0"


@pytest.mark.parametrize(
    "names", [NAMES, LONG, " Alice : 0\t\t\t\tBob : 0", " A : 0 B : 0"], ids=len
)
@pytest.mark.parametrize(
    ("lines", "order"),
    [
        (["  1) 31: 8/5 6/5                 64: 24/14", "  2) 66: 24/18(2) 13/7(2)"], [0, 1, 0]),
        (["  1)                             43: 24/20 13/10", "  2) 52: 13/8 24/22"], [1, 0]),
        (["  1)\t\t\t\t\t43: 24/20 13/10", "  2) 52: 13/8 24/22"], [1, 0]),
        (["1)\t\t21: 24/23 13/11", "2) 52: 13/8 24/22\t\t43: 24/20 13/10"], [1, 0, 1]),
        (["1)\t31: 8/5 6/5\t\t64: 24/14", "2)\t66: 24/18(2) 13/7(2)"], [0, 1, 0]),
        (["  1)              43: 24/20 13/10", "  2) 52: 13/8 24/22"], [1, 0]),
        (["  1) 31: 8/5 6/5", "  1)                             64: 24/14"], [0, 1]),
    ],
)
def test_columns_are_found_whatever_the_names_take(names, lines, order):
    assert seats(game(*lines).replace(NAMES, names)) == order


@pytest.mark.parametrize("names", [NAMES, LONG], ids=len)
@pytest.mark.parametrize(
    ("lines", "winner"),
    [
        (["  1) 31: 8/5 6/5\t64: 24/14", "\t\t\t\t\tWins 2 points"], 1),
        (["  1) 31: 8/5 6/5\t64: 24/14", "\tWins 2 points"], 0),
        ([OPENING, "      Wins 2 points"], 0),
        ([OPENING, "                                     Wins 2 points"], 1),
        (["  1) 31: 8/5 6/5", "                                 Wins 2 points"], 1),
        (["  1) 31: 8/5 6/5                 Wins 2 points"], 1),
    ],
)
def test_who_wins_by_resignation_is_in_the_column(names, lines, winner):
    assert result(game(*lines).replace(NAMES, names)) == (winner, 2, ())


DOUBLED = (OPENING, "  2)  Doubles => 2")
DROPPED = (OPENING, "  2)  Doubles => 2                    Drops")
IN_THE_RIGHT_COLUMN = "                                     Wins 1 point"


@pytest.mark.parametrize("lines", [DOUBLED, DROPPED])
def test_who_has_doubled_wins_wherever_the_result_is(lines):
    assert result(game(*lines, "      Wins 1 point")) == (0, 1, ())
    winner, points, (warning,) = result(game(*lines, IN_THE_RIGHT_COLUMN))
    assert (winner, points) == (0, 1)
    assert warning == "game 1, move 2: Alice wins, but the result is in Bob's column"


def test_a_result_without_a_column_is_the_opponents_of_who_would_act():
    winner, points, (warning,) = result(game(f"{OPENING} Wins 1 point"))
    assert (winner, points) == (1, 1)
    assert "no column says who wins: taken for Bob" in warning
    # After a drop it isn't needed.
    assert result(game(f"{DROPPED[0]}\n{DROPPED[1]} Wins 1 point")) == (0, 1, ())


@pytest.mark.parametrize(
    ("value", "variant"),
    [
        ("NackGammon", NACKGAMMON),
        ("Nackgammon", NACKGAMMON),
        ("HyperGammon (3)", HYPERGAMMON),
        ("Backgammon", BACKGAMMON),
        ("", BACKGAMMON),
    ],
)
def test_the_tag_tells_the_variant(value, variant):
    roll = "24/22 23/22" if variant == HYPERGAMMON else "24/22 6/5"
    text = f'; [Variation "{value}"]\n' + game(f"  1) 21: {roll}")
    match = parse_mat(text)
    assert match.variant == variant
    assert match.games[0].actions[0].position.variant == variant
    if value:
        assert parse_mat(text, variant=NACKGAMMON).variant == variant


def test_the_variant_asked_for_counts_where_no_tag_tells():
    match = parse_mat(game("  1) 21: 23/22 6/4"), variant=NACKGAMMON)
    assert match.variant == NACKGAMMON


@pytest.mark.parametrize(("value", "jacoby"), [("On", True), ("Off", False), ("off", False)])
@pytest.mark.parametrize("asked", [True, False])
def test_the_tag_tells_the_jacoby_rule(value, jacoby, asked):
    text = f'; [Jacoby "{value}"]\n' + game(OPENING, length=0)
    assert parse_mat(text, jacoby=asked).jacoby is jacoby
    assert not parse_mat(f'; [Jacoby "{value}"]\n' + game(OPENING)).jacoby, "a match has none"


@pytest.mark.parametrize(
    "tag", ['Variation "LongGammon"', 'Variation "HyperGammon (1)"', 'Jacoby "2"', 'Crawford "?"']
)
def test_unknown_rules_are_refused(tag):
    key, value = tag.replace('"', "").split(" ", 1)
    with pytest.raises(CorruptFile, match=r"old\.mat, line 2: ") as error:
        parse_mat(f'; [Site "x"]\n; [{tag}]\n' + game(OPENING), "old.mat")
    assert f"{key} '{value}' is none of" in str(error.value)


TAKEN = (OPENING, "  2)  Doubles => 2                    Takes")


@pytest.mark.parametrize(
    ("lines", "points", "length", "possible"),
    [
        ([OPENING], 0, 7, "1, 2, 3"),
        ([OPENING], 4, 7, "1, 2, 3"),
        ([OPENING], 7, 7, "1, 2, 3"),
        (TAKEN, 1, 7, "2, 4, 6"),
        (TAKEN, 3, 7, "2, 4, 6"),
        (DOUBLED, 5, 7, "1, 2, 3, 4, 6"),
        ([OPENING], 2, 0, "1"),
        (TAKEN, 3, 0, "2, 4, 6"),
    ],
)
def test_an_impossible_resignation_is_a_warning(lines, points, length, possible):
    text = game(*lines, f"      Wins {points} points", length=length)
    (warning,) = parse_mat(text).warnings
    assert f"{points} points cannot be won" in warning
    assert warning.endswith(f": {possible} can")


@pytest.mark.parametrize(
    ("lines", "points", "length"),
    [([OPENING], 3, 7), (TAKEN, 6, 7), (DOUBLED, 1, 7), (DOUBLED, 2, 7), (TAKEN, 4, 0)],
)
def test_a_possible_resignation_is_none(lines, points, length):
    assert parse_mat(game(*lines, f"      Wins {points} points", length=length)).warnings == ()


def test_a_gammon_of_an_undoubled_game_without_the_jacoby_rule():
    text = game(OPENING, "      Wins 2 points", length=0)
    assert parse_mat(text, jacoby=False).warnings == ()


@pytest.mark.parametrize("score", [(3, 0), (0, 9), (3, 3)])
def test_a_match_that_is_over_before_the_game_is_a_warning(score):
    (warning,) = parse_mat(game(OPENING, score=score)).warnings
    assert warning == f"game 1 starts at {score[0]}-{score[1]}, where a match to 3 is over"


@pytest.mark.parametrize(("score", "length"), [((2, 2), 3), ((0, 0), 1)])
def test_with_both_at_match_point_it_is_no_crawford_game(score, length):
    text = game(*TAKEN, score=score, length=length)
    assert not parse_mat(text).games[0].crawford
