"""Match files: the forms that programs write, and what must not get through."""

from pathlib import Path

import pytest

from bgrl.errors import BgrlError, CorruptFile, IllegalPlay
from bgrl.formats import parse_mat, read_mat

CASES = Path(__file__).parent / "cases"


def text_of(name: str) -> str:
    return (CASES / f"{name}.mat").read_text()


def actions_of(name: str):
    return [game.actions for game in read_mat(CASES / f"{name}.mat").games]


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
