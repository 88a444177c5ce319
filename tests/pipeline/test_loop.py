"""The loop end to end on tiny runs: what it makes, what it decides, and that it goes on."""

import contextlib
import json
import os
import re
import shutil
import time
from dataclasses import asdict

import pytest

from bgrl.data import is_complete, open_generation
from bgrl.errors import BgrlError, CorruptFile, MissingExtra
from bgrl.files import read_json
from bgrl.nets import Weights
from bgrl.pipeline import Loop
from bgrl.processes import _start
from bgrl.train import read_metrics

TINY = {
    "generations": 3,
    "games": 30,
    "encoder": "tesauro198",
    "hidden": (8,),
    "seed": 5,
    "workers": 0,
    "lam": (0.9, 0.5),
    "batch": 128,
    "lr": 0.01,
    "lr_end": 0.001,
    "window": 2,
    "trainer": {"threads": 1},
    "gate_games": 10,
    "gate_z": 0.0,
    "opponents": ("pubeval",),
    "opponent_games": 10,
    "final_opponents": ("random", "pubeval"),
    "final_games": 10,
    "final_luck": False,
    "wandb": "disabled",
}


def tiny(folder, **changes):
    return Loop(folder, **{**TINY, **changes})


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run: (its folder, its result)."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    return folder, tiny(folder).run()


def kept_nets(folder):
    return read_json(folder / "state.json")["kept"]


def test_a_run_makes_what_it_says(finished):
    folder, result = finished
    assert read_json(folder / "state.json")["done"] == 3
    weights = Weights.load(folder / "net")
    assert weights.hash == result.hash
    assert weights.hash == Weights.load(folder / "nets" / f"gen-{result.generation:04d}").hash
    assert weights.made["games"] == 30 * result.generation
    assert result.report.is_file()
    assert "svg" in result.report.read_text()
    assert result.onnx == folder / "export" / "net.onnx"
    assert result.onnx.is_file()
    for row in result.rows:
        assert row.match["games"] == 10
        assert -3 <= row.match["ppg"] <= 3
    assert [row.opponent for row in result.rows] == ["random", "pubeval"]
    assert not list(folder.rglob("_tmp.*"))


def test_each_generation_plays_new_games_with_its_share_of_the_run(finished):
    folder, _ = finished
    games, lams = set(), []
    for number in (1, 2, 3):
        generation = open_generation(folder / "shards" / f"gen-{number:04d}")
        assert not generation.skipped
        assert generation.games + generation.truncated_games == 30
        (shard,) = generation.shards
        lams.append(shard.meta.lam)
        games |= {(number, shard.meta.seed)}
    assert lams == [0.9, 0.9, 0.5]


def test_only_kept_nets_play_and_are_trained_on(finished):
    folder, _ = finished
    lines = [line for line in read_metrics(folder / "metrics.jsonl") if "kept" in line]
    assert [line["generation"] for line in lines] == [1, 2, 3]
    kept = [0]
    for line in lines:
        number = line["generation"]
        net = Weights.load(folder / "nets" / f"gen-{number:04d}")
        before = Weights.load(folder / "nets" / f"gen-{kept[-1]:04d}")
        assert net.made["parent"] == before.hash
        (shard,) = open_generation(folder / "shards" / f"gen-{number:04d}").shards
        assert shard.meta.net == before.hash
        assert line["kept"] == (line["gate_ppg"] >= 0)
        if line["kept"]:
            kept.append(number)
    assert kept == kept_nets(folder)
    # This seed gives one of each, so that both ways are seen.
    assert 0 < len(kept) - 1 < 3


def test_the_learning_rate_falls_over_the_run(finished):
    folder, _ = finished
    rates = [line["lr"] for line in read_metrics(folder / "metrics.jsonl") if "lr" in line]
    generations = [line for line in read_metrics(folder / "metrics.jsonl") if "lr" in line]
    assert [line["generation"] for line in generations] == [1, 2, 3]
    assert 0.01 > rates[0] > rates[1] > rates[2] > 0.001
    assert rates[2] < 0.0011


