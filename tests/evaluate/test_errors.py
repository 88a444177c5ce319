import dataclasses
import json

import numpy as np
import pytest

from bgrl.errors import BgrlError, CorruptFile, SchemaMismatch
from bgrl.evaluate import errors, reference
from bgrl.evaluate.errors import (
    ALL,
    PR,
    BenchmarkDecision,
    measure,
    read_benchmark,
    score_benchmark,
)
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
from bgrl.evaluate.stats import mean_and_error
from bgrl.game import Position, legal_plays
from bgrl.players import load_player
from bgrl.players.level import Level, LevelPlayer, Misses
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


def a_decision(equities, rollouts=(), covariance=()):
    """A decision of the start position's 3-1; further plays are far behind and not rolled out."""
    start = Position.start()
    plays = np.stack([play.position.board for play in legal_plays(start, (3, 1))])
    all_equities = np.full(len(plays), -1.0, dtype=np.float32)
    all_equities[: len(equities)] = equities
    all_rollouts = np.full(len(plays), np.nan, dtype=np.float32)
    all_rollouts[: len(rollouts)] = rollouts
    return reference.Decision(
        kind="opening",
        board=start.board.copy(),
        dice=(3, 1),
        source="",
        game=0,
        ply=0,
        probabilities=np.full(5, 0.5, dtype=np.float32),
        plays=plays,
        equities=all_equities,
        rollouts=all_rollouts,
        rollout_covariance=np.array(covariance, dtype=np.float32).reshape(
            len(rollouts), len(rollouts)
        ),
    )


def test_losses_by_rollouts_stand_beside_those_by_evaluation():
    decision = a_decision([0.2, 0.15, 0.05], [0.1, 0.3], [[4e-4, 1e-4], [1e-4, 9e-4]])
    assert decision.rolled_out
    assert decision.rollout_errors[:2] == pytest.approx([0.02, 0.03])
    assert np.isnan(decision.rollout_errors[2:]).all()
    assert np.array_equal(decision.best, decision.plays[0])
    assert decision.loss(decision.plays[1]) == pytest.approx(0.05)
    assert decision.rollout_loss(decision.plays[1]) == (0, 0)
    loss, noise = decision.rollout_loss(decision.plays[0])
    assert loss == pytest.approx(0.2)
    assert noise == pytest.approx((4e-4 + 9e-4 - 2e-4) ** 0.5)
    # By evaluation 0.15 below the best, whose rollout is 0.2 below the other's.
    loss, same_noise = decision.rollout_loss(decision.plays[2])
    assert loss == pytest.approx(0.35)
    assert same_noise == noise
    assert not a_decision([0.2, 0.15]).rolled_out


def test_errors_by_rollouts_add_up_by_hand():
    covariance = [[4e-4, 1e-4], [1e-4, 9e-4]]
    decisions = [
        a_decision([0.2, 0.1], [0.3, 0.1], covariance),
        a_decision([0.2, 0.1], [0.0, 0.1], covariance),
        a_decision([0.2, 0.1]),
    ]

    def answers(*numbers):
        return errors.Measurement(
            "x",
            decisions,
            [
                errors.Answer(i, d.loss(d.plays[n]), d.plays[n], None)
                for i, (d, n) in enumerate(zip(decisions, numbers, strict=True))
            ],
        )

    second, first = answers(1, 1, 1), answers(0, 0, 0)
    assert first.rates()[ALL].mean == 0
    assert second.rates()[ALL].mean == pytest.approx(0.1)
    rates = first.rollout_rates()
    assert list(rates) == [ALL, "opening"]
    assert rates[ALL].decisions == 2
    assert rates[ALL].mean == pytest.approx(0.05)
    assert rates[ALL].standard_error == pytest.approx(0.05)  # of losses 0 and 0.1
    assert rates[ALL].rollout_error == pytest.approx(11e-4**0.5 / 2)
    # By rollouts the second player loses 0.2 more, then 0.1 less.
    mean, error = second.difference(first, rollouts=True)["opening"]
    assert (mean, error) == pytest.approx((0.05, 0.15))
    assert second.difference(first)[ALL] == pytest.approx((0.1, 0))
    one, other = errors.errors_json([first, second])
    assert one["rollout_difference"][ALL] == [0, 0]
    assert other["rollout_difference"][ALL] == pytest.approx([0.05, 0.15])
    assert other["rollout_rates"][ALL]["mean_error"] == pytest.approx(0.1)
    assert "by rollouts 50.0 ± 50.0 mEq" in str(first)
    assert (
        errors.errors_json([measure(load_player("random"), decisions[2:])])[0]["rollout_rates"]
        == {}
    )


