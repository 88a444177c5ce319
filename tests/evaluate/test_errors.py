import dataclasses
import json

import numpy as np
import pytest

from bgrl.errors import BgrlError, CorruptFile, SchemaMismatch
from bgrl.evaluate import errors, reference
from bgrl.evaluate.errors import ALL, PR, measure, read_benchmark, score_benchmark
from bgrl.evaluate.kinds import KINDS, kind_of
from bgrl.evaluate.luck import luck_evaluator
from bgrl.evaluate.reference import (
    Reference,
    add_rollouts,
    build_reference,
    draw_positions,
    serious_plays,
)
from bgrl.evaluate.rollout import roll_out
from bgrl.game import Position, legal_plays
from bgrl.players import load_player
from bgrl.players.pubeval import PubevalPlayer

START = {24: 2, 13: 5, 8: 3, 6: 5}
KIND_CASES = [
    ("opening", START, START),
    ("opening", {24: 2, 13: 4, 8: 3, 6: 5, 5: 1}, START),
    ("bear-off", {6: 3, 2: 4}, {5: 3, 1: 2}),
    ("race", {7: 1, 6: 3, 2: 4}, {5: 3, 1: 2}),
    ("race", {12: 5, 6: 5, 5: 5}, {12: 5, 6: 5, 4: 5}),
    ("crashed", {20: 2, 6: 4, 2: 4, 1: 5}, {13: 5, 8: 5, 6: 5}),
    ("back game", {24: 2, 22: 2, 13: 6, 6: 5}, {8: 5, 6: 5, 5: 3, 4: 2}),
    ("prime", {9: 2, 8: 3, 7: 2, 6: 3, 5: 2, 13: 3}, {24: 2, 13: 5, 8: 3, 6: 3, 3: 2}),
    ("blitz", {24: 2, 13: 1, 10: 1, 8: 3, 6: 3, 5: 3, 4: 2}, {25: 1, 24: 1, 13: 5, 8: 3, 6: 5}),
    ("holding", {20: 2, 13: 4, 8: 3, 6: 4, 4: 2}, {13: 3, 8: 3, 7: 2, 6: 5, 4: 2}),
    (
        "contact",
        {24: 2, 16: 1, 13: 3, 11: 2, 8: 2, 6: 3, 3: 2},
        {24: 2, 13: 3, 10: 2, 8: 2, 6: 4, 5: 2},
    ),
]


@pytest.mark.parametrize(("kind", "mine", "theirs"), KIND_CASES)
def test_kinds_are_what_their_definitions_say(kind, mine, theirs):
    position = Position.from_points(mine, theirs)
    assert kind_of(position.board) == kind
    if kind != "bear-off":  # only of the player on roll
        assert kind_of(position.swap().board) in (kind, "bear-off")


@pytest.fixture(scope="module")
def by_0ply(tmp_path_factory):
    """A small reference whose judge is gnubg at 0-ply."""
    pytest.importorskip("gnubg_nn")
    path = tmp_path_factory.mktemp("reference") / "positions.parquet"
    return build_reference(path, count=90, seed=5, judge="gnubg_0ply"), path


@pytest.mark.gnubg
def test_positions_are_drawn_alike_by_kind_and_reproducibly():
    found = draw_positions(27, seed=3)
    assert [sum(one.kind == kind for one in found) for kind in KINDS] == [3] * 9
    again = draw_positions(27, seed=3)
    assert [one.board.tobytes() for one in found] == [one.board.tobytes() for one in again]
    other = draw_positions(27, seed=4)
    same = {one.board.tobytes() for one in found} & {one.board.tobytes() for one in other}
    assert len(same) <= 2  # openings may well be the same
    assert len({(one.board.tobytes(), one.dice) for one in found}) == 27
    assert len({one.source for one in found}) == len(reference.SOURCES)


@pytest.mark.gnubg
def test_the_reference_holds_every_legal_play_and_survives_its_file(by_0ply):
    built, path = by_0ply
    loaded = Reference.load(path)
    assert loaded.made["judge"].startswith("gnubg_0ply (gnubg-nn ")
    assert loaded.made["seed"] == 5
    assert len(loaded.decisions) == 90
    for decision, before in zip(loaded.decisions, built.decisions, strict=True):
        for field in dataclasses.fields(decision):
            one, other = getattr(decision, field.name), getattr(before, field.name)
            assert np.array_equal(one, other, equal_nan=isinstance(one, np.ndarray))
        legal = {p.position.board.tobytes() for p in legal_plays(decision.position, decision.dice)}
        assert {play.tobytes() for play in decision.plays} == legal
        assert len(legal) > 1
        assert decision.loss(decision.best) == 0
    assert not list(path.parent.glob("_build*"))


