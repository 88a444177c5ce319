import base64
import json
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from bgrl.encoding import get_encoder
from bgrl.errors import BgrlError, CorruptFile
from bgrl.evaluate import play_match
from bgrl.evaluate.errors import errors_json, measure
from bgrl.evaluate.ratings import ladder_json, rate, round_robin
from bgrl.evaluate.reference import Decision, build_reference
from bgrl.evaluate.report import Report, examples, learning_curve, run_report
from bgrl.game import Position, legal_plays
from bgrl.nets import Net, save_net
from bgrl.players import load_player


# As `bgrl loop` writes them; generation 2's net was not kept, and 1 was killed and evaluated twice.
def generation(number, step, **values):
    line = {"step": step, "time": 10.0 * step, "generation": number, "selfplay_seconds": 2.0}
    return {**line, "train_seconds": 3.0, **values}


METRICS = [
    {"step": 100, "time": 5.0, "loss": 0.6, "lr": 1e-3, "generation": 1},
    {"step": 200, "time": 9.0, "loss": 0.5, "val_loss": 0.55, "generation": 1},
    generation(1, 200, kept=1, games=90),
    generation(
        1, 200, kept=1, games=100, evaluate_seconds=1.0, ppg_pubeval=-0.8, ppg_error_pubeval=0.1
    ),
    generation(
        2, 300, kept=0, games=100, evaluate_seconds=2.0, ppg_pubeval=-0.5, ppg_error_pubeval=0.2
    ),
]


def pictures(html: str) -> list[ElementTree.Element]:
    sources = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    return [ElementTree.fromstring(base64.b64decode(source)) for source in sources]


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "first"
    save_net(Net(get_encoder("tesauro198"), (8,)).reset(1), folder / "net", {"games": 200})
    match = play_match(load_player("pubeval"), load_player("random"), 5).to_json()
    rows = [
        {"opponent": "random", "match": match, "reason": ""},
        {"opponent": "gnubg_0ply", "match": None, "reason": "needs gnubg-nn: pip <install> it"},
    ]
    (folder / "result.json").write_text(json.dumps({"format": "bgrl.result 1", "rows": rows}))
    return folder


def test_the_learning_curve_counts_games_and_work():
    curve = learning_curve(METRICS)
    assert [entry["games"] for entry in curve] == [100, 200]
    assert [entry["seconds"] for entry in curve] == [6.0, 13.0]
    assert [entry["kept"] for entry in curve] == [True, False]
    assert curve[1]["ppg"] == {"pubeval": [-0.5, 0.2]}


def test_the_report_of_a_run_holds_everything_in_one_file(run):
    path = run_report(run, METRICS)
    assert path == run / "report" / "report.html"
    html = path.read_text()
    assert not re.search(r"""(src|href)=["'](?!data:)""", html)
    assert "http" not in re.sub(r"base64,[^\"]+", "", html)
    assert "pubeval against random" in html
    assert "needs gnubg-nn: pip &lt;install&gt; it" in html
    # Two charts, and a board for each example.
    assert len(pictures(html)) == 2 + len(examples())
    data = json.loads((run / "report" / "report.json").read_text())
    assert data["format"] == "bgrl.report 1"
    assert data["net"]["hash"] == load_player(run / "net").net.hash
    assert data["matches"][0]["ppg"] > 1
    assert data["learning_curve"]["generations"] == learning_curve(METRICS)
    assert data["learning_curve"]["losses"][1] == {"step": 200, "loss": 0.5, "val_loss": 0.55}


def test_the_positions_show_what_the_net_plays(run):
    run_report(run, METRICS)
    data = json.loads((run / "report" / "report.json").read_text())
    player = load_player(run / "net")
    for (_, position, dice), shown in zip(examples(), data["positions"], strict=True):
        ranked = player.rank_plays(position, dice)
        assert shown["position"] == position.gnubg_id
        assert [play["play"] for play in shown["plays"]] == [str(play.play) for play in ranked]
        assert shown["plays"][0]["equity"] == pytest.approx(ranked[0].equity)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        '{"rows": 1}',
        '{"rows": [1]}',
        '{"rows": [{}]}',
        '{"rows": [{"match": {"a": 1}}]}',
    ],
)
def test_a_result_that_is_none_is_named(text, tmp_path):
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(CorruptFile, match=r"result\.json: not "):
        run_report(tmp_path, [])


def test_a_report_is_the_same_bytes_every_time(run, tmp_path):
    first = run_report(run, METRICS).read_bytes()
    assert run_report(run, METRICS, tmp_path / "elsewhere").read_bytes() == first


def test_a_run_that_has_just_begun_has_a_report_too(tmp_path):
    html = run_report(tmp_path, []).read_text()
    assert "<h2>" not in html


def test_a_run_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BgrlError, match="nowhere is no run folder"):
        run_report(tmp_path / "nowhere", [])
    assert not list(tmp_path.iterdir())


