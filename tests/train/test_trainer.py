"""The trainer: it learns, resumes bit for bit, notices divergence, and loads only plain data."""

import json
import logging
import math
import random
import signal
import subprocess
import sys
import time
from itertools import islice

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from oracles.training_data import generation, pip_lead_targets
from oracles.walk import random_boards
from safetensors.numpy import load_file, save_file

from bgrl.data import Window, WindowStream
from bgrl.encoding import ENCODERS, get_encoder
from bgrl.errors import BgrlError, CorruptFile, SchemaMismatch
from bgrl.game import HYPERGAMMON
from bgrl.game.board import is_race
from bgrl.nets import FastNet, Net, load_net, save_net
from bgrl.train import MetricLog, Schedule, Trainer, checkpoints, read_metrics


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "gen-0001"
    generation(folder, games=100, shards=3)
    return Window([folder])


def make(
    window,
    steps=40,
    lr=3e-3,
    batch=512,
    hidden=(32, 16),
    encoder="tesauro198",
    products=False,
    **options,
):
    net = Net(get_encoder(encoder), hidden, products=products).reset(1)
    stream = WindowStream(window, batch, seed=1, chunk_rows=5000)
    return Trainer(net, stream, Schedule(lr, steps), **{"threads": 1, **options})


def assert_same_state(a, b, folder_a, folder_b):
    """Equal bits: weights, averages, moments and what else a checkpoint holds."""
    a.save(folder_a)
    b.save(folder_b)
    (path_a, path_b) = checkpoints(folder_a)[-1], checkpoints(folder_b)[-1]
    for name in ("net.safetensors", "trainer.safetensors", "trainer.json", "net.json"):
        assert (path_a / name).read_bytes() == (path_b / name).read_bytes(), name


def test_it_learns_a_known_function(window):
    trainer = make(window, steps=400, lr=5e-3)
    before = trainer.validate()
    after = trainer.train(400)
    assert before["val_excess"] > 0.1
    assert after["val_excess"] < 0.005
    # A net that knows only how often who is on roll wins would be far above.
    assert after["val_equity_error"] < 0.12
    boards = random_boards(5, seed=99)
    errors = FastNet.from_net(trainer.saved_net()).evaluate(boards) - pip_lead_targets(boards)
    assert np.abs(errors).mean() < 0.04


def test_the_number_of_threads_changes_no_bit(window, tmp_path):
    one, three = (make(window, batch=5000, steps=12, threads=threads) for threads in (1, 3))
    one.train(12)
    three.train(12)
    assert_same_state(one, three, tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"average": 0.95},
        {"weight_decay": 0.01, "grad_clip": 0},
        {"optimizer": "muon", "average": 0.95, "products": True},
    ],
)
def test_resumed_equals_uninterrupted_bit_for_bit(window, tmp_path, options):
    straight = make(window, **options)
    straight.train(40)
    make(window, **options).train(17, folder=tmp_path / "run", checkpoint_every=5)
    for until in (30, 40):
        resumed = make(window, **options)
        assert resumed.resume(tmp_path / "run")
        resumed.train(until, folder=tmp_path / "run", checkpoint_every=7)
    assert_same_state(straight, resumed, tmp_path / "a", tmp_path / "b")


TRAIN = """
import sys
from bgrl.data import Window, WindowStream
from bgrl.encoding import get_encoder
from bgrl.nets import Net
from bgrl.train import Schedule, Trainer
stream = WindowStream(Window([sys.argv[1]]), 512, seed=1, chunk_rows=5000)
net = Net(get_encoder("tesauro198"), (32, 16)).reset(1)
trainer = Trainer(net, stream, Schedule(3e-3, 600), threads=1)
trainer.resume(sys.argv[2])
trainer.train(600, folder=sys.argv[2], checkpoint_every=9)
"""


def test_killed_and_started_again_it_ends_the_same(window, tmp_path):
    chance = random.Random(1)
    folder = window.generations[0].folder
    run = tmp_path / "run"
    command = [sys.executable, "-c", TRAIN, str(folder), str(run)]
    kills = 0
    while True:
        done = checkpoints(run)
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        # Kill it some time after it has got further, wherever it then is.
        deadline = time.monotonic() + 60
        while process.poll() is None and checkpoints(run) == done:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        if kills < 3:
            time.sleep(chance.random() * 0.2)
            process.send_signal(signal.SIGKILL)
        if process.wait() == 0:
            break
        kills += 1
    assert kills
    straight = make(window, steps=600)
    straight.train(600)
    assert load_net(checkpoints(run)[-1]).hash == straight.saved_net().hash


