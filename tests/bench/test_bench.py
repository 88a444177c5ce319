"""Benchmarks run, count what they say they count, and name what is missing. No speed is tested."""

import json
import os

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from bgrl.bench import PARTS, Settings, kernels, run_bench
from bgrl.bench.child import Child
from bgrl.bench.figures import Figure, Goal, Series
from bgrl.bench.ours import LAM, NetGames, dense_flops, sparse_flops
from bgrl.bench.profile import KernelProfile
from bgrl.bench.subject import find_subjects
from bgrl.cli.main import main
from bgrl.data import read_positions
from bgrl.encoding import get_encoder
from bgrl.errors import BgrlError
from bgrl.game import BACKGAMMON
from bgrl.game.board import SLOTS
from bgrl.game.plays import generate_plays, new_play_buffer
from bgrl.nets import FastNet, Net, save_net
from bgrl.selfplay import generate

TINY = ["repetitions=2", "seconds=0.01", "sample=20", "window=3000", "games=20", "batch=64"]


@pytest.fixture(scope="module")
def net():
    return Net(get_encoder("tesauro198"), (16,)).reset(1)


@pytest.fixture
def bench(tmp_path, monkeypatch, capsys):
    """Run `bgrl bench` at a tiny size; returns (bench….json, standard output)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        assert main(["bench", *arguments, *TINY, "out=out"]) == 0
        (path,) = (tmp_path / "out").glob("bench*.json")
        return json.loads(path.read_text()), capsys.readouterr().out

    return run


def test_figures():
    ours, peer = Series("bgrl", [8.0, 10.0, 30.0]), Series("peer", [4.0, 2.0, 10.0])
    figure = Figure("games", "games/s", ours, peer, Goal(3, of_ratio=True))
    assert figure.ratio is not None
    assert figure.ratio.values == [2, 5, 3]
    assert figure.ratio.median == 3
    assert figure.met is True
    assert Figure("games", "games/s", ours, peer, Goal(11)).met is False
    assert Figure("memory", "MB", ours, goal=Goal(10, at_most=True)).met is True
    assert Figure("games", "games/s", ours, None, Goal(3, of_ratio=True)).met is None
    assert Figure("games", "games/s", None, goal=Goal(3)).met is None
    assert Figure("games", "games/s", ours).met is None


def test_dense_flops_are_those_that_torch_counts(net):
    inputs = torch.rand(7, net.encoder.n_inputs)
    with FlopCounterMode(display=False) as counter:
        net.logits(inputs).sum().backward()
    weights = net.weights()
    assert counter.get_total_flops() == 7 * dense_flops(weights)
    saved = dense_flops(weights) - sparse_flops(weights, 12)
    assert saved == 4 * net.encoder.n_inputs * 16 - 2 * 12 * 16


@pytest.mark.slow
def test_the_games_that_are_timed_are_those_of_self_play(net, tmp_path):
    made = generate(FastNet.from_net(net), tmp_path / "g", seed=3, games=8, lam=LAM, workers=0)
    (rows,) = (read_positions(shard) for shard in made.shards)
    games = NetGames(net.weights(), 3)
    games.next_game = 0
    boards, dice = games.turns(len(rows))
    np.testing.assert_array_equal(boards, rows.boards)

    buffer = new_play_buffer()
    counts = [
        generate_plays(board, *roll, buffer) for board, roll in zip(boards, dice, strict=True)
    ]
    fast = FastNet.from_net(net)
    plies, evaluations = kernels.play_net(
        fast.arrays, fast.scratch, BACKGAMMON.start_board(), 3, 0, 8, 2000,
        np.zeros((2, 2, SLOTS), np.int8), np.zeros((2, 2), np.int64),
    )  # fmt: skip
    assert plies == len(rows)
    assert evaluations == sum(max(1, count) for count in counts)
    after = np.zeros((sum(counts) + 1, 2, SLOTS), np.int8)
    assert kernels.candidates(boards, dice, buffer, after) == sum(counts)
    assert (after[:-1].sum(2) == 15).all()
    assert not after[-1].any()


def test_random_games_end_and_depend_on_the_seed():
    def plies(seed, games):
        scratch = new_play_buffer(), *np.zeros((2, 2, SLOTS), np.int8)
        return kernels.play_random(BACKGAMMON.start_board(), seed, 0, games, *scratch)

    assert plies(1, 200) == plies(1, 200) != plies(2, 200)
    assert 80 < plies(1, 200) / 200 < 110  # random games take about 94 plies


def test_a_widened_net_is_the_same_function(net, tmp_path):
    save_net(net, tmp_path / "net")
    found = find_subjects(str(tmp_path / "net"), [(48,), (8,), (16,)], seed=1)
    assert found[(8,)] is None
    assert found[(16,)].weights.hash == net.hash
    wide = found[(48,)]
    assert wide.shape == "48"
    boards = NetGames(net.weights(), 1).turns(300)[0]
    np.testing.assert_allclose(
        FastNet(wide.weights).evaluate(boards), FastNet.from_net(net).evaluate(boards), atol=1e-6
    )
    assert list(find_subjects(str(tmp_path / "net"), [(9, 9)], seed=1)) == [(9, 9), (16,)]
    with pytest.raises(BgrlError, match="no checkpoint folder and no level"):
        find_subjects("nowhere", [(16,)], seed=1)


def test_phases_add_up(net):
    phases = KernelProfile(net.weights(), 1).phases(0.01)
    parts = [value for name, value in phases.items() if name not in ("whole", "plays")]
    assert sum(parts) == pytest.approx(phases["whole"])
    assert min(phases["generation"], phases["later layers"], phases["clamping and choice"]) > 0


def test_what_goes_wrong_in_a_process_is_told():
    with Child(dict) as child, pytest.raises(BgrlError, match=r"dict: .*KeyError: 'x'"):
        child.call("__getitem__", "x")
    with pytest.raises(BgrlError, match="process of _exit ended with code 3"):
        Child(os._exit, 3)


def test_missing_peers_are_named(bench, tmp_path, monkeypatch):
    fakes = tmp_path / "fakes"
    fakes.mkdir()
    for name in ("pyspiel", "gnubg_nn"):
        (fakes / f"{name}.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(fakes)  # spawned processes inherit the path
    result, text = bench("plays")
    assert result["format"] == "bgrl.bench"
    assert result["config"]["what"] == "plays"
    assert {"cpu", "cores", "memory_bytes", "packages"} <= result["machine"].keys()
    assert result["profile"] is None
    gnubg, openspiel = result["figures"]
    assert "pip install 'bgrl[gnubg]'" in gnubg["missing"]
    assert "pip install 'bgrl[dev]'" in openspiel["missing"]
    assert gnubg["peer"] is gnubg["ratio"] is gnubg["met"] is None
    assert len(gnubg["ours"]["values"]) == 2
    assert text.count("not installed") == 2
    assert "pip install 'bgrl[gnubg]'" in text
    assert not list((tmp_path / "out").glob("*.svg"))  # there is nothing to compare


def test_bytes_of_a_position(bench):
    result, text = bench("data")
    (figure,) = result["figures"]
    assert 5 < figure["ours"]["median"] < 200
    assert figure["goal"] == {"limit": 24, "of": "ours", "at": "most"}
    assert "lose_backgammon" in figure["note"]
    assert result["nets"][0]["origin"] in text


def test_looking_ahead(bench):
    result, _ = bench("lookahead")
    decisions, means = result["figures"]
    assert decisions["unit"] == "decisions/s"
    assert decisions["missing"] or decisions["peer"]["name"] == "gnubg 2-ply"
    assert (means["ours"]["name"], means["peer"]["name"]) == ("pruned", "all plays")


def test_wrong_settings(tmp_path):
    with pytest.raises(BgrlError, match="there is no 'speed', only all, plays, "):
        run_bench("speed", Settings())
    with pytest.raises(BgrlError, match="repetitions is 0"):
        Settings(repetitions=0)


@pytest.mark.slow
@pytest.mark.gnubg
def test_everything_with_a_profile(bench, tmp_path):
    result, text = bench("all", "--profile")
    assert {figure["part"] for figure in result["figures"]} == set(PARTS)
    for figure in result["figures"]:
        assert figure["ours"]["low"] <= figure["ours"]["median"] <= figure["ours"]["high"]
    assert set(result["profile"]) == {"kernels", "worker", "trainer"}
    assert "later layers" in text
    assert "train_step" in text
    for suffix in ("svg", "png"):
        assert (tmp_path / "out" / f"bench.{suffix}").stat().st_size > 10_000
