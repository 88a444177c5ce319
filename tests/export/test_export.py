"""The exported folder, its golden vectors and the command."""

import json
from dataclasses import replace

import numpy as np
import pytest

from bgrl.cli.export import shipped_levels
from bgrl.cli.main import main
from bgrl.errors import BgrlError, CorruptFile, EncoderMismatch, SchemaMismatch
from bgrl.export import export as export_module
from bgrl.export import export_levels, export_net, write_onnx
from bgrl.export.golden import check_golden
from bgrl.export.positions import constructed_positions, covering, kind_of, sampled_positions
from bgrl.game import BACKGAMMON, HYPERGAMMON, Position
from bgrl.nets import FastNet
from bgrl.players.bundle import open_bundle
from bgrl.players.level import Level, Measured, MeasuredRating, Misses, write_level

pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def exported(weights, tmp_path_factory):
    return export_net(weights, tmp_path_factory.mktemp("export") / "net", positions=300)


def test_a_folder_holds_the_net_and_its_golden_vectors(exported, weights):
    assert sorted(path.name for path in exported.folder.iterdir()) == [
        "bearoff-15.bgoff", "bearoff-15.golden.json", "bundle.json",
        "levels.json", "net.bgnet", "net.float16.bgnet", "net.float16.onnx",
        "net.golden.json", "net.int8.bgnet", "net.int8.onnx", "net.onnx", "schemas",
    ]  # fmt: skip
    assert all(parity.holds for parity in exported.parities.values())
    assert exported.onnx == exported.folder / "net.onnx"
    assert check_golden(exported.folder / "net.golden.json", weights) == 0
    assert "net.int8.bgnet" in str(exported)
    assert "torch and ONNX Runtime" in str(exported)


def test_golden_vectors_start_at_the_start_and_cover_every_input(exported, weights):
    golden = json.loads((exported.folder / "net.golden.json").read_text())
    first = golden["cases"][0]
    assert first["gnubg_id"] == "4HPwATDgc/ABMA"
    # Tesauro's units for the points 1 to 24 are four each: two checkers on 24, five on 13.
    assert first["inputs"][4 * 23 : 4 * 24] == [1, 1, 0, 0]
    assert first["inputs"][4 * 12 : 4 * 13] == [1, 1, 1, 1]
    inputs = np.array([case["inputs"] for case in golden["cases"]])
    always = {i for i in range(198) if weights.encoder.describe(i).startswith("always")}
    assert {i for i in range(198) if not (inputs[:, i] > 0).any()} <= always
    assert {i for i in range(198) if (inputs[:, i] > 0).all()} <= always
    assert {case["kind"] for case in golden["cases"]} == {
        "contact", "bar", "race", "bear-off", "over",
    }  # fmt: skip


def test_a_wrong_golden_input_is_found_by_its_meaning(exported, weights, tmp_path):
    golden = json.loads((exported.folder / "net.golden.json").read_text())
    golden["cases"][3]["inputs"][4] += 1
    path = tmp_path / "golden.json"
    path.write_text(json.dumps(golden))
    with pytest.raises(CorruptFile, match=r"case 3: input 4 \(own point 2: n >= 1\)"):
        check_golden(path, weights)


def test_golden_vectors_of_another_kind_version_or_encoder_are_refused(
    exported, weights, make_weights, tmp_path
):
    path = exported.folder / "net.golden.json"
    with pytest.raises(EncoderMismatch, match="thermometer324"):
        check_golden(path, make_weights("thermometer324"))
    golden = json.loads(path.read_text())
    for key, value in (("version", 9), ("format", "other")):
        changed = tmp_path / "golden.json"
        changed.write_text(json.dumps(golden | {key: value}))
        with pytest.raises(SchemaMismatch, match=r"golden\.json"):
            check_golden(changed, weights)


def test_an_export_that_differs_is_not_published(weights, make_weights, tmp_path, monkeypatch):
    other = make_weights(seed=2)
    monkeypatch.setattr(
        export_module, "write_onnx", lambda _, path, storage: write_onnx(other, path, storage)
    )
    with pytest.raises(BgrlError, match="nothing was published"):
        export_net(weights, tmp_path / "net", positions=20)
    assert not list(tmp_path.iterdir())


def test_an_export_replaces_an_export_but_nothing_else(weights, tmp_path):
    folder = tmp_path / "net"
    export_net(weights, folder, positions=20)
    export_net(weights, folder, positions=20)
    (folder / "diary.txt").write_text("dear diary")
    with pytest.raises(BgrlError, match=r"diary\.txt"):
        export_net(weights, folder, positions=20)
    assert (folder / "diary.txt").read_text() == "dear diary"


def test_sampled_positions_are_distinct_legal_and_of_every_kind(weights):
    boards = sampled_positions(FastNet(weights), 500, seed=7)
    assert len({board.tobytes() for board in boards}) == len(boards) == 500
    for board in boards:
        Position(board)
    kinds = [kind_of(board) for board in boards]
    assert all(kinds.count(kind) >= 60 for kind in set(kinds))
    assert len(set(kinds)) == 5
    again = sampled_positions(FastNet(weights), 500, seed=7)
    np.testing.assert_array_equal(boards, again)