def test_k02_a_checkpoint_is_plain_data(window, tmp_path):
    trainer = make(window, average=0.9)
    trainer.train(10, folder=tmp_path, checkpoint_every=3)
    found = checkpoints(tmp_path)
    assert [path.name for path in found] == ["step-000000009", "step-000000010"]
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in found}
    files = {path.name for path in found[-1].iterdir()}
    assert files == {"net.safetensors", "net.json", "trainer.safetensors", "trainer.json"}
    assert json.loads((found[-1] / "trainer.json").read_text())["step"] == 10
    assert all(t.dtype == np.float32 for t in load_file(found[-1] / "trainer.safetensors").values())
    assert load_net(found[-1]).hash == trainer.saved_net().hash


def test_k03_a_compiled_net_trains_and_loads_both_ways(window, tmp_path):
    plain = make(window)
    net = torch.compile(Net(get_encoder("tesauro198"), (32, 16)).reset(1), backend="eager")
    compiled = Trainer(net, plain.stream, plain.learning_rate, threads=1)
    for trainer in (plain, compiled):
        trainer.train(5)
    assert_same_state(plain, compiled, tmp_path / "plain", tmp_path / "compiled")
    assert not any("_orig_mod" in name for name in load_file(_newest(tmp_path / "compiled")))
    for folder, trainer in (("plain", compiled), ("compiled", plain)):
        assert trainer.resume(tmp_path / folder)
        trainer.train(8)
    assert plain.saved_net().hash == compiled.saved_net().hash
    # The user may also save what torch.compile has wrapped.
    assert load_net(save_net(net, tmp_path / "net")).hash == compiled.saved_net().hash


def _newest(folder):
    return checkpoints(folder)[-1] / "trainer.safetensors"


def test_compiled_layers_train_like_plain_ones(window, tmp_path, monkeypatch):
    """`compile` takes the dense way, here without a compiler."""
    monkeypatch.setattr(torch, "compile", lambda f: f)
    dense, plain = make(window, compile=True), make(window)
    assert dense._first_layer is None
    a, b = dense.train(20), plain.train(20)
    assert a["loss"] == pytest.approx(b["loss"], rel=1e-5)
    for x, y in zip(dense.net.parameters(), plain.net.parameters(), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-3, atol=1e-4)


def test_k05_loss_is_float32_and_finite_in_mixed_precision(window):
    trainer = make(window, mixed_precision=True)
    batch = next(trainer.stream.batches())
    logits = trainer.logits(batch.boards).detach()
    assert logits.dtype == torch.float32
    # Layers in bfloat16 give other values, but close ones.
    exact = make(window).logits(batch.boards).detach()
    assert 0 < float((logits - exact).abs().max()) < 0.1
    trainer.train(20)
    with torch.no_grad():
        trainer.net.layers[-1].bias.copy_(torch.tensor([100.0, -100.0, -100.0, 100.0, -100.0]))
    loss, norm = trainer.train_step(batch)
    assert loss.dtype == torch.float32
    assert bool(loss.isfinite() & norm.isfinite())
    assert float(loss) > 10


def test_the_loss_is_the_mean_cross_entropy(window):
    trainer = make(window)
    batch = next(trainer.stream.batches())
    net = Net(get_encoder("tesauro198"), (32, 16)).reset(1)
    p = torch.sigmoid(net.logits(torch.from_numpy(net.encoder.encode(batch.boards)))).double()
    y = torch.from_numpy(batch.targets).double()
    wanted = -(y * p.log() + (1 - y) * (1 - p).log()).mean()
    assert float(trainer.train_step(batch)[0]) == pytest.approx(wanted.item(), rel=1e-5)


def test_one_step_is_adamw_with_clipping(window):
    trainer = make(window, weight_decay=0.1, grad_clip=0.01)
    batch = next(trainer.stream.batches())
    net = Net(get_encoder("tesauro198"), (32, 16)).reset(1)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.1, fused=False)
    logits = net.logits(torch.from_numpy(net.encoder.encode(batch.boards)))
    F.binary_cross_entropy_with_logits(logits, torch.from_numpy(batch.targets)).backward()
    norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 0.01)
    optimizer.step()
    assert norm > 0.01
    trainer.train_step(batch)
    for got, wanted in zip(trainer.net.parameters(), net.parameters(), strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-4)