def test_errors_state_the_uncertainty_that_they_have():
    """Rollouts drawn around known equities: the mean loss of a fixed play is what it should be."""
    rng = np.random.default_rng(1)
    truth, sigma = np.array([0.5, 0.1]), 0.05
    z = []
    for _ in range(150):
        decisions = [
            a_decision([0.2, 0.1], rng.normal(truth, sigma), np.eye(2) * sigma**2)
            for _ in range(12)
        ]
        chosen = decisions[0].plays[1]
        answers = [errors.Answer(i, 0.1, chosen, None) for i in range(12)]
        rate = errors.Measurement("x", decisions, answers).rollout_rates()[ALL]
        z.append(((rate.mean - 0.4) / rate.standard_error, (rate.mean - 0.4) / rate.rollout_error))
    # Student's t with 11 degrees of freedom has a standard deviation of 1.106.
    assert np.std(z, axis=0) == pytest.approx([1.106, 1.0], rel=0.15)


def test_the_hardest_decisions_are_those_with_close_plays_at_stake():
    clear, equal, hard = (
        a_decision(e) for e in ([0.2, 0.1, 0.09], [0.2, 0.2, 0.2], [0.2, 0.17, 0.165])
    )
    assert 0 == reference.hardness(equal) < reference.hardness(clear) < reference.hardness(hard)
    weights = np.exp(-np.array([0, 0.03, 0.035]) / reference.DOUBT)
    by_hand = weights @ [0, 0.03, 0.035] / weights.sum()
    assert reference.hardness(hard) == pytest.approx(by_hand, rel=1e-5)
    race = dataclasses.replace(clear, kind="race")
    assert reference.hard_decisions([clear, equal, hard, race], 2) == [2, 3]
    assert reference.hard_decisions([clear, equal, hard, race], 3) == [0, 2, 3]


@pytest.mark.gnubg
def test_hard_decisions_are_rolled_out_and_kept(by_0ply, tmp_path, net_player):
    path = tmp_path / "positions.parquet"
    by_0ply[0].save(path)
    luck = luck_evaluator(net_player(1))

    def roll(count, games=3, luck=luck):
        return add_rollouts(path, count=count, games=games, player="pubeval", luck=luck)

    def rolled():
        return [d for d in Reference.load(path).decisions if d.rolled_out]

    made = roll(3).made["rollouts"]
    assert (made["games"], made["decisions"], made["luck_by"]) == (3, 3, [luck.identity])
    first = rolled()
    assert len(first) == 3
    for decision in first:
        serious = serious_plays(decision)
        assert np.flatnonzero(~np.isnan(decision.rollouts)).tolist() == sorted(serious)
        assert (decision.rollout_errors[serious] >= 0).all()
        assert np.abs(decision.rollouts[serious]).max() < 6
    assert len({d.kind for d in first}) == 3
    assert not list(tmp_path.glob("_*"))

    # More are added to what is there; the same again changes nothing; other settings replace it.
    assert roll(5, luck=None).made["rollouts"]["decisions"] == 5
    before = path.read_bytes()
    assert roll(5).made["rollouts"]["luck_by"] == [luck.identity]
    assert path.read_bytes() == before
    kept = {d.board.tobytes(): d.rollouts for d in rolled()}
    assert len(kept) == 5
    for decision in first:
        assert np.array_equal(kept[decision.board.tobytes()], decision.rollouts, equal_nan=True)
    assert roll(2, games=4).made["rollouts"]["decisions"] == 2
    assert len(rolled()) == 2


