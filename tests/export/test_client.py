"""The TypeScript client: its own tests, in Node, on a bundle and on what bgrl computes for it."""

import os
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from export.client_reference import write_reference
from export.conftest import made_up_weights

from bgrl.errors import BgrlError
from bgrl.export import export_levels
from bgrl.export.positions import sampled_positions
from bgrl.export.site import build_site, serve
from bgrl.nets import FastNet
from bgrl.players.bundle import open_bundle
from bgrl.players.level import Level, Misses
from bgrl.players.style import CAUTIOUS
from bgrl.search import Filters, MoveFilter

FILTERS = Filters((MoveFilter(0, 4, 0.1),), MoveFilter(1, 1, 0.04))


@pytest.fixture(scope="session")
def bots(weights, tmp_path_factory):
    """A bundle of four levels on two nets and a smaller one, and its reference."""
    pytest.importorskip("onnxruntime")
    folder = tmp_path_factory.mktemp("client")
    # Where a net is sure of the result, plays are equally good but for rounding.
    weights, other = (
        replace(weights, layers=[(w * np.float32(factor), b) for w, b in weights.layers])
        for factor in (0.65, 0.5)
    )
    levels = [
        (Level("hard"), weights),
        (Level("easy", misses=Misses(rate=0.9, scale=0.1), style=CAUTIOUS), other),
        (Level("master", 2, FILTERS), weights),
        (Level("pruned", 2, FILTERS, keep=3), weights),
    ]
    small = made_up_weights(hidden=(16,), seed=3)
    bundle = export_levels(levels, folder / "bots", positions=200, pruners={"pruned": small}).folder
    write_reference(
        open_bundle(bundle),
        folder / "reference.json",
        sampled_positions(FastNet(weights), 2000, seed=11),
        rolls=400,
        decisions=120,
        deep=20,
        values=10,
    )
    return folder


@pytest.mark.node
def test_the_client_s_own_tests_pass(built, bots):
    run = subprocess.run(
        ["node", "--test", *sorted(map(str, (built / "dist" / "test").glob("*.test.js")))],
        cwd=built,
        capture_output=True,
        text=True,
        env=os.environ
        | {
            "BGRL_BUNDLE": str(bots / "bots"),
            "BGRL_REFERENCE": str(bots / "reference.json"),
        },
    )
    assert run.returncode == 0, run.stdout[-6000:]
    assert "# skipped 0" in run.stdout or "ℹ skipped 0" in run.stdout, run.stdout[-2000:]


@pytest.mark.node
def test_the_page_is_small_without_the_runtime(built, bots, tmp_path):
    folder = build_site(bots / "bots", tmp_path / "page")
    sent = [path for path in folder.rglob("*") if path.is_file() and "runtime" not in path.parts]
    scripts = [path for path in sent if path.suffix in (".html", ".css", ".js")]
    assert len(scripts) > 15
    loaded = [*scripts, folder / "bots" / "hard.bgnet", folder / "bots" / "bearoff-15.bgoff"]
    assert sum(path.stat().st_size for path in loaded) < 2_000_000
    (folder / "bots" / "bundle.json").unlink()
    with pytest.raises(BgrlError, match="holds something other than the page"):
        build_site(bots / "bots", folder)


def test_a_page_needs_a_bundle_and_a_free_port(tmp_path):
    with pytest.raises(BgrlError, match="is no bundle"):
        build_site(tmp_path, tmp_path / "page")
    with serve(tmp_path, 0) as server, pytest.raises(BgrlError, match="cannot serve on port"):
        serve(tmp_path, server.server_address[1])