@pytest.mark.parametrize("variant", [BACKGAMMON, HYPERGAMMON])
def test_constructed_positions_put_every_count_on_every_slot(variant):
    boards = constructed_positions(variant, seed=1)
    for board in boards:
        Position(board, variant)
    seen = {(i, int(n)) for board in boards for i, n in enumerate(board.ravel())}
    for i in range(52):
        for count in range(variant.checkers + 1):
            assert (i, count) in seen


def test_covering_shows_every_input_that_can_be_shown(weights):
    boards = constructed_positions(BACKGAMMON, seed=1)
    chosen = covering(weights.encoder, boards)
    assert len(chosen) < 60
    everything = weights.encoder.encode(boards) > 0
    few = everything[chosen]
    np.testing.assert_array_equal(few.any(axis=0), everything.any(axis=0))
    np.testing.assert_array_equal(few.all(axis=0), everything.all(axis=0))


def test_the_command(weights, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    weights.save("net")
    assert main(["export", "net=net", "folder=out", "positions=50"]) == 0
    printed = capsys.readouterr().out
    assert "torch and ONNX Runtime" in printed
    assert main(["describe", "out/net.onnx"]) == 0
    assert weights.hash in capsys.readouterr().out


@pytest.mark.parametrize(
    ("overrides", "names"),
    [
        (["net=nobody"], "nobody"),
        ([], "net=FOLDER"),
        (["net=net", "level=hard"], "not both"),
        (["level=nobody"], "nobody"),
        (["net=net", "positions=0"], "at least 1"),
        (["net=net", "folder=net"], "net.json"),
        (["net=net", "posit=3"], "posit"),
        (["net=net", "games=3"], "even number"),
        (["net=net", "small=[net:nobody]"], "nobody"),
        (["net=net", "small=[nobody]"], "LEVEL:FOLDER"),
        (["net=net", "small=[hard:net]"], "'hard', which is not exported"),
    ],
)
def test_the_command_refuses_in_one_line(weights, tmp_path, capsys, monkeypatch, overrides, names):
    monkeypatch.chdir(tmp_path)
    weights.save("net")
    assert main(["export", *overrides]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("bgrl: error:")
    assert names in printed
    assert printed.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net"]


def test_levels_in_a_folder_of_checkpoints(weights, make_weights, tmp_path):
    for name in ("easy", "hard", "master"):
        (tmp_path / name).mkdir()
    weights.save(tmp_path / "hard")
    make_weights(seed=5).save(tmp_path / "easy")
    rating = MeasuredRating(1200.0, 10.0, "hard", 1700.0, 2000.0, 4000, 1)
    measured = Measured("", "a test", "2026-11-30", rating)
    easy = Level("easy", misses=Misses(0.5, 0.1), measured=measured)
    master = Level(
        "master", plies=2, keep=3, measured=replace(measured, rating=replace(rating, value=1900))
    )
    write_level(easy, tmp_path / "easy", "easy")
    small = make_weights(hidden=(8,), seed=6)
    small.save(tmp_path / "hard" / "small")
    write_level(master, tmp_path / "master", "hard", "hard/small")
    (tmp_path / "README.md").write_text("three levels")
    levels, pruners = shipped_levels(tmp_path, "all")
    # From the weakest to the strongest; what was not measured comes last.
    assert [level for level, _ in levels] == [easy, master, Level("hard")]
    assert levels[1][1].hash == levels[2][1].hash == weights.hash != levels[0][1].hash
    assert pruners["master"].hash == small.hash
    assert [level for level, _ in shipped_levels(tmp_path, "master")[0]] == [master]
    with pytest.raises(BgrlError, match=r"no level 'expert'.*easy.*hard.*master"):
        shipped_levels(tmp_path, "expert")
    folder = export_levels(levels, tmp_path / "bots", positions=20, pruners=pruners).folder
    # The net is named after the level that plays as it does by itself.
    assert open_bundle(folder).nets == {"easy": "easy", "hard": "hard", "master": "hard"}
    assert open_bundle(folder).pruners == {"easy": None, "hard": None, "master": "hard.small"}


def test_the_command_measures_what_smaller_files_lose(
    weights, make_weights, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    weights.save("net")
    make_weights(hidden=(8,), seed=3).save("small")
    command = ["export", "net=net", "small=[net:small]", "folder=out", "positions=20", "games=40"]
    assert main([*command, "workers=0"]) == 0
    printed = capsys.readouterr().out
    assert "net.small as float32: loses" in printed
    nets = json.loads((tmp_path / "out" / "bundle.json").read_text())["nets"]
    losses = {
        (net, storage): stored["loss"]
        for net, record in nets.items()
        for storage, stored in record["stored"].items()
    }
    assert losses["net", "float32"] is None
    assert len(losses) == 6
    assert all(loss["games"] == 40 for loss in losses.values() if loss)
    # Rounding to float16 changes hardly a play; another net plays another game.
    assert abs(losses["net", "float16"]["points_a_game"]) < 0.1
    assert losses["net.small", "float32"]["standard_error"] > 0
    assert main(["describe", "out"]) == 0
    assert "loses" in capsys.readouterr().out
