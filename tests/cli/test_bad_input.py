"""What is wrong with a user's files and choices is said in one line, and nothing is written."""

import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bgrl.cli.main import main
from bgrl.encoding import get_encoder
from bgrl.errors import BgrlError, InvalidPosition
from bgrl.files import read_json, sha256_file
from bgrl.game import Position
from bgrl.nets import FastNet, Net, save_net
from bgrl.selfplay import generate


@pytest.fixture
def checkpoint(tmp_path):
    return save_net(Net(get_encoder("tesauro198"), (8,)).reset(1), tmp_path / "in" / "net")


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A generation of a few games."""
    folder = tmp_path_factory.mktemp("played") / "gen-0001"
    net = FastNet.from_net(Net(get_encoder("tesauro198"), (8,)).reset(1))
    generate(net, folder, seed=1, games=20, workers=0)
    return folder


def files(folder):
    return sorted(str(path) for path in folder.rglob("*"))


def fails(run, tmp_path, arguments, *parts):
    """The command exits with status 2, one line that holds all of `parts`, and writes nothing."""
    before = files(tmp_path)
    status, out, err = run(*arguments)
    assert status == 2
    assert out == ""
    for part in parts:
        assert part in err
    assert err.count("\n") == 1, err
    assert err.startswith("bgrl: error: ")
    assert files(tmp_path) == before


def users(checkpoint):
    """The commands that read a checkpoint."""
    return [
        ["describe", checkpoint],
        ["evaluate", f"player={checkpoint}", "games=2"],
        ["selfplay", "name=x", f"player={checkpoint}"],
        ["export", f"net={checkpoint}", "folder=out"],
    ]


def test_a_checkpoint_cut_short(run, tmp_path, checkpoint):
    weights = checkpoint / "net.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    for command in users(checkpoint):
        fails(run, tmp_path, command, str(weights), "not a whole safetensors file")


def test_a_checkpoint_with_a_flipped_bit(run, tmp_path, checkpoint):
    weights = checkpoint / "net.safetensors"
    data = bytearray(weights.read_bytes())
    data[-10] ^= 1
    weights.write_bytes(bytes(data))
    for command in users(checkpoint):
        fails(run, tmp_path, command, str(weights), "hash")


def test_a_checkpoint_without_its_description(run, tmp_path, checkpoint):
    (checkpoint / "net.json").write_text('{"format": "bgrl.net",')
    for command in users(checkpoint):
        fails(run, tmp_path, command, str(checkpoint / "net.json"), "not JSON")
    (checkpoint / "net.json").unlink()
    for command in users(checkpoint)[1:]:
        fails(run, tmp_path, command, str(checkpoint))


def test_a_net_of_another_encoder(run, tmp_path, checkpoint):
    path = checkpoint / "net.json"
    description = read_json(path)
    description["encoder"]["hash"] = "0123456789ab"
    path.write_text(json.dumps(description))
    for command in users(checkpoint):
        fails(run, tmp_path, command, str(path), "encoder tesauro198", "0123456789ab")


def test_a_net_of_another_variant(run, tmp_path, checkpoint):
    command = ["evaluate", f"player={checkpoint}", "variant=hypergammon", "games=2"]
    fails(run, tmp_path, command, str(checkpoint), "backgammon, not hypergammon")


def test_a_shard_of_another_schema(run, tmp_path, played):
    shard = tmp_path / "x.parquet"
    pq.write_table(pa.table({"board": [1]}), shard)
    fails(run, tmp_path, ["describe", shard], str(shard), "not a bgrl shard")
    table = pq.read_table(played / "part-00000.parquet")
    metadata = {**table.schema.metadata, b"bgrl.version": b"99"}
    pq.write_table(table.replace_schema_metadata(metadata), shard)
    fails(run, tmp_path, ["describe", shard], str(shard), "version 99, expected")


def test_half_a_shard(run, tmp_path, played):
    shard = tmp_path / "x.parquet"
    shard.write_bytes((played / "part-00000.parquet").read_bytes()[:-1000])
    fails(run, tmp_path, ["describe", shard], str(shard), "not a whole Parquet file")
    shard.write_bytes(b"")
    fails(run, tmp_path, ["describe", shard], str(shard), "empty file")


def test_training_on_nothing_but_foreign_shards(run, tmp_path, played):
    folder = tmp_path / "gen-0001"
    folder.mkdir()
    shard = folder / "part-00000.parquet"
    pq.write_table(pa.table({"board": [1]}), shard)
    manifest = read_json(played / "manifest.json")
    manifest["files"][0] |= {"bytes": shard.stat().st_size, "sha256": sha256_file(shard)}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    before = files(tmp_path)
    status, out, err = run("train", "name=x", f"data=[{folder}]")
    assert (status, out) == (2, "")
    assert f"no position to train on in {folder}" in err
    assert files(tmp_path) == before


def test_folders_that_are_no_data(run, tmp_path):
    command = ["train", "name=x", f"data=[{tmp_path}/nowhere]"]
    fails(run, tmp_path, command, f"{tmp_path}/nowhere: no finished generation")
    fails(run, tmp_path, ["report", tmp_path], str(tmp_path), "metrics.jsonl")
    fails(run, tmp_path, ["describe", tmp_path / "no"], "no such file")
    fails(run, tmp_path, ["describe", tmp_path], "not a shard, generation")


@pytest.mark.parametrize("folder", ["file", "/dev/null/x"])
def test_a_folder_that_can_be_none(run, tmp_path, folder):
    (tmp_path / "file").write_text("")
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 0.5}\n')
    for command in (
        ["evaluate", "player=random", "opponent=random", "games=2", "workers=0"],
        ["ladder", "players=[random,pubeval]", "games=2", "workers=0"],
        ["selfplay", "name=x", "games=2", "workers=0", "net.hidden=[4]"],
        ["report", "."],
    ):
        where = tmp_path / folder
        fails(run, tmp_path, [*command, f"folder={folder}"], f"bgrl: error: {where}")


def test_values_out_of_range(run, tmp_path, checkpoint):
    for arguments, parts in [
        (["selfplay", "name=x", "games=0"], ["games"]),
        (["selfplay", "name=x", "lam=1.5"], ["1.5"]),
        (["selfplay", "name=x", "net.hidden=[0]"], ["net.hidden is [0]"]),
        (["selfplay", "name=x", "net.encoder=unary"], ["encoder 'unary'", "tesauro198"]),
        (["selfplay", "name=x", "variant=chess"], ["'chess'", "hypergammon"]),
        (["selfplay", "name=x", "player=pubeval"], ["'pubeval' is not a net"]),
        (["evaluate", "player=pubevil"], ["unknown player 'pubevil'", "gnubg_0ply"]),
        (["evaluate", "player=random", "games=3"], ["games is 3", "even"]),
        (["evaluate", "player=random", "luck=pubeval"], ["luck=pubeval"]),
        (["ladder", "players=[random]", "anchor=random"], ["ladder: players needs two or more"]),
        (["errors", "benchmark=x.bm", "reference=x"], ["errors: give reference or benchmark"]),
        (["loop", "name=x", "generations=0"], ["generations is 0"]),
        (["loop", "name=x", "net.encoder=unary"], ["encoder 'unary'"]),
    ]:
        fails(run, tmp_path, arguments, *parts)


NAMED = {"selfplay": ["name=x"], "loop": ["name=x"], "train": ["name=x", "data=[x]"]}
NAMED |= {stage: ["player=random"] for stage in ("evaluate", "serve")} | {"calibrate": ["level=x"]}


@pytest.mark.parametrize(
    ("stage", "overrides", "expected"),
    [
        (
            "selfplay evaluate ladder calibrate errors reference export verify loop",
            "workers=-1",
            "expected at least 0",
        ),
        (
            "selfplay train evaluate ladder calibrate reference export serve verify bench loop",
            "seed=-1 seed=9223372036854775808 seed=18446744073709551616",
            "expected",
        ),
        ("selfplay", "generation=-1 lam=nan scatter=-0.1 net.hidden=[8,0]", "expected"),
        ("selfplay", "first_game=-1 first_game=9223372036854775806", "expected"),
        ("train", "batch=-5 batch=0 checkpoint_every=0 trainer.threads=-1", "expected at least"),
        ("train", "epochs=-3 epochs=0 epochs=inf epochs=nan lr=inf", "a finite number above 0"),
        ("loop", "train.passes=inf train.passes=0", "expected a finite number above 0"),
        ("loop", "gate.z=nan gate.z=inf train.lr_end=nan", "expected a finite number"),
        ("loop", "gate.z=-1 generations=0 gate.games=-2 train.window=0", "expected at least"),
        ("ladder calibrate", "anchor_rating=nan anchor_rating=-inf", "expected a finite number"),
        ("ladder calibrate", "scale=inf scale=0 scale=-400.0 scale=nan", "finite number above 0"),
        ("calibrate", "rating=nan pr=nan pr=inf", "expected a finite number"),
        ("calibrate", "plies=4 miss_rate=1.5 miss_depth=0", "expected"),
        ("reference", "count=-5 count=0 rollout.count=-1 rollout.games=0", "expected at least"),
        ("export verify", "positions=0", "expected at least 1"),
        ("serve demo", "port=70000 port=-1", "expected 0 to 65535"),
    ],
)
def test_a_number_out_of_range_is_refused_by_name(run, tmp_path, stage, overrides, expected):
    for one in stage.split():
        for override in overrides.split():
            key, _, value = override.partition("=")
            command = [one, *NAMED.get(one, []), override]
            fails(run, tmp_path, command, f"bgrl: error: {one}: {key} is {value[:3]}", expected)


@pytest.mark.parametrize(
    ("stage", "override"),
    [("evaluate", "seed=9223372036854775807"), ("selfplay", "first_game=4611686018427387904")],
)
def test_the_largest_numbers_work(run, stage, override):
    options = [*NAMED[stage], "games=2", "workers=0", override]
    status, _, err = run(stage, *options, *(["net.hidden=[4]"] if stage == "selfplay" else []))
    assert status == 0, err


def test_every_stage_takes_the_largest_seed(run):
    net, seed = ["net.hidden=[4]"], "seed=9223372036854775807"
    command = ["selfplay", "name=games", "games=30", "workers=0", seed, *net]
    assert run(*command)[0] == 0
    data = ["data=[data/runs/games/shards]", "batch=100", "wandb=disabled", "trainer.threads=1"]
    assert run("train", "name=net", *data, seed, *net)[0] == 0


def test_a_benchmark_without_decisions(run, tmp_path):
    (tmp_path / "x.bm").write_text("# nothing\n")
    command = ["errors", "players=[random]", f"benchmark={tmp_path}/x.bm", "folder=out"]
    fails(run, tmp_path, command, f"{tmp_path}/x.bm has no line")


@pytest.mark.parametrize(
    ("override", "part"),
    [
        ("trainer.device=warp", "no device 'warp'"),
        ("lr=-1.0", "-1.0"),
        ("schedule=sine", "unknown schedule 'sine'"),
        ("val_percent=100", "val_percent is 100"),
        ("wandb=maybe", "wandb_mode is 'maybe'"),
        ("net.hidden=[]", "net.hidden is []"),
    ],
)
def test_training_options_out_of_range(run, tmp_path, played, override, part):
    fails(run, tmp_path, ["train", "name=x", f"data=[{played}]", override], part)


def test_a_missing_extra(run, tmp_path, checkpoint, monkeypatch):
    for module in ("gnubg_nn", "onnx", "onnxruntime"):
        monkeypatch.setitem(sys.modules, module, None)
    command = ["evaluate", "player=random", "opponent=gnubg_0ply", "games=2"]
    fails(run, tmp_path, command, "gnubg", "pip install 'bgrl[gnubg]'")
    command = ["export", f"net={checkpoint}", "folder=out"]
    fails(run, tmp_path, command, "onnx", "pip install 'bgrl[export]'")


@pytest.mark.parametrize("text", ["4HPwATDgc/ABM", "4HPwATDgc/ABMAA", "////////////", ""])
def test_a_malformed_id_is_one_line(text, monkeypatch, capsys):
    def stage(arguments):
        Position.from_gnubg_id(text)

    monkeypatch.setattr("bgrl.cli.main.dispatch", stage)
    assert issubclass(InvalidPosition, BgrlError)
    assert main(["any"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("bgrl: error: ")
    assert err.count("\n") == 1
