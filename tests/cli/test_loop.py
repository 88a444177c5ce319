"""The loop as a command: the levels before a level, and what a run says that it has read."""

import shutil
from pathlib import Path

import pytest

from bgrl.files import read_json, shipped
from bgrl.nets import Weights
from bgrl.pipeline import Loop
from bgrl.search import Bearoff
from bgrl.search.bearoff import build

LEVEL = """# @package _global_
name: {name}
after: {after}
generations: 1
net:
  encoder: tesauro198
  hidden: [{width}]
selfplay:
  games: 20
evaluate:
  opponents: []
gate:
  enabled: false
final:
  opponents: []
"""
QUICK = ["wandb=disabled", "workers=0", "trainer.threads=1"]


@pytest.fixture
def levels(tmp_path, monkeypatch):
    """Makes levels of one layer, each after the one before, of the widths given by name."""
    configs = tmp_path / "configs"
    shutil.copytree(shipped("configs"), configs)
    monkeypatch.setattr("bgrl.cli.compose.shipped", lambda name: tmp_path / name)

    def make(**widths):
        after = "null"
        for name, width in widths.items():
            text = LEVEL.format(name=name, after=after, width=width)
            (configs / "level" / f"{name}.yaml").write_text(text)
            after = name

    return make


def test_a_level_runs_the_one_it_begins_after(run, tmp_path, levels):
    levels(narrow=4, wide=8)
    command = ["loop", "seed=4", *QUICK]
    status, out, _ = run(*command, "level=wide")
    assert status == 0
    runs = tmp_path / "data/runs"
    narrow = Weights.load(runs / "narrow/net")
    assert narrow.hidden == (4,)
    assert narrow.made["seed"] == 4
    assert read_json(runs / "narrow/run.json")["config"]["trainer"]["threads"] == 1
    assert read_json(runs / "wide/run.json")["read"] == {"start": narrow.hash}
    assert Weights.load(runs / "wide/net").hidden == (8,)
    assert out.index(narrow.hash) < out.index(Weights.load(runs / "wide/net").hash)
    # Without one of the two there is no teacher.
    status, _, error = run(*command, "name=alone", "taught=0.5")
    assert status == 2
    assert "taught: there is no teacher without start or after" in error
    assert not (runs / "alone").exists()
    # One that is there is not run again, whatever it was run with.
    assert run(*command, "level=wide", "name=again")[0] == 0
    assert len(read_json(runs / "narrow/run.json")["launches"]) == 1
    # And start comes before after.
    shutil.copytree(runs / "wide/net", tmp_path / "given")
    assert run(*command, "level=wide", "name=on", "start=given")[0] == 0
    assert read_json(runs / "on/run.json")["read"] == {
        "start": Weights.load(runs / "wide/net").hash
    }


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["level=hard", "net.hidden=[512,64]"], "(1216, 64), True, 'backgammon'), but the run"),
        (["level=hard_wide", "net.products=true"], "(512, 64), False, 'backgammon'), but the run"),
        (["level=hard_exact", "variant=nackgammon"], "(512, 64), False, 'nackgammon')"),
    ],
)
def test_a_net_that_does_not_fit_is_named_before_the_levels_that_make_it_run(
    run, tmp_path, monkeypatch, command, message
):
    monkeypatch.setattr(Loop, "run", lambda loop: pytest.fail(f"{loop.folder} is run"))
    status, _, error = run("loop", *command)
    assert status == 2
    assert message in error
    assert "after: hard_" in error
    assert list(tmp_path.iterdir()) == []


def test_a_net_that_does_not_fit_is_named_anywhere_among_the_levels(run, tmp_path, levels):
    levels(narrow=8, narrower=6, wide=8)
    status, _, error = run("loop", "level=wide", *QUICK)
    assert status == 2
    assert "after: narrow is a net of ('tesauro198', (8,), False, 'backgammon')" in error
    assert not (tmp_path / "data").exists()


def test_a_level_whose_last_matches_were_cut_short_is_finished_first(run, tmp_path, levels):
    levels(narrow=4, wide=8)
    assert run("loop", "level=narrow", *QUICK)[0] == 0
    narrow = tmp_path / "data" / "runs" / "narrow"
    (narrow / "result.json").unlink()
    assert run("loop", "level=wide", *QUICK)[0] == 0
    assert (narrow / "result.json").exists()
    assert len(read_json(narrow / "run.json")["launches"]) == 2
    assert run("loop", "level=wide", "name=again", *QUICK)[0] == 0
    assert len(read_json(narrow / "run.json")["launches"]) == 2


TINY_LOOP = ["generations=1", "selfplay.exact=[1.0]", "selfplay.games=8", "gate.enabled=false"]
TINY_LOOP += ["final.opponents=[]", "evaluate.opponents=[]", "net.hidden=[4]", *QUICK]


@pytest.mark.parametrize(
    "command",
    [
        ["selfplay", "name=x", "games=4", "net.hidden=[4]", "exact=true", "workers=0"],
        ["loop", "name=x", *TINY_LOOP],
    ],
)
def test_a_run_says_with_which_bear_off_databases_and_keeps_to_them(run, tmp_path, command):
    folder = Path("data") / "bearoff"
    build(folder, checkers=3, pair_checkers=1)
    assert run(*command)[0] == 0
    record = tmp_path / "data" / "runs" / "x" / "run.json"
    assert read_json(record)["read"]["bearoff"] == Bearoff.open().hash
    shutil.rmtree(folder)
    build(folder, checkers=3, pair_checkers=2)
    status, _, error = run(*command)
    assert status == 2
    assert "x was started with bearoff " in error
