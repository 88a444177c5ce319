"""The stages one after another, as a user would give them; run folders and what they record."""

import contextlib
import json
import re
import shutil
from dataclasses import asdict

import pytest
from bad_players import BadPlayer

from bgrl.cli.describe import describe
from bgrl.cli.loop import table
from bgrl.cli.main import main
from bgrl.cli.record import run_folder
from bgrl.errors import BgrlError, CorruptFile, SchemaMismatch
from bgrl.files import exclusive, read_json, shipped
from bgrl.nets import Weights
from bgrl.pipeline.loop import LoopResult, Row
from bgrl.players import load_player

NET = ["net.encoder=tesauro198", "net.hidden=[8]"]
TRAIN = ["data=[data/runs/games/shards]", *NET, "batch=128", "trainer.threads=1", "wandb=disabled"]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder in which some games were played and a net was trained."""
    folder = tmp_path_factory.mktemp("workplace")
    for arguments in (
        ["selfplay", "name=games", "games=40", "workers=0", *NET],
        ["train", "name=net", *TRAIN],
    ):
        with contextlib.chdir(folder):
            assert main(arguments) == 0
    # Case H01: whatever the run makes is in its folder.
    assert [path.name for path in folder.iterdir()] == ["data"]
    assert {path.name for path in (folder / "data" / "runs").iterdir()} == {"games", "net"}
    return folder


@pytest.fixture
def there(run, workplace, monkeypatch):
    """`run`, in the workplace."""
    monkeypatch.chdir(workplace)
    return run


def test_a_run_folder_says_how_it_was_made(workplace):
    record = read_json(workplace / "data/runs/net/run.json")
    assert record["stage"] == "train"
    assert record["seed"] == 1
    assert record["config"]["batch"] == 128
    assert record["config"]["data"] == [f"{workplace}/data/runs/games/shards"]
    manifest = workplace / "data/runs/games/shards/gen-0001/manifest.json"
    assert len(record["read"][str(manifest)]) == 64
    (launch,) = record["launches"]
    assert launch["overrides"] == ["name=net", *TRAIN]
    assert launch["packages"]["numpy"]
    assert launch["git"] is None or set(launch["git"]) == {"commit", "diff"}


def test_the_same_command_goes_on_and_another_is_refused(there, workplace):
    before = Weights.load(workplace / "data/runs/net/net").hash
    status, out, _ = there("train", "name=net", *TRAIN)
    assert status == 0
    assert before in out
    assert len(read_json(workplace / "data/runs/net/run.json")["launches"]) == 2
    status, _, err = there("train", "name=net", *TRAIN, "lr=0.5")
    assert status == 2
    assert "data/runs/net was started with lr=0.001, not 0.5" in err
    status, _, err = there("selfplay", "name=net", *NET)
    assert status == 2
    assert "data/runs/net is a run of 'train', not of 'selfplay'" in err


def test_workers_may_differ_when_a_run_goes_on(there):
    status, out, err = there("selfplay", "name=games", "games=40", "workers=1", *NET)
    assert status == 0, err
    assert " games, " in out


def test_a_net_is_trained_on_from_another(there, workplace):
    start = ["start=data/runs/net/net", "epochs=0.1"]
    status, _, err = there("train", "name=further", *TRAIN, *start)
    assert status == 0, err
    made = Weights.load(workplace / "data/runs/further/net").made
    assert made["parent"] == Weights.load(workplace / "data/runs/net/net").hash


def test_what_a_run_read_may_not_change_under_it(there, workplace):
    """Another net at the same path, or other data, would make the run's record a false one."""
    start = workplace / "given"
    shutil.copytree(workplace / "data/runs/net/net", start)
    first = Weights.load(start).hash
    command = ["train", "name=on", *TRAIN, "start=given", "epochs=0.1"]
    assert there(*command)[0] == 0
    shutil.rmtree(start)
    shutil.copytree(workplace / "data/runs/on/net", start)
    second, record = Weights.load(start).hash, workplace / "data/runs/on/run.json"
    before = record.read_bytes()
    status, _, err = there(*command)
    assert status == 2
    assert f"data/runs/on was started with start {first[:12]}, which is now {second[:12]}" in err
    assert record.read_bytes() == before
    assert Weights.load(workplace / "data/runs/on/net").made["parent"] == first


