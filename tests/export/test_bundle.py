"""Levels, and the bundle: what it holds, how it is read back, and what is refused."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from bgrl.cli.main import main
from bgrl.errors import BgrlError, CorruptFile, SchemaMismatch
from bgrl.export import Loss, OnnxNet, export_levels, read_onnx, record_losses
from bgrl.export.positions import sampled_positions
from bgrl.files import sha256_file
from bgrl.game import HYPERGAMMON, Position
from bgrl.game.plays import generate_plays, new_play_buffer
from bgrl.nets import FastNet
from bgrl.nets.flat import STORAGE, read_flat, rounded
from bgrl.players import load_player
from bgrl.players.bundle import open_bundle
from bgrl.players.level import Level, LevelPlayer, Misses
from bgrl.players.net import NetPlayer
from bgrl.players.style import CAUTIOUS
from bgrl.search import Filters, MoveFilter, Searcher
from bgrl.search.compact import CompactBearoff

pytest.importorskip("onnxruntime")

EASY = Level("easy", misses=Misses(rate=0.9, scale=0.2))
HARD = Level("hard")
MASTER = Level("master", 2, Filters((MoveFilter(0, 4, 0.1), None), MoveFilter(1)))


@pytest.fixture(scope="module")
def bundle(weights, tmp_path_factory):
    other = replace(weights, layers=[(w * np.float32(0.5), b) for w, b in weights.layers])
    folder = tmp_path_factory.mktemp("bundle") / "bots"
    levels = [(EASY, other), (HARD, weights), (MASTER, weights)]
    return export_levels(levels, folder, positions=100).folder


def test_levels_come_back_and_share_a_net(bundle, weights):
    opened = open_bundle(bundle)
    assert opened.levels == {"easy": EASY, "hard": HARD, "master": MASTER}
    assert opened.nets == {"easy": "easy", "hard": "hard", "master": "hard"}
    assert opened.weights("master").hash == weights.hash
    assert not (bundle / "master.onnx").exists()


@pytest.mark.parametrize("storage", STORAGE)
def test_each_storage_holds_the_same_rounded_net_in_both_formats(bundle, weights, storage):
    stem = "hard" if storage == "float32" else f"hard.{storage}"
    wanted = rounded(weights, storage)
    assert read_flat(bundle / f"{stem}.bgnet").hash == wanted.hash
    assert read_onnx(bundle / f"{stem}.onnx").hash == wanted.hash
    boards = sampled_positions(FastNet(weights), 200, seed=4)
    out = OnnxNet(bundle / f"{stem}.onnx").evaluate(boards)
    assert np.abs(out - FastNet(wanted).evaluate(boards)).max() < 1e-5


def test_load_player_takes_a_level_of_a_bundle(bundle, weights):
    hard = load_player(str(bundle / "hard"))
    position = Position.start()
    expected = NetPlayer(FastNet(weights)).rank_plays(position, (3, 1))
    assert [str(p) for p in hard.rank_plays(position, (3, 1))] == [str(p) for p in expected]
    easy = load_player(bundle / "easy")
    assert isinstance(easy, LevelPlayer)
    assert easy.name == "easy"
    master = load_player(bundle / "master")
    board = sampled_positions(FastNet(weights), 30, seed=4)[0]
    database = CompactBearoff.load(bundle / "bearoff-15.bgoff")
    wanted = Searcher(weights, 2, MASTER.filters, database).best_play(board, 3, 1)
    np.testing.assert_array_equal(master.choose(board, 3, 1), wanted)
    styled = load_player(f"{bundle / 'hard'}@cautious")
    assert isinstance(styled, LevelPlayer)
    assert styled.level.style == CAUTIOUS
    with pytest.raises(BgrlError, match="no level 'expert'; it has easy, hard, master"):
        load_player(bundle / "expert")
    with pytest.raises(BgrlError, match="level hard plays backgammon, not hypergammon"):
        load_player(bundle / "hard", HYPERGAMMON)


def test_load_player_takes_a_bundle_of_one_level(weights, tmp_path):
    export_levels([(HARD, weights)], tmp_path / "one", positions=20)
    assert load_player(tmp_path / "one").name == "hard"


def test_a_bundle_of_several_levels_needs_one_named(bundle):
    with pytest.raises(BgrlError, match="easy, hard, master"):
        load_player(bundle)


def test_every_level_of_a_bundle_looks_up_the_bear_off(bundle):
    database = CompactBearoff.load(bundle / "bearoff-15.bgoff")
    # Two on the ace point against one: this roll or never, and 2 is as good as 6.
    board = np.zeros((2, 26), np.int8)
    board[0, [0, 1, 3]] = 12, 2, 1
    board[1, [0, 2]] = 13, 2
    position = Position(board)
    for name in ("easy", "hard", "master", "hard@runner"):
        player = load_player(f"{bundle / name}")
        assert isinstance(player, LevelPlayer)
        found = player.evaluate(position)
        np.testing.assert_array_equal(found.probabilities, database.evaluate(board))
        for ranked in player.rank_plays(position, (2, 1)):
            theirs = database.evaluate(ranked.position.board)
            assert ranked.equity == pytest.approx(1 - 2 * theirs[0], abs=1e-6)
    golden = json.loads((bundle / "bearoff-15.golden.json").read_text())
    assert golden["file"] == "bearoff-15.bgoff"
    for case in golden["cases"]:
        case_board = np.array(case["board"], np.int8)
        np.testing.assert_allclose(database.evaluate(case_board), case["probabilities"], atol=1e-7)
        assert sum(case["all_off"][0]) == pytest.approx(1, abs=1e-6)
    assert (
        sum(case["probabilities"][1] + case["probabilities"][3] > 0.01 for case in golden["cases"])
        >= 5
    )


def test_styles_show_in_the_golden_vectors(bundle):
    golden = json.loads((bundle / "hard.golden.json").read_text())
    differ = dict.fromkeys(("aggressive", "cautious", "runner"), 0)
    for decision in golden["decisions"]:
        chosen = {
            choice["style"]: choice["board"]
            for choice in decision["chosen"]
            if choice["level"] == "hard" and choice["chance"] == 0
        }
        for name in differ:
            differ[name] += chosen[name] != chosen[None]
    assert all(differ.values()), differ


def test_a_bundle_may_hold_a_smaller_net(weights, make_weights, tmp_path):
    small = make_weights(hidden=(8,), seed=3)
    levels = [(HARD, weights), (MASTER, weights)]
    folder = export_levels(levels, tmp_path / "bots", positions=20, smaller={"hard": small}).folder
    record = json.loads((folder / "bundle.json").read_text())
    assert record["nets"]["hard"]["smaller_than"] is None
    assert record["nets"]["hard.small"]["smaller_than"] == "hard"
    assert record["nets"]["hard.small"]["hidden"] == [8]
    assert read_flat(folder / "hard.small.bgnet").hash == small.hash
    assert load_player(folder / "hard.small.int8.bgnet").net.hash == rounded(small, "int8").hash
    loss = Loss(0.01, 0.002, 2000, 1)
    record_losses(folder, {("hard.small", "int8"): loss})
    stored = open_bundle(folder).record["nets"]["hard.small"]["stored"]
    assert stored["int8"]["loss"] == {
        "points_a_game": 0.01, "standard_error": 0.002, "games": 2000, "seed": 1,
    }  # fmt: skip
    assert stored["float32"]["loss"] is None
    for smaller, message in (
        ({"easy": small}, "'easy', which is not exported"),
        ({"hard": weights}, "has a smaller one already, or is that"),
        (
            {"hard": small, "master": make_weights(hidden=(9,))},
            "level master: its net has a smaller one already",
        ),
        ({"hard": make_weights(variant="hypergammon")}, "plays hypergammon, not backgammon"),
    ):
        with pytest.raises(BgrlError, match=message):
            export_levels(levels, tmp_path / "other", positions=20, smaller=smaller)
    assert not (tmp_path / "other").exists()


def test_a_pruner_comes_with_its_level(weights, make_weights, tmp_path):
    small = make_weights(hidden=(8,), seed=3)
    pruned = replace(MASTER, name="pruned", keep=2)
    levels = [(HARD, weights), (MASTER, weights), (pruned, weights)]
    export_levels(levels, tmp_path / "bots", 20, smaller={"hard": small}, pruners={"pruned": small})
    bundle = open_bundle(tmp_path / "bots")
    assert bundle.pruners == {"hard": None, "master": None, "pruned": "hard.small"}
    assert bundle.pruner("pruned").hash == small.hash
    assert list(bundle.record["nets"]) == ["hard", "hard.small"]
    player = load_player(tmp_path / "bots" / "pruned")
    assert player.searcher.pruner.net.hash == small.hash
    whole = load_player(tmp_path / "bots" / "master")
    boards = sampled_positions(FastNet(weights), 30, seed=4)
    differ = player.searcher.evaluate(boards) != whole.searcher.evaluate(boards)
    assert differ.any()
    golden = json.loads((tmp_path / "bots" / "hard.golden.json").read_text())
    assert {c["level"] for d in golden["decisions"] for c in d["chosen"]} == set(bundle.levels)
    assert main(["describe", str(tmp_path / "bots")]) == 0
    # A pruner that a level plays by itself comes once.
    levels = [(replace(HARD, name="weak"), small), (pruned, weights)]
    export_levels(levels, tmp_path / "two", 20, pruners={"pruned": small})
    assert open_bundle(tmp_path / "two").pruners["pruned"] == "weak"


def test_a_pruner_missing_or_of_another_game_is_refused(weights, make_weights, tmp_path):
    small = make_weights(hidden=(8,), seed=3)
    levels = [(HARD, weights), (replace(MASTER, keep=2), weights)]
    for pruners, message in (
        ({}, "level master takes a pruner"),
        ({"master": small, "hard": small}, "level hard has no pruner"),
        ({"master": make_weights(variant="hypergammon")}, "plays hypergammon, not backgammon"),
    ):
        with pytest.raises(BgrlError, match=message):
            export_levels(levels, tmp_path / "bots", positions=20, pruners=pruners)
    folder = export_levels(levels, tmp_path / "bots", 20, pruners={"master": small}).folder
    record = json.loads((folder / "levels.json").read_text())
    record["levels"][1]["pruner"] = "tiny"
    _change(folder, "levels.json", record)
    with pytest.raises(CorruptFile, match=r"levels\.json: names the net tiny"):
        open_bundle(folder)


def test_a_bundle_of_another_game_has_its_own_database(make_weights, tmp_path):
    weights = make_weights(variant="hypergammon")
    folder = export_levels([(HARD, weights)], tmp_path / "bots", positions=20).folder
    player = load_player(folder, HYPERGAMMON)
    assert player.searcher.bearoff.description["checkers"] == 3
    assert (folder / "bearoff-3.bgoff").stat().st_size < 2000


@pytest.mark.parametrize(
    "name", ["levels.json", "hard.onnx", "hard.int8.bgnet", "bearoff-15.bgoff"]
)
def test_damage_is_refused_by_the_file_s_name(bundle, tmp_path, name):
    copy = tmp_path / "copy"
    shutil.copytree(bundle, copy, dirs_exist_ok=True)
    data = (copy / name).read_bytes()
    open_bundle(copy)
    (copy / name).write_bytes(data[:-7])
    with pytest.raises(CorruptFile, match=rf"{name}: has .* bytes"):
        open_bundle(copy)
    (copy / name).write_bytes(data[:-7] + bytes([data[-7] ^ 1]) + data[-6:])
    with pytest.raises(CorruptFile, match=rf"{name}: its SHA-256"):
        open_bundle(copy)
    (copy / name).unlink()
    with pytest.raises(CorruptFile, match=rf"{name}: missing"):
        open_bundle(copy)


def test_other_versions_and_kinds_are_refused(bundle, tmp_path):
    record = json.loads((bundle / "bundle.json").read_text())
    path = tmp_path / "bundle.json"
    path.write_text(json.dumps(record | {"version": 2}))
    with pytest.raises(SchemaMismatch, match=r"bundle\.json has version 2"):
        open_bundle(tmp_path)
    path.write_text(json.dumps(record | {"format": "other"}))
    with pytest.raises(SchemaMismatch, match=r"bundle\.json"):
        open_bundle(tmp_path)
    path.write_text("{")
    with pytest.raises(CorruptFile, match=r"bundle\.json: not JSON"):
        open_bundle(tmp_path)
    path.write_text(json.dumps(record | {"files": {"../x": {}, "levels.json": {}}}))
    with pytest.raises(CorruptFile, match=r"\.\./x"):
        open_bundle(tmp_path)
    with pytest.raises(BgrlError, match="is no bundle"):
        open_bundle(tmp_path / "nowhere")


def _change(folder, name, content):
    """Write other content into a JSON file of a bundle, which then names it as it is."""
    path = folder / name
    path.write_text(json.dumps(content))
    record = json.loads((folder / "bundle.json").read_text())
    record["files"][name] = {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
    (folder / "bundle.json").write_text(json.dumps(record))


def test_a_malformed_level_is_refused(bundle, tmp_path):
    shutil.copytree(bundle, tmp_path, dirs_exist_ok=True)
    levels = json.loads((bundle / "levels.json").read_text())
    levels["levels"][0]["misses"]["rate"] = 2
    _change(tmp_path, "levels.json", levels)
    with pytest.raises(BgrlError, match="rate"):
        open_bundle(tmp_path)


@pytest.mark.parametrize(
    ("names", "message"),
    [([], "levels"), (["a", "a"], "different names"), (["a/b"], "cannot name a file")],
)
def test_levels_that_cannot_be_files_are_refused(weights, tmp_path, names, message):
    levels = [(Level(name), weights) for name in names]
    with pytest.raises(BgrlError, match=message):
        export_levels(levels, tmp_path / "bots", positions=10)
    assert not list(tmp_path.iterdir())


def test_misses_never_prefer_a_worse_play_and_follow_the_chance():
    misses = Misses(rate=0.8, scale=0.1, depth=3)
    equities = [0.5, 0.45, 0.2, 0.19]
    counts = np.bincount([misses.choose(equities, c) for c in np.arange(0, 1, 1e-4)], minlength=4)
    weights = np.array([1, 0.8 * np.exp(-0.5), 0.8 * np.exp(-3), 0])
    assert counts / 1e4 == pytest.approx(weights / weights.sum(), abs=2e-4)
    assert misses.choose([0.3], 0.999) == 0
    assert Misses(rate=0, scale=0.1).choose(equities, 0.999999) == 0
    # The closer the second play, the oftener it is taken.
    close, far = ([misses.choose([0, -d], c) for c in np.arange(0, 1, 0.01)] for d in (0.01, 0.3))
    assert sum(close) > sum(far) > 0


@pytest.mark.parametrize("bad", [{"rate": 1.1}, {"rate": -0.1}, {"scale": 0}, {"depth": 0}])
def test_impossible_misses_are_refused(bad):
    with pytest.raises(BgrlError, match="misses need"):
        Misses(**({"rate": 0.5, "scale": 0.1} | bad))


def test_a_level_s_chance_comes_from_the_game_alone(weights):
    player = LevelPlayer(EASY, FastNet(weights))
    boards = sampled_positions(FastNet(weights), 60, seed=8)

    def choices(game):
        player.start_game(5, game, 1)
        return np.stack([player.choose(board, 3, 1) for board in boards])

    once = choices(7)
    choices(8)
    np.testing.assert_array_equal(once, choices(7))
    best = np.stack([NetPlayer(player.searcher.net).choose(board, 3, 1) for board in boards])
    differ = (once != best).any(axis=(1, 2)).sum()
    assert 0 < differ < 50


def test_a_level_plays_legally(weights):
    player = LevelPlayer(EASY, FastNet(weights))
    buffer = new_play_buffer()
    for board in sampled_positions(FastNet(weights), 100, seed=9):
        after = player.choose(board, 6, 4)
        if generate_plays(board, 6, 4, buffer) == 0:
            np.testing.assert_array_equal(after, board[::-1])
        else:
            assert after[1].sum() == board[0].sum()
            assert (after[1] != board[0]).any()


def test_the_command_describes_a_bundle(bundle, capsys):
    assert main(["describe", str(bundle)]) == 0
    printed = capsys.readouterr().out
    assert "a bundle" in printed
    for word in ("easy", "hard", "master", "2 plies", "int8"):
        assert word in printed
    assert main(["describe", str(bundle / "bearoff-15.bgoff")]) == 0
    assert "54,264" in capsys.readouterr().out


def test_every_json_file_fits_its_schema(bundle):
    jsonschema = pytest.importorskip("jsonschema")
    schemas = {}
    for path in sorted((bundle / "schemas").iterdir()):
        schema = json.loads(path.read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        schemas[path.name.split(".")[0]] = jsonschema.Draft202012Validator(schema)
    files = sorted(path for path in bundle.glob("*.json"))
    assert len(files) == 5
    for path in files:
        kind = path.stem
        if path.name.endswith(".golden.json"):
            kind = "bearoff" if path.name.startswith("bearoff-") else "golden"
        content = json.loads(path.read_text())
        schemas[kind].validate(content)
        with pytest.raises(jsonschema.ValidationError):
            schemas[kind].validate(content | {"version": 2})
        with pytest.raises(jsonschema.ValidationError):
            schemas[kind].validate(content | {"surplus": 1})