@pytest.mark.gnubg
def test_a_player_judged_by_itself_never_errs(by_0ply):
    measurement = measure(load_player("gnubg_0ply"), by_0ply[0].decisions)
    assert measurement.losses.max() == 0
    assert measurement.rates()[ALL].pr == 0
    assert measurement.worst() == []
    assert measurement.equity_error() == (0, 0)
    for mine, truth, _ in measurement.calibration():
        assert mine == truth


@pytest.mark.gnubg
def test_worse_players_err_more(by_0ply, net_player):
    decisions = by_0ply[0].decisions
    means = [
        measure(player, decisions).rates()[ALL].mean
        for player in (load_player("pubeval"), load_player("random"))
    ]
    assert 0 < means[0] < 0.6 * means[1]
    untrained = measure(net_player(1), decisions)
    assert untrained.equity_error()[0] > 0.1
    assert sum(n for _, _, n in untrained.calibration()) == 90


@pytest.mark.gnubg
def test_errors_add_up_by_hand(by_0ply):
    decisions = by_0ply[0].decisions
    player = load_player("pubeval")
    measurement = measure(player, decisions)
    losses = []
    for decision in decisions:
        after = player.choose(decision.board.copy(), *decision.dice)
        at = [np.array_equal(play, after) for play in decision.plays].index(True)
        losses.append(decision.equities[0] - decision.equities[at])
    rates = measurement.rates()
    assert rates[ALL].mean == pytest.approx(np.mean(losses))
    assert rates[ALL].pr == PR * rates[ALL].mean
    assert rates[ALL].blunders == pytest.approx(np.mean(np.array(losses) >= 0.08))
    assert sum(rates[kind].decisions for kind in KINDS) == 90
    weighted = sum(rates[kind].mean * rates[kind].decisions for kind in KINDS) / 90
    assert weighted == pytest.approx(rates[ALL].mean)
    worst = measurement.worst()
    assert worst[0][1].loss == pytest.approx(max(losses))
    assert len(worst) == 20
    assert json.loads(json.dumps(measurement.to_json()))["rates"]["race"]["decisions"] == 10
    assert "pubeval: mean error " in str(measurement)


@pytest.mark.gnubg
def test_processes_give_the_same_measurement(by_0ply):
    decisions = by_0ply[0].decisions[:70]
    here = measure(load_player("pubeval"), decisions)
    there = measure(load_player("pubeval"), decisions, workers=2)
    assert here.losses.tolist() == there.losses.tolist()


@pytest.mark.gnubg
def test_a_rollout_overrules_the_evaluation(by_0ply):
    decision = by_0ply[0].decisions[0]
    rollouts = np.full(len(decision.plays), np.nan, dtype=np.float32)
    rollouts[:2] = [0.1, 0.3]
    rolled = dataclasses.replace(decision, rollouts=rollouts)
    assert np.array_equal(rolled.best, decision.plays[1])
    assert rolled.loss(decision.plays[0]) == pytest.approx(0.2)
    assert rolled.loss(decision.plays[1]) == 0


@pytest.mark.gnubg
def test_hard_decisions_are_rolled_out_and_kept(by_0ply, tmp_path, net_player):
    path = tmp_path / "positions.parquet"
    by_0ply[0].save(path)
    luck = luck_evaluator(net_player(1))
    rolled = add_rollouts(path, count=4, games=3, player="pubeval", luck=luck)
    assert rolled.made["rollouts"]["games"] == 3
    done = [d for d in Reference.load(path).decisions if not np.isnan(d.rollouts).all()]
    assert len(done) == 4
    for decision in done:
        serious = serious_plays(decision)
        assert np.flatnonzero(~np.isnan(decision.rollouts)).tolist() == sorted(serious)
        assert (decision.rollout_errors[serious] >= 0).all()
        assert np.abs(decision.rollouts[serious]).max() < 6
    assert len({d.kind for d in done}) == 4
    assert not list(tmp_path.glob("_*"))


@pytest.mark.gnubg
def test_a_rollout_finds_the_exact_equity_of_a_short_race():
    # One checker on the 6 point to bear off against one on the ace point: 27 of 36 win at once.
    position = Position.from_points({6: 1}, {1: 1})
    player = load_player("gnubg_0ply")
    mean, error = roll_out(player, position.board.copy(), 800, seed=1)
    assert 0.02 < error < 0.04
    assert abs(mean - (2 * 27 / 36 - 1)) < 3.5 * error
    # gnubg knows this position exactly, so all of the noise is luck.
    mean, error = roll_out(player, position.board.copy(), 20, 1, luck_evaluator(player))
    assert mean == pytest.approx(2 * 27 / 36 - 1, abs=1e-5)
    assert error < 1e-5
    lost = np.ascontiguousarray(Position.from_points({1: 1}, {}).board)
    assert roll_out(player, lost, 5) == (-1, 0)