@pytest.mark.parametrize(
    ("before", "now", "message"),
    [
        ({"start": "a" * 12}, {}, "was started with start aaaaaaaaaaaa, which is no longer there"),
        ({}, {"start": "a" * 12}, "was started without start, which is there now"),
        ({"x": "a" * 64}, {"x": "b" * 64}, "with x aaaaaaaaaaaa, which is now bbbbbbbbbbbb"),
    ],
)
def test_other_files_than_at_the_start_are_refused(tmp_path, before, now, message):
    with run_folder(tmp_path / "a", Launch(), read=before):
        (tmp_path / "a" / "net").mkdir()
    with pytest.raises(BgrlError, match=message), run_folder(tmp_path / "a", Launch(), read=now):
        pass
    with run_folder(tmp_path / "a", Launch(), read=before):
        pass


def test_evaluate(there, workplace):
    command = ["evaluate", "player=data/runs/net/net", "opponent=random", "games=10", "workers=0"]
    status, out, _ = there(*command)
    assert status == 0
    assert out.startswith("net against random: ")
    assert "ppg over 10 games" in out
    status, luck, _ = there(*command, "luck=data/runs/net/net", "folder=match")
    assert status == 0
    assert "luck-adjusted" in luck
    assert (workplace / "match" / "pairs.jsonl").exists()


def test_a_ladder_says_which_games_were_set_aside(run, monkeypatch):
    """As evaluate does."""
    players = {"bad": BadPlayer("raise", 1), "random": load_player("random")}
    monkeypatch.setattr("bgrl.cli.ladder.load_player", lambda spec, variant: players[spec])
    command = ["players=[bad,random]", "anchor=random", "games=8", "workers=0", "folder=x"]
    status, out, err = run("ladder", *command)
    assert status == 0, err
    assert "1 games set aside, first: pair 1 game 0, bad (raise): ply" in out
    assert "bad (raise) against random" in out
    assert "against" not in run("ladder", *command, "games=2")[1]


def test_a_run_without_matches_has_a_report(there, workplace):
    status, out, _ = there("report", "data/runs/net")
    assert status == 0
    assert out == f"{workplace}/data/runs/net/report/report.html\n"
    assert (workplace / "data/runs/net/report/report.html").exists()


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        (
            "data/runs/games",
            ["a run of bgrl selfplay", "read", "net (", "config games", "config net"],
        ),
        ("data/runs/games/run.json", ["a run of bgrl selfplay"]),
        ("data/runs/games/shards/gen-0001", ["a generation", "truncated games", "run seed"]),
        (
            "data/runs/games/shards/gen-0001/part-00000.parquet",
            ["a shard", "λ", "bytes a position"],
        ),
        ("data/runs/net/net", ["a checkpoint", "198 → 8 → 5", "tesauro198 version 1", "parent"]),
        ("data/runs/net/net/net.json", ["a checkpoint"]),
        ("data/runs/net/net/net.safetensors", ["a checkpoint"]),
    ],
)
def test_describe(there, workplace, path, parts):
    status, out, err = there("describe", path)
    assert status == 0, err
    assert out.startswith(f"{workplace / path}: ")
    assert len(out.splitlines()) <= 40
    for part in parts:
        assert part in out


RUN = {"format": "bgrl.run", "version": 1, "stage": "train", "config": {}, "seed": 1, "read": {}}
DONE = {"started": "now", "overrides": [], "git": None}


