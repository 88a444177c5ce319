"""Metrics: JSON lines that survive a kill, and wandb without an account."""

import json
import logging
from pathlib import Path

import pytest

from bgrl.errors import BgrlError
from bgrl.train import MetricLog, read_metrics


def test_lines_are_json_with_step_and_time(tmp_path):
    path = tmp_path / "run" / "metrics.jsonl"
    with MetricLog(path) as log:
        log.write(1, {"loss": 0.5})
        log.write(2, {"loss": float("nan")})
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    assert [(line["step"], line["loss"]) for line in lines] == [(1, 0.5), (2, None)]
    assert lines[0]["time"] <= lines[1]["time"]


def test_a_line_is_there_as_soon_as_it_is_written(tmp_path):
    log = MetricLog(tmp_path / "metrics.jsonl")
    log.write(1, {"loss": 0.5})
    assert read_metrics(tmp_path / "metrics.jsonl")[0]["loss"] == 0.5
    log.close()


def test_resumed_steps_count_once_and_a_torn_line_is_named(tmp_path, caplog):
    path = tmp_path / "metrics.jsonl"
    with MetricLog(path) as log:
        for step in (1, 2, 3):
            log.write(step, {"loss": step / 10})
    with open(path, "a") as file:
        file.write('{"step": 4, "lo')
    with MetricLog(path) as log:
        for step in (3, 4):
            log.write(step, {"loss": step / 100})
    with caplog.at_level(logging.WARNING):
        lines = read_metrics(path)
    assert [(line["step"], line["loss"]) for line in lines] == [
        (1, 0.1),
        (2, 0.2),
        (3, 0.03),
        (4, 0.04),
    ]
    assert f"{path} line 4" in caplog.text


def test_lines_that_are_no_metrics_are_left_out(tmp_path, caplog):
    path = tmp_path / "metrics.jsonl"
    good = ['{"step": 2, "loss": NaN, "lr": 1e999}', '{"step": 1, "generation": 1}', '{"step": 1}']
    bad = ["5", "[]", "null", '{"step": "1"}', '{"step": true}', '{"step": NaN}', '{"step": 1.5}']
    bad += ['{"step": 1, "generation": "a"}', '{"step": 1, "generation": null}', '{"loss": 1}']
    bad += ['{"step": 1, "loss": [NaN]}', "\xff"]
    path.write_text("\n".join(bad + good))
    assert read_metrics(path) == [
        {"step": 1},
        {"step": 2, "loss": None, "lr": None},
        {"step": 1, "generation": 1},
    ]
    for number in range(1, len(bad) + 1):
        assert f"{path} line {number} is not a line of metrics" in caplog.text


def test_unknown_wandb_mode(tmp_path):
    with pytest.raises(BgrlError, match="wandb_mode is 'on', expected disabled, offline, online"):
        MetricLog(tmp_path / "metrics.jsonl", wandb_mode="on")
    assert list(tmp_path.iterdir()) == []


def test_w01_h04_wandb_offline_asks_for_no_account_and_resumes(tmp_path, monkeypatch):
    for name in ("WANDB_API_KEY", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "run" / "metrics.jsonl"
    steps = []
    for first in (1, 6):
        with MetricLog(path, "offline", config={"hidden": [128, 32], "lr": 1e-3}) as log:
            for step in range(first, first + 5):
                log.write(step, {"loss": 1 / step})
            assert log._run is not None
            steps.append((log._run.id, dict(log._run.config)))
    assert [line["step"] for line in read_metrics(path)] == list(range(1, 11))
    # One identity over the resumption, the config as plain data, the files inside the run folder.
    assert steps[0] == steps[1]
    assert steps[0][1]["hidden"] == [128, 32]
    assert len(list(Path(tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb"))) == 2