@pytest.mark.gnubg
def test_an_illegal_answer_is_named(by_0ply, monkeypatch):
    decisions = by_0ply[0].decisions
    monkeypatch.setattr(PubevalPlayer, "choose", lambda self, board, die1, die2: board)
    with pytest.raises(BgrlError, match="no legal play of"):
        measure(load_player("pubeval"), decisions)


@pytest.mark.gnubg
def test_a_killed_build_goes_on(by_0ply, tmp_path):
    path = tmp_path / "positions.parquet"
    journal = tmp_path / "_build.positions.jsonl"
    identity = {"judge": load_player("gnubg_0ply").identity, "count": 90, "seed": 5}
    lie = {"task": 0, "probabilities": [0.5] * 5, "plays": ["00" * 52], "equities": [7.0]}
    journal.write_text("\n".join(map(json.dumps, (identity, lie))) + '\n{"task": 1, "prob')
    again = build_reference(path, count=90, seed=5, judge="gnubg_0ply")
    assert again.decisions[0].equities.tolist() == [7.0]  # not judged a second time
    assert np.array_equal(again.decisions[1].equities, by_0ply[0].decisions[1].equities)
    journal.write_text(json.dumps(identity | {"seed": 6}) + "\n")
    with pytest.raises(BgrlError, match="left from other work"):
        build_reference(path, count=90, seed=5, judge="gnubg_0ply")


def test_bad_files_are_named(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pytest.raises(BgrlError, match="no reference positions at"):
        Reference.load(tmp_path / "none.parquet")
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(b"PAR1 and no more")
    with pytest.raises(CorruptFile, match=r"cut\.parquet"):
        Reference.load(cut)
    foreign = tmp_path / "foreign.parquet"
    pq.write_table(pa.table({"x": [1]}), foreign)
    with pytest.raises(SchemaMismatch, match=r"foreign\.parquet"):
        Reference.load(foreign)


@pytest.mark.gnubg
def test_gnubgs_benchmark_files_are_read_and_scored(tmp_path):
    import gnubg_nn

    start = [list(side) for side in gnubg_nn.board_from_position_id("4HPwATDgc/ABMA")]
    key = gnubg_nn.key_of_board(start)
    ranked = load_player("gnubg_0ply").rank_plays(Position.start(), (3, 1))

    def key_after(play):
        board = play.position.board
        return gnubg_nn.key_of_board([board[0, 1:].tolist(), board[1, 1:].tolist()])

    plays = " ".join(f"{key_after(play)} {ranked[0].score - play.score:.5f}" for play in ranked[:3])
    path = tmp_path / "contact.bm"
    path.write_text(f"# a comment\ns 1234\nm {key} 3 1 {plays}\n")
    (decision,) = read_benchmark(path)
    assert np.array_equal(decision.board, Position.start().board)
    assert decision.dice == (3, 1)
    for listed, play in zip(decision.plays, ranked, strict=False):
        assert np.array_equal(listed, play.position.board)
    assert score_benchmark(load_player("gnubg_0ply"), [decision]).mean == 0
    assert decision.loss(ranked[1].position.board) == pytest.approx(
        ranked[0].score - ranked[1].score, abs=1e-5
    )
    # A play that isn't listed loses as much as the worst that is.
    assert decision.loss(ranked[-1].position.board) == decision.losses.max()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("m OAHDPAABDAOAHDPAABDA 3 1 OAHDPAABDAOAHDPAABBC", "missing"),
        ("m OAHDPAABDAOAHDPAABDA 3 7 OAHDPAABDAOAHDPAABBC 0", "3-7 is no roll"),
        ("m OAHDPAABDAOAHDPAABDA 3 1 OAHDPAABDAOAHDPAABDA 0", "no legal play of 3-1"),
        ("m OAHDPAABDAOAHDPAABD 3 1 OAHDPAABDAOAHDPAABBC 0", "is no position key"),
        ("m OAHDPAABDAOAHDPAABDA x 1 OAHDPAABDAOAHDPAABBC 0", "invalid literal"),
    ],
)
def test_a_malformed_benchmark_line_is_named(line, message, tmp_path):
    path = tmp_path / "bad.bm"
    path.write_text(f"# first line\n{line}\n")
    with pytest.raises(CorruptFile, match=rf"bad\.bm line 2: .*{message}"):
        errors.read_benchmark(path)