def test_the_loss_weighs_equities_and_positions_without_contact(window):
    trainer = make(window, equity_weight=7.0, race_weight=3.0, grad_clip=0)
    batch = next(trainer.stream.batches())
    races = torch.tensor([is_race(board) for board in batch.boards])
    assert 20 <= races.sum() < 200
    net = Net(get_encoder("tesauro198"), (32, 16)).reset(1)
    p = torch.sigmoid(net.logits(torch.from_numpy(net.encoder.encode(batch.boards))))
    targets = torch.from_numpy(batch.targets)
    total = torch.zeros(())
    for row, wanted, race in zip(p, targets, races, strict=True):
        off = row - wanted
        equity = 2 * off[0] + off[1] + off[2] - off[3] - off[4]
        position = F.binary_cross_entropy(row, wanted, reduction="sum") + 7 * equity**2
        total = total + (3 if race else 1) * position
    (total / targets.numel()).backward()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.0)
    optimizer.step()
    loss, _ = trainer.train_step(batch)
    assert loss.item() == pytest.approx(total.item() / targets.numel(), rel=1e-5)
    for got, wanted in zip(trainer.net.parameters(), net.parameters(), strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-4)


def test_one_step_of_muon_is_orthogonal_in_the_hidden_layers_and_adamws_elsewhere(window):
    trainer = make(window, optimizer="muon", products=True)
    before = [p.detach().clone() for p in trainer.net.parameters()]
    trainer.train_step(next(trainer.stream.batches()))
    hidden = {layer.weight for layer in trainer.net.linears[:-1]}
    assert len(hidden) == 2
    for parameter, was in zip(trainer.net.parameters(), before, strict=True):
        step = (parameter.detach() - was) / 3e-3
        if parameter in hidden:
            values = torch.linalg.svdvals(step / (0.2 * max(step.shape) ** 0.5))
            assert values.max() < 1.3
            assert values.median() > 0.5
        else:
            assert 0.9 < step.abs().max() < 1.01


def test_divergence_stops_with_step_rate_and_last_good_checkpoint(window, tmp_path):
    trainer = make(window, steps=1000, lr=300.0, grad_clip=0)
    with pytest.raises(BgrlError) as caught:
        trainer.train(1000, folder=tmp_path, checkpoint_every=1)
    message = str(caught.value)
    assert f"diverged at about step {trainer.step}: loss" in message
    assert "learning rate 300" in message
    good = checkpoints(tmp_path)[-1]
    assert str(good) in message
    assert good.name == f"step-{trainer.step - 1:09d}"
    load_net(good)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_loss_that_is_not_finite_stops(window, tmp_path, bad):
    trainer = make(window)
    trainer.train(5, folder=tmp_path)
    with torch.no_grad():
        trainer.net.layers[0].weight[0, 0] = bad
    with pytest.raises(BgrlError, match=r"diverged at about step 6: loss (nan|inf)"):
        trainer.train(40, folder=tmp_path)
    assert [path.name for path in checkpoints(tmp_path)] == ["step-000000005"]


def test_ordinary_training_from_scratch_is_no_divergence(window):
    for encoder in ENCODERS:
        for lr in (1e-2, 1e-4):
            make(window, lr=lr, batch=64, encoder=encoder).train(40)


def test_the_average_is_what_is_validated_and_saved(window):
    trainer = make(window, average=0.9)
    weights = []
    for batch in islice(trainer.stream.batches(), 30):
        trainer.train_step(batch)
        weights.append(trainer.net.layers[1].weight.detach().clone().double())
    average = weights[0]
    for step, weight in enumerate(weights):
        average = average + (weight - average) * max(0.1, 1 / (step + 1))
    saved = trainer.saved_net()
    torch.testing.assert_close(saved.layers[1].weight.double(), average, rtol=0, atol=1e-6)
    got = trainer.validate()
    # Validation leaves the weights under training as they were.
    assert torch.equal(trainer.net.layers[1].weight.double(), weights[-1])
    plain = Trainer(saved, trainer.stream, trainer.learning_rate, threads=1)
    assert plain.validate() == got