def test_an_opponent_that_is_a_path_has_a_match_of_its_own_each_generation(finished, tmp_path):
    """Below matches/, however many folders up the path goes."""
    net = finished[0] / "net"
    (tmp_path / "gate").symlink_to(net)
    folder = tmp_path / "run"
    up = "/".join([".."] * 9) + str(net)
    with contextlib.chdir(tmp_path):
        tiny(folder, opponents=(up, str(net), "gate", "pubeval"), final_opponents=(up,)).run()
    matches = sorted(path.relative_to(folder) for path in folder.rglob("match.json"))
    assert {len(path.parts) for path in matches} == {3}
    assert all((folder / path).with_name("pairs.jsonl").stat().st_size for path in matches)
    names = [path.parts[1] for path in matches]
    assert len([name for name in names if name.startswith("final-")]) == 1
    for number in (1, 2, 3):
        own = [name for name in names if name.startswith(f"gen-000{number}-")]
        assert len(own) == 5
        assert {f"gen-000{number}-pubeval", f"gen-000{number}-gate"} < set(own)
        assert sum("tiny-net." in name for name in own) == 2
    assert {path.name for path in tmp_path.iterdir()} == {"run", "gate"}
    lines = [line for line in read_metrics(folder / "metrics.jsonl") if "kept" in line]
    assert len({line[f"ppg_{up}"] for line in lines}) > 1


def test_without_the_gate_every_net_is_kept(tmp_path):
    loop = tiny(tmp_path / "run", gate_games=0, opponent_games=0, final_games=0, generations=2)
    result = loop.run()
    assert result.generation == 2
    assert kept_nets(tmp_path / "run") == [0, 1, 2]
    assert not (tmp_path / "run" / "matches").exists()
    assert [(row.opponent, row.match) for row in result.rows] == [
        ("random", None),
        ("pubeval", None),
    ]
    assert "no games asked for" in result.report.read_text()


def test_worker_processes_change_nothing(finished, tmp_path):
    _, result = finished
    assert tiny(tmp_path / "run", workers=1, opponents=(), final_opponents=()).run().hash == (
        result.hash
    )


def test_a_finished_run_is_not_done_again(finished):
    folder, result = finished
    names = ["nets/gen-0003/net.json", "shards/gen-0003/manifest.json", "export/net.onnx"]
    times = [(folder / name).stat().st_mtime_ns for name in names]
    again = tiny(folder).run()
    assert asdict(again) == asdict(result)
    assert [(folder / name).stat().st_mtime_ns for name in names] == times


class Killed(BaseException):
    """Nothing that the code under test may catch."""


def test_a_run_goes_on_from_every_file_that_it_publishes(finished, tmp_path, monkeypatch):
    """Crash around each renaming in turn: the result is that of an undisturbed run."""
    _, result = finished
    folder = tmp_path / "tiny"
    # The export has tests of its own, and is whole or absent like everything else.
    shutil.copytree(finished[0] / "export", folder / "export")
    monkeypatch.setattr("bgrl.pipeline.loop.run_report", lambda *_: None)
    real = os.replace
    crashes = 0
    budget = 1
    seen = set()

    def replace(source, target):
        nonlocal left
        left -= 1
        if left == 0 and crashes % 2 == 0:
            raise Killed
        real(source, target)
        if left == 0:
            raise Killed

    while True:
        left = budget
        with monkeypatch.context() as crashing:
            crashing.setattr(os, "replace", replace)
            try:
                again = tiny(folder, opponents=(), final_opponents=("random",)).run()
                break
            except Killed:
                crashes += 1
        # What takes several renamings to publish needs an attempt that lives for so long.
        files = {path for path in folder.rglob("*") if "_tmp." not in str(path)}
        budget = 1 if files - seen else budget + 1
        seen |= files
        assert crashes < 300
    assert crashes > 50
    assert again.hash == result.hash
    assert kept_nets(folder) == kept_nets(finished[0])
    lines = [line for line in read_metrics(folder / "metrics.jsonl") if "kept" in line]
    assert [line["generation"] for line in lines] == [1, 2, 3]