@pytest.mark.gnubg
def test_killed_rollouts_go_on(by_0ply, tmp_path, monkeypatch):
    path = tmp_path / "positions.parquet"
    by_0ply[0].save(path)

    def killed(self, path):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Reference, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            add_rollouts(path, count=3, games=3, player="pubeval")
    assert not any(d.rolled_out for d in Reference.load(path).decisions)
    journal = tmp_path / "_rollouts.positions.jsonl"
    settings, first, second, _ = journal.read_text().splitlines()
    number, plays = json.loads(first)["task"], len(json.loads(first)["means"])
    lie = json.dumps(json.loads(first) | {"means": [0.75] * plays})
    journal.write_text("\n".join([settings, lie, second[:20]]))
    with pytest.raises(BgrlError, match="left from other work"):
        add_rollouts(path, count=3, games=4, player="pubeval")
    add_rollouts(path, count=3, games=3, player="pubeval")
    rolled = {i: d for i, d in enumerate(Reference.load(path).decisions) if d.rolled_out}
    assert len(rolled) == 3
    assert np.nanmin(rolled[number].rollouts) == 0.75  # not rolled out a second time
    again = rolled[json.loads(second)["task"]].rollouts
    assert again[~np.isnan(again)] == pytest.approx(json.loads(second)["means"])
    assert not journal.exists()


@pytest.mark.gnubg
def test_a_rollout_finds_the_exact_equity_of_a_short_race():
    # One checker on the 6 point to bear off against one on the ace point: 27 of 36 win at once.
    position = Position.from_points({6: 1}, {1: 1})
    player = load_player("gnubg_0ply")
    mean, error = mean_and_error(roll_out(player, position.board.copy(), 800, seed=1))
    assert 0.02 < error < 0.04
    assert abs(mean - (2 * 27 / 36 - 1)) < 3.5 * error
    # gnubg knows this position exactly, so all of the noise is luck.
    scores = roll_out(player, position.board.copy(), 20, 1, luck_evaluator(player))
    assert scores == pytest.approx(np.full(20, 2 * 27 / 36 - 1), abs=1e-5)
    lost = np.ascontiguousarray(Position.from_points({1: 1}, {}).board)
    assert roll_out(player, lost, 5).tolist() == [-1] * 5


@pytest.mark.gnubg
def test_plays_are_rolled_out_with_the_same_dice(net_player):
    """Two plays that differ little: their difference has less noise than with other dice."""
    plays = legal_plays(Position.from_points({6: 5, 3: 4}, {6: 5, 3: 4}), (2, 1))
    player = net_player(1)
    one, other = (roll_out(player, play.position.board.copy(), 200, 1) for play in plays[:2])
    assert np.corrcoef(one, other)[0, 1] > 0.3


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


def test_a_benchmark_gives_each_decision_a_miss_of_its_own(net_player, capsys):
    board = Position.start().board
    after = np.stack([play.position.board for play in legal_plays(Position.start(), (3, 1))])
    decision = BenchmarkDecision(board, (3, 1), after, np.arange(len(after)) / 100)
    player = LevelPlayer(Level("misser", misses=Misses(1.0, 100.0)), net_player().net)
    chosen = []
    for task in range(20):
        player.start_game(0, task, 0)
        chosen.append(decision.loss(player.choose(board, 3, 1)))
    # Wherever its stream of chances was before.
    player.start_game(9, 9, 1)
    assert score_benchmark(player, [decision] * 20).mean == pytest.approx(np.mean(chosen))
    assert score_benchmark(player, [decision]).mean == chosen[0]
    assert len(set(chosen)) > 1
    assert "misser: 20 of 20 decisions" in capsys.readouterr().err


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


def test_the_shipped_set_is_as_large_and_as_exact_as_it_says():
    shipped = Reference.load()
    assert len(shipped.decisions) == shipped.made["count"] >= 10_000
    rolled = [d for d in shipped.decisions if d.rolled_out]
    assert len(rolled) == shipped.made["rollouts"]["decisions"] >= 200
    for kind in KINDS:
        assert sum(d.kind == kind for d in shipped.decisions) == 1120
        assert sum(d.kind == kind for d in rolled) >= 20
    hardest = set(reference.hard_decisions(shipped.decisions, 216))
    assert hardest >= {i for i, d in enumerate(shipped.decisions) if d.rolled_out}
    errors = np.concatenate([d.rollout_errors[~np.isnan(d.rollouts)] for d in rolled])
    assert np.median(errors) < 0.01
    # Rollouts and evaluations are two estimates of the same equities.
    gaps = np.array([np.nanmean(d.rollouts - d.equities) for d in rolled])
    assert np.abs(gaps).mean() < 0.03
    best, second = np.array([d.rollouts[:2] for d in rolled]).T
    assert 0.01 < (best - second).mean() < 0.05  # by evaluation it is about .028