def test_metrics(window, tmp_path):
    trainer = make(window)
    with MetricLog(tmp_path / "metrics.jsonl") as log:
        last = trainer.train(
            40, metrics=log, log_every=10, validate_every=20, extra={"generation": 7}
        )
    lines = read_metrics(tmp_path / "metrics.jsonl")
    assert [line["step"] for line in lines] == [10, 20, 30, 40]
    assert ["val_loss" in line for line in lines] == [False, True, False, True]
    assert {line["generation"] for line in lines} == {7}
    assert lines[-1].items() >= last.items()
    for line in lines:
        assert line["lr"] == trainer.learning_rate(line["step"] - 1)
        assert line["epoch"] == line["step"] / trainer.stream.steps_per_epoch
        assert line["positions_per_second"] > 0
        assert 0 <= line["data_wait"] <= 1
    assert lines[-1]["val_excess"] < lines[-1]["val_loss"]


def test_nothing_to_do(window, tmp_path):
    trainer = make(window)
    assert not trainer.resume(tmp_path / "nothing")
    trainer.train(3, folder=tmp_path)
    assert trainer.train(3, folder=tmp_path) == {}
    assert trainer.step == 3


def test_a_net_and_data_of_other_variants(window):
    net = Net(get_encoder("tesauro198"), (16,), HYPERGAMMON)
    with pytest.raises(BgrlError, match="the net plays hypergammon, the window holds backgammon"):
        Trainer(net, WindowStream(window, 64, 1), Schedule(1e-3, 10))


def opens(net, boards):
    """How many of the boards open each hidden unit, layer by layer."""
    x = net.encode(torch.from_numpy(boards).float())
    found = []
    for i, layer in enumerate(net.linears[:-1]):
        x = torch.relu(layer(x))
        x = net.units(x) if i == 0 else x
        found.append((x > 0).sum(0))
    return found


@pytest.mark.parametrize(
    "options", [{}, {"average": 0.9}, {"optimizer": "muon"}, {"products": True}]
)
def test_dormant_units_come_back_without_a_change_of_the_net(window, options):
    trainer = make(window, **options)
    trainer.train(10)
    first, second = trainer.net.linears[:2]
    with torch.no_grad():
        first.bias[3:8] = -100.0
        second.bias[0] = -100.0
    boards = window.validation()[0]
    before = trainer.net(torch.from_numpy(boards).float())
    kept = first.weight[10].clone()
    assert trainer.revive(1e-4) >= 6
    torch.testing.assert_close(trainer.net(torch.from_numpy(boards).float()), before)
    torch.testing.assert_close(first.weight[10], kept)
    for layer, units in ((first, slice(3, 8)), (second, [0])):
        moments = trainer._moments(layer.weight)
        assert moments
        assert not any(moment[units].any() for moment in moments.values())
    assert trainer.saved_net().layers[0].weight[3].equal(first.weight[3])
    trainer.train(40)
    assert second.weight[:, 3:8].any(0).all()
    assert (opens(trainer.net, boards)[0][3:8] > 0).all()


def test_units_are_judged_by_positions_all_over_the_window(window, monkeypatch):
    monkeypatch.setattr("bgrl.train.trainer._VALIDATION_ROWS", 50)
    trainer = make(window)
    encode, seen = trainer.net.encode, []
    trainer.net.encode = lambda boards: seen.append(boards) or encode(boards)
    trainer.revive(1e-4)
    boards = torch.from_numpy(window.validation()[0]).float()
    rows = [int((boards == board).all((1, 2)).nonzero()[-1]) for board in seen[0]]
    assert 25 < len(rows) <= 50
    assert max(rows) > 0.9 * len(boards)


def test_an_open_unit_is_left_alone(window):
    trainer = make(window)
    trainer.train(5)
    trainer.revive(1e-4)
    weights = [p.clone() for p in trainer.net.parameters()]
    assert trainer.revive(1e-4) == 0
    assert all(map(torch.equal, trainer.net.parameters(), weights))


@pytest.mark.parametrize(
    "wrong", [{"threads": -1}, {"average": 1.0}, {"grad_clip": -0.1}, {"weight_decay": math.inf}]
)
def test_options_out_of_range_are_named(window, wrong):
    with pytest.raises(BgrlError, match=rf"trainer\.{next(iter(wrong))} is"):
        make(window, **wrong)