def test_a_missing_extra_is_a_row_and_can_come_later(finished, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    shutil.copytree(finished[0], folder)
    shutil.rmtree(folder / "export")
    loop = tiny(folder, final_opponents=("random", "gnubg_0ply"))

    def missing(*arguments, **options):
        raise MissingExtra("some-package", "some", "this")

    with monkeypatch.context() as without:
        without.setattr("bgrl.players.gnubg.load_gnubg_nn", missing)
        without.setattr("bgrl.pipeline.loop.export_net", missing)
        result = loop.run()
    assert result.rows[0].match is not None
    assert result.rows[1].match is None
    assert result.rows[1].reason == "this needs some-package: pip install 'bgrl[some]'"
    assert result.onnx is None
    assert "bgrl[some]" in result.onnx_reason
    assert "some-package" in result.report.read_text()

    later = tiny(folder, final_opponents=("random", "pubeval")).run()
    assert later.rows[1].match is not None
    assert later.onnx is not None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"generations": 0}, "generations is 0, expected at least 1"),
        ({"workers": -1}, "workers is -1"),
        ({"gate_games": 3}, "gate_games is 3, expected 0 or an even number from 4"),
        ({"gate_games": 2}, "gate_games is 2, expected 0 or an even number from 4"),
        ({"gate_games": -2}, "gate_games is -2"),
        ({"opponent_games": 2}, "opponent_games is 2"),
        ({"final_games": 2}, "final_games is 2"),
        ({"gate_z": float("nan")}, "gate_z is nan"),
        ({"passes": float("inf")}, "passes is inf"),
        ({"hidden": ()}, "hidden is []"),
        ({"hidden": (8, 0)}, "hidden is [8, 0]"),
        ({"lam": (0.5, 1.5)}, "lam is [0.5, 1.5]"),
        ({"passes": 0.0}, "passes is 0.0"),
        ({"lr": -1.0}, "-1.0"),
        ({"lr_end": 1.0}, "from 0.01 to 1.0"),
        ({"val_percent": 100}, "val_percent is 100"),
        ({"val_percent": 0, "revive": 0.1}, "val_percent is 0, but revive needs held-out pos"),
        ({"wandb": "maybe"}, "wandb is 'maybe'"),
        ({"taught": 1.5}, "taught is 1.5, expected 0 to 1"),
        ({"trainer": {"device": "warp"}}, "no device 'warp'"),
        ({"trainer": {"optimiser": "muon"}}, "unknown option trainer.optimiser, expected one of"),
        ({"trainer": {"optimizer": "sgd"}}, "trainer.optimizer is 'sgd', expected one of adamw"),
        ({"encoder": "tesauro199"}, "tesauro199"),
        ({"variant": "chess"}, "chess"),
        ({"opponents": ("pubevil",)}, "unknown player 'pubevil'"),
        ({"final_opponents": ("gnubg_9ply",)}, "unknown player 'gnubg_9ply'"),
    ],
)
def test_a_bad_value_is_named_before_anything_is_written(tmp_path, changes, message):
    with pytest.raises(BgrlError, match=re.escape(message)):
        tiny(tmp_path / "run", **changes)
    assert not (tmp_path / "run").exists()


def test_a_foreign_state_is_refused(tmp_path):
    (tmp_path / "state.json").write_text(json.dumps({"format": "else"}))
    with pytest.raises(BgrlError, match=r"state\.json is not the state of a loop"):
        tiny(tmp_path).run()