@pytest.mark.parametrize(
    "record",
    [[], 5, None, {}, {**RUN, "version": 2, "launches": [DONE]}, RUN]
    + [{**RUN, "launches": launches} for launches in (None, {}, "x")]
    + [{**RUN, "launches": [DONE], **wrong} for wrong in ({"config": []}, {"read": None})],
)
def test_a_run_json_of_another_shape_is_named(run, tmp_path, record):
    path = tmp_path / "a" / "run.json"
    path.parent.mkdir()
    path.write_text(json.dumps(record))
    with (
        pytest.raises((CorruptFile, SchemaMismatch), match=str(path)),
        run_folder(path.parent, Launch()),
    ):
        pass
    status, out, err = run("describe", "a")
    assert (status, out) == (2, "")
    assert str(path.parent) in err


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("run.json", {**RUN, "launches": []}),
        ("run.json", {**RUN, "launches": [{}]}),
        ("run.json", {**RUN, "launches": [{**DONE, "git": "x"}]}),
        ("run.json", {**RUN, "launches": [DONE], "read": {"net": 5}}),
        ("state.json", []),
        ("result.json", []),
        ("result.json", {}),
        ("result.json", {"net": "x", "rows": [5]}),
        ("result.json", {"net": "x", "rows": [{"opponent": "x", "match": {"games": "x"}}]}),
        ("match.json", []),
        ("match.json", None),
    ],
)
def test_what_is_damaged_is_not_described(tmp_path, name, content):
    if name in ("state.json", "result.json"):
        (tmp_path / "run.json").write_text(json.dumps({**RUN, "launches": [DONE]}))
        assert "a run of bgrl train" in describe(tmp_path)
    (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(CorruptFile, match=str(tmp_path)):
        describe(tmp_path)


def test_damaged_nets_levels_and_games_are_not_described(workplace, tmp_path):
    net = tmp_path / "net"
    shutil.copytree(workplace / "data/runs/net/net", net)
    for made in (None, [1], "x"):
        (net / "net.json").write_text(json.dumps({**read_json(net / "net.json"), "made": made}))
        with pytest.raises(BgrlError, match=str(net)):
            describe(net)
    level = tmp_path / "easy"
    shutil.copytree(shipped("checkpoints") / "easy", level)
    record = read_json(level / "level.json")
    record["measured"]["rating"]["value"] = "abc"
    (level / "level.json").write_text(json.dumps(record))
    shutil.copytree(shipped("checkpoints") / "hard", tmp_path / "hard")
    with pytest.raises(BgrlError, match=str(level)):
        describe(level)
    match = tmp_path / "match"
    match.mkdir()
    (match / "match.json").write_text("{}")
    (match / "pairs.jsonl").write_bytes(b"\xff\n")
    with pytest.raises(CorruptFile, match=str(match)):
        describe(match)


def test_final_matches_of_few_or_no_games_are_shown(tmp_path):
    (tmp_path / "net.json").write_text('{"made": {"games": 20}}')
    rates = {"win": 0.5, "win_gammon": 0.25, "lose_gammon": 0.0}
    played = {"games": 2, "ppg": -0.5, "standard_error": None, "rates": rates, "luck_by": None}
    none = {"games": 0, "ppg": None, "standard_error": None, "rates": None, "luck_by": None}
    known = {**played, "games": 2000, "standard_error": 0.0123}
    rows = [Row("a", played), Row("b", none), Row("c", None, "not installed"), Row("d", known)]
    text = table(LoopResult(tmp_path, "0123", 1, rows, tmp_path, None, "none"))
    lines = [line for line in text.splitlines() if line[:2] in ("a ", "b ", "c ", "d ")]
    assert lines == [
        "a                -0.500 ± ?            2   50.0%     25.0% to 0.0%",
        "b                no games",
        "c                not installed",
        "d                -0.500 ± 0.012    2,000   50.0%     25.0% to 0.0%",
    ]
    record = {"net": "0123", "rows": [asdict(row) for row in rows]}
    (tmp_path / "run.json").write_text(json.dumps({**RUN, "launches": [DONE]}))
    (tmp_path / "result.json").write_text(json.dumps(record))
    told = describe(tmp_path)
    assert re.search(r"against a +-0.500 ± \? points a game in 2 games", told)
    assert re.search(r"against b +no games", told)


class Launch:
    stage = "train"
    overrides = ()
    resolved: dict = {}  # noqa: RUF012


def test_a_run_that_fails_at_once_leaves_nothing(tmp_path):
    with pytest.raises(BgrlError, match="wrong"), run_folder(tmp_path / "a" / "b", Launch()):
        raise BgrlError("wrong")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_fails_later_leaves_what_it_made(tmp_path):
    folder = tmp_path / "a"

    def work():
        with run_folder(folder, Launch()):
            (folder / "net").mkdir()
            raise BgrlError("wrong")

    with pytest.raises(BgrlError, match="wrong"):
        work()
    assert (folder / "run.json").exists()
    assert (folder / "net").exists()


def test_two_runs_in_one_folder_are_refused(tmp_path):
    with (
        exclusive(tmp_path / "a"),
        pytest.raises(BgrlError, match="in use"),
        run_folder(tmp_path / "a", Launch()),
    ):
        pass


def test_the_reference_positions_are_described(run):
    status, out, _ = run("describe", shipped("data") / "reference" / "positions.parquet")
    assert status == 0
    assert "reference positions" in out
    assert re.search(r"decisions +10,080", out)
    assert re.search(r"of kind back game +1,120", out)
    assert "gnubg107_2ply" in out