def test_a_damaged_result_is_named(run):
    (run / "result.json").write_text('{"rows": [')
    with pytest.raises(CorruptFile, match=r"result\.json"):
        run_report(run, METRICS)
    assert not (run / "report").exists()


def test_the_ladder_shows_ratings_and_both_sides_of_each_match(tmp_path, net_player):
    players = [load_player("random"), load_player("pubeval"), net_player(1)]
    matches = round_robin(players, lambda a, b: play_match(a, b, 30))
    ratings = rate(matches, anchor="random")
    report = Report("Ladder")
    report.add_ladder(ladder_json(ratings, matches))
    html = report.write(tmp_path).read_text()
    assert "0 (anchor)" in html
    data = json.loads((tmp_path / "report.json").read_text())["ladder"]
    assert data["players"][0] == "pubeval"
    assert np.shape(data["covariance"]) == (3, 3)
    entries = {(entry["a"], entry["b"]): entry["ppg"] for entry in data["cross_table"]}
    assert len(entries) == 6
    assert entries["pubeval", "random"] == -entries["random", "pubeval"] > 0


def test_the_report_of_a_run_takes_over_its_ladder_and_errors(run, tmp_path, net_player):
    players = [load_player("random"), net_player(1)]
    matches = round_robin(players, lambda a, b: play_match(a, b, 30))
    ladder = Report("Ladder", "60 games a pairing")
    ladder.add_ladder(ladder_json(rate(matches, anchor="random"), matches))
    ladder.write(run / "ladder")
    probabilities = np.array([0.5, 0.1, 0, 0.1, 0], dtype=np.float32)
    start = Position.start()
    plays = np.stack([play.position.board for play in legal_plays(start, (3, 1))])
    decision = Decision(
        kind="opening",
        board=start.board.copy(),
        dice=(3, 1),
        source="",
        game=0,
        ply=0,
        probabilities=probabilities,
        plays=plays,
        equities=np.linspace(0.1, -0.2, len(plays)),
        rollouts=np.concatenate([[0.1, -0.2], np.full(len(plays) - 2, np.nan)]),
        rollout_covariance=np.eye(2) * 1e-4,
    )
    errors = Report("Errors")
    measured = [measure(player, [decision] * 2) for player in (net_player(1), players[0])]
    errors.add_errors(errors_json(measured))
    elsewhere = errors.write(tmp_path / "elsewhere").parent

    html = run_report(run, METRICS, errors=elsewhere).read_text()
    assert "<h2>Ladder: 60 games a pairing</h2>" in html
    assert "<h2>Errors</h2>" in html
    assert html.count("<td>random less net1</td>") == 2
    rollouts = html[html.index("<h3>By rollouts</h3>") :]
    opening = measured[1].rollout_rates()["opening"]
    cell = f"<td>{1000 * opening.mean:.1f} ± {1000 * opening.standard_error:.1f}</td>"
    assert (
        f"<td>random</td><td>{opening.pr:.2f}</td><td>{opening.blunders:.1%}</td>{cell}" in rollouts
    )
    data = json.loads((run / "report" / "report.json").read_text())
    for section, folder in (("ladder", run / "ladder"), ("errors", elsewhere)):
        assert data[section] == json.loads((folder / "report.json").read_text())[section]

    with pytest.raises(BgrlError, match=r"ladder/report\.json has no section 'errors'"):
        run_report(run, METRICS, errors=run / "ladder")
    with pytest.raises(BgrlError, match="nowhere"):
        run_report(run, METRICS, errors=tmp_path / "nowhere")
    whole = json.loads((run / "ladder" / "report.json").read_text())
    del whole["ladder"]["covariance"]
    (run / "ladder" / "report.json").write_text(json.dumps(whole))
    with pytest.raises(CorruptFile, match="its section 'ladder' is malformed"):
        run_report(run, METRICS)


@pytest.mark.gnubg
def test_errors_have_a_table_a_calibration_plot_and_the_worst_boards(tmp_path):
    built = build_reference(tmp_path / "positions.parquet", count=45, seed=1, judge="gnubg_0ply")
    names = ("pubeval", "gnubg_0ply")
    measurements = [measure(load_player(name), built.decisions) for name in names]
    report = Report("Errors")
    report.add_errors(errors_json(measurements))
    html = report.write(tmp_path).read_text()
    worst = measurements[0].worst()
    assert len(pictures(html)) == 1 + len(worst) > 6
    data = json.loads((tmp_path / "report.json").read_text())["errors"]
    assert [entry["player"] for entry in data] == ["pubeval", "gnubg_0ply"]
    assert data[1]["rates"]["all"]["mean_error"] == 0
    assert "By rollouts" not in html
    assert data[1]["difference"]["all"][0] == -data[0]["rates"]["all"]["mean_error"]
    assert "<td>gnubg_0ply less pubeval</td>" in html
    decision, answer = worst[0]
    assert data[0]["worst"][0]["position"] == decision.position.gnubg_id
    assert f"loses {answer.loss:.3f} to" in html