@pytest.mark.parametrize(
    "changes",
    [
        {"done": None}, {"done": "3"}, {"done": -1, "kept": []}, {"done": True}, {"kept": None},
        {"kept": []}, {"kept": [1, 2]}, {"kept": [0, 4]}, {"kept": [0, 2, 1]}, {"kept": [0, "1"]},
    ],
)  # fmt: skip
def test_a_damaged_state_is_named(tmp_path, changes):
    state = {"format": "bgrl.loop 1", "done": 3, "kept": [0, 1]}
    (tmp_path / "state.json").write_text(json.dumps(state | changes))
    with pytest.raises(CorruptFile, match=r"state\.json: .* generations done, "):
        tiny(tmp_path).run()


@pytest.mark.parametrize("name", ["state.json", "result.json", "nets/gen-0003/net.json"])
@pytest.mark.parametrize("text", ["[]", "null", "{}", '{"rows": [1]}', '{"rows": [{"match": 1}]}'])
def test_a_file_that_is_another_is_named(finished, tmp_path, name, text):
    folder = tmp_path / "run"
    shutil.copytree(finished[0], folder)
    if name.startswith("nets"):
        state = {"format": "bgrl.loop 1", "done": 3, "kept": [0, 3]}
        (folder / "state.json").write_text(json.dumps(state))
    (folder / name).write_text(text)
    with pytest.raises(BgrlError, match=re.escape(str(folder / name))):
        tiny(folder).run()


def test_a_net_without_its_step_is_named(finished, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished[0], folder)
    (folder / "state.json").unlink()
    path = folder / "nets" / "gen-0001" / "net.json"
    path.write_text(json.dumps(read_json(path) | {"made": {"step": "1"}}))
    with pytest.raises(CorruptFile, match=re.escape(f"{path}: its step is '1'")):
        tiny(folder).run()


def test_a_run_without_the_checkpoints_to_go_on_from_names_them(finished, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished[0], folder)
    state = {"format": "bgrl.loop 1", "done": 2, "kept": [0, 2]}
    (folder / "state.json").write_text(json.dumps(state))
    for name in ("nets/gen-0003", "shards/gen-0003", "train"):
        shutil.rmtree(folder / name)
    with pytest.raises(CorruptFile, match=re.escape(f"{folder / 'train' / 'gen-0002'}: no check")):
        tiny(folder).run()


def test_overlapped_games_are_played_by_a_net_one_generation_older(tmp_path):
    result = tiny(tmp_path / "run", overlap=True, gate_games=0).run()
    nets = [Weights.load(tmp_path / "run" / "nets" / f"gen-{g:04d}").hash for g in range(4)]
    played = [
        open_generation(tmp_path / "run" / "shards" / f"gen-{g:04d}").shards[0].meta.net
        for g in (1, 2, 3)
    ]
    assert played == [nets[0], nets[0], nets[1]]
    assert result.hash == nets[3]


def test_an_overlapped_run_goes_on_as_if_undisturbed(tmp_path, monkeypatch):
    whole = tiny(tmp_path / "whole", overlap=True).run()
    train = Loop._train

    def killed(self, generation, *rest):
        if generation == 2:
            while not is_complete(tmp_path / "cut" / "shards" / "gen-0003"):
                time.sleep(0.01)
            raise Killed
        return train(self, generation, *rest)

    with monkeypatch.context() as killing:
        killing.setattr(Loop, "_train", killed)
        with pytest.raises(Killed):
            tiny(tmp_path / "cut", overlap=True).run()
    # The games that were ahead are used, and not played by a newer net.
    assert open_generation(tmp_path / "cut" / "shards" / "gen-0003").games
    assert tiny(tmp_path / "cut", overlap=True).run().hash == whole.hash


def test_an_error_does_not_wait_for_the_games_that_are_ahead(tmp_path, monkeypatch):
    starts = []

    def failing(self, *arguments):
        while len(starts) < 2:
            time.sleep(0.01)
        raise BgrlError("training diverged")

    monkeypatch.setattr(
        "bgrl.processes._start", lambda job, start=_start: starts.append(job) or start(job)
    )
    monkeypatch.setattr(Loop, "_train", failing)
    monkeypatch.setattr(Loop, "_games", lambda self, generation: (30, 200_000)[generation - 1])
    with pytest.raises(BgrlError, match="training diverged"):
        tiny(tmp_path / "run", overlap=True, generations=2, workers=1).run()
    assert len(starts) == 2
    assert not is_complete(tmp_path / "run" / "shards" / "gen-0002")