@pytest.mark.parametrize("name", ["checkpoint_every", "log_every", "validate_every"])
def test_an_interval_of_no_steps_is_named(window, tmp_path, name):
    with pytest.raises(BgrlError, match=f"{name} is 0, expected at least 1"):
        make(window).train(5, folder=tmp_path, **{name: 0})


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there(window):
    with pytest.raises(BgrlError, match="no device 'cuda'"):
        make(window, device="cuda")
    with pytest.raises(BgrlError, match="no device 'tpu9'"):
        make(window, device="tpu9")


def test_checkpoints_that_do_not_fit_are_refused(window, tmp_path):
    make(window).train(3, folder=tmp_path)
    (path,) = checkpoints(tmp_path)
    trainer = make(window, hidden=(32, 8))
    with pytest.raises(SchemaMismatch, match=r"weight\.layers\.1\.weight is \[16, 32\]"):
        trainer.resume(tmp_path)
    with pytest.raises(SchemaMismatch, match=r"average\.layers\.0\.weight is missing"):
        make(window, average=0.9).resume(tmp_path)
    data = (path / "trainer.safetensors").read_bytes()
    (path / "trainer.safetensors").write_bytes(data[:-100])
    trainer = make(window)
    before = trainer.saved_net().hash
    with pytest.raises(CorruptFile, match=r"trainer\.safetensors: not a whole file"):
        trainer.resume(tmp_path)
    (path / "trainer.safetensors").unlink()
    with pytest.raises(CorruptFile, match=r"trainer\.safetensors: No such file"):
        trainer.resume(tmp_path)
    (path / "trainer.json").write_text('{"format": "bgrl.trainer", "version": 99}')
    with pytest.raises(SchemaMismatch, match=r"trainer\.json: not bgrl\.trainer version 1"):
        trainer.resume(tmp_path)
    assert (trainer.step, trainer.saved_net().hash) == (0, before)


def nan(tensor):
    return np.full_like(tensor, np.nan)


@pytest.mark.parametrize(
    ("key", "value"),
    [("step", value) for value in ("x", -3, 4, 3.0, True, None, [])]
    + [("running_loss", "x"), ("running_loss", math.nan), ("running_loss", [])]
    + [("stream", None), ("stream", "x")]
    + [("weight.layers.0.weight", nan), ("exp_avg.layers.0.bias", nan)]
    + [("exp_avg_sq.layers.1.bias", np.float64), ("average.layers.1.bias", np.float16)],
)
def test_a_damaged_checkpoint_is_named_and_changes_nothing(window, tmp_path, key, value):
    make(window, average=0.9).train(3, folder=tmp_path)
    (path,) = checkpoints(tmp_path)
    if callable(value):
        tensors = load_file(path / "trainer.safetensors")
        save_file({**tensors, key: value(tensors[key])}, path / "trainer.safetensors")
    else:
        state = json.loads((path / "trainer.json").read_text())
        (path / "trainer.json").write_text(json.dumps({**state, key: value}))
    trainer = make(window, average=0.9)
    before = trainer.saved_net().hash
    message = rf"{path}/trainer\.(json: its )?(safetensors: )?{key} (is|has)"
    with pytest.raises((CorruptFile, SchemaMismatch), match=message):
        trainer.resume(tmp_path)
    assert (trainer.step, trainer.saved_net().hash) == (0, before)


@pytest.mark.parametrize("key", ["step", "stream"])
def test_a_checkpoint_that_lacks_something(window, tmp_path, key):
    make(window).train(3, folder=tmp_path)
    path = checkpoints(tmp_path)[0] / "trainer.json"
    state = json.loads(path.read_text())
    del state[key]
    path.write_text(json.dumps(state))
    with pytest.raises(CorruptFile, match=f"{path}: its {key} is None"):
        make(window).resume(tmp_path)


def test_other_data_are_said(window, tmp_path, caplog):
    make(window).train(3, folder=tmp_path)
    with caplog.at_level(logging.INFO):
        assert make(window).resume(tmp_path)
        assert "other data" not in caplog.text
        assert make(window, batch=100).resume(tmp_path)
    assert f"{checkpoints(tmp_path)[0]} was written with other data" in caplog.text