def test_a_run_can_begin_with_a_checkpoint(finished, tmp_path):
    folder, result = finished
    quiet = {"opponents": (), "final_opponents": (), "generations": 1}
    further = tiny(tmp_path / "further", start=folder / "net", **quiet).run()
    first = Weights.load(tmp_path / "further" / "nets" / "gen-0000")
    assert first.hash == result.hash != further.hash
    wider = tiny(tmp_path / "wider", start=folder / "net", hidden=(12,), **quiet).run()
    assert Weights.load(wider.net).hidden == (12,)
    for hidden in ((7,), (8, 8)):
        with pytest.raises(BgrlError, match=r"net of .*\(8,\).* asks for "):
            tiny(tmp_path / "other", start=folder / "net", hidden=hidden)


def test_a_net_can_learn_from_a_teacher_first(finished, tmp_path):
    folder, result = finished
    changes = {"start": folder / "net", "hidden": (6, 5), "gate_games": 0, "generations": 4}
    changes |= {"trainer": {"threads": 1, "optimizer": "muon"}}
    taught = tiny(tmp_path / "run", taught=0.5, **changes).run()
    nets = [Weights.load(tmp_path / "run" / "nets" / f"gen-{g:04d}") for g in range(5)]
    assert {net.hidden for net in nets} == {(6, 5)}
    played = [
        open_generation(tmp_path / "run" / "shards" / f"gen-{g:04d}").shards[0].meta.net
        for g in (1, 2, 3, 4)
    ]
    assert played == [result.hash, result.hash, nets[2].hash, nets[3].hash]
    assert taught.hash == nets[4].hash
    with pytest.raises(BgrlError, match="net is a net for backgammon, but the run plays nack"):
        tiny(tmp_path / "other", taught=0.5, variant="nackgammon", **changes)


@pytest.mark.parametrize(
    ("taught", "generations", "expected"),
    [(0.0, 5, 0), (0.29, 100, 29), (0.07, 100, 7), (0.5, 3, 2), (0.1, 4, 1), (1.0, 7, 7)],
)
def test_the_teacher_plays_its_share_of_the_generations_rounded_up(
    finished, taught, generations, expected
):
    loop = tiny("run", start=finished[0] / "net", taught=taught, generations=generations)
    assert loop._taught == expected


def test_nothing_is_taught_without_a_teacher(tmp_path):
    with pytest.raises(BgrlError, match=r"taught is 0\.5, but there is no start"):
        tiny(tmp_path / "run", taught=0.5).run()
    assert not (tmp_path / "run").exists()


def test_a_run_ends_with_fewer_games_whose_luck_is_taken_off(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where the bear-off databases are built
    result = tiny(tmp_path / "run", generations=2, exact=(0.0, 0.2), gate_games=0).run()
    generations = [open_generation(tmp_path / "run" / "shards" / f"gen-000{n}") for n in (1, 2)]
    assert [made.shards[0].meta.exact for made in generations] == [False, True]
    assert [made.games for made in generations] == [30, 6]
    assert Weights.load(result.net).made["games"] == 36
    assert (tmp_path / "data" / "bearoff").is_dir()


def test_units_are_revived_before_a_generation_is_trained_on(tmp_path):
    tiny(tmp_path / "run", generations=2, revive=1.0, gate_games=0).run()
    lines = [line for line in read_metrics(tmp_path / "run" / "metrics.jsonl") if "revived" in line]
    # At a share of 1, whatever is not always open.
    assert [line["generation"] for line in lines] == [1, 2]
    assert all(0 < line["revived"] <= 8 for line in lines)
