"""The trainer: fits a net to the targets of a stream of positions."""

import inspect
import itertools
import logging
import math
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from bgrl.data import Batch, Prefetcher, WindowStream
from bgrl.errors import BgrlError, CorruptFile, SchemaMismatch
from bgrl.files import (
    TEMPORARY_PREFIX,
    atomic_dir,
    atomic_write_bytes,
    atomic_write_json,
    is_integer,
    is_number,
    read_json,
)
from bgrl.game.board import is_race
from bgrl.game.outcomes import equity
from bgrl.nets import Net
from bgrl.progress import progress
from bgrl.train.first_layer import FirstLayer
from bgrl.train.metrics import MetricLog

log = logging.getLogger(__name__)

FORMAT = "bgrl.trainer"
VERSION = 1
STATE_FILE = "trainer.json"
TENSORS_FILE = "trainer.safetensors"
KEEP_CHECKPOINTS = 2
_STEP_FOLDER = re.compile(r"step-\d{9}")
_VALIDATION_ROWS = 8192
# Rows of a batch that one thread takes at a time. The sum over these parts is the same whoever does
# which; much smaller ones would cost more for the first layer's tables.
_PART_ROWS = 2048
# A GPU is waited for only now and then to see whether its losses are sane.
_GPU_CHECK_EVERY = 50
# Weight of the past in the running loss that divergence is judged by.
_RUNNING_DECAY = 0.98
OPTIMIZERS = ("adamw", "muon")


def check_options(
    *,
    optimizer: str = "adamw",
    weight_decay: float = 0.0,
    grad_clip: float = 1.0,
    average: float = 0.0,
    equity_weight: float = 0.0,
    race_weight: float = 1.0,
    device: str = "cpu",
    threads: int = 0,
    **others: Any,
) -> None:
    """Raise BgrlError when a Trainer can't have these options; of ``others`` only the names."""
    known = inspect.getfullargspec(Trainer).kwonlyargs
    for name in others:
        if name not in known:
            raise BgrlError(f"unknown option trainer.{name}, expected one of {', '.join(known)}")
    if optimizer not in OPTIMIZERS:
        raise BgrlError(
            f"trainer.optimizer is {optimizer!r}, expected one of {', '.join(OPTIMIZERS)}"
        )
    for name, value in (
        ("weight_decay", weight_decay),
        ("grad_clip", grad_clip),
        ("equity_weight", equity_weight),
        ("race_weight", race_weight),
        ("threads", threads),
    ):
        if not 0 <= value < math.inf:
            raise BgrlError(f"trainer.{name} is {value}, expected at least 0")
    if not 0 <= average < 1:
        raise BgrlError(f"trainer.average is {average}, expected 0 or more, below 1")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise BgrlError(f"no device {device!r}: {str(error).splitlines()[0]}") from error


class Trainer:
    """Fits `net`, which is changed in place, to `stream` by binary cross-entropy.

    The loss is the mean over batch and outputs of the cross-entropy between the net's five
    probabilities and the targets, in float32 from logits, whatever precision the layers use. What
    is impossible in a position has target 0; the net's users clamp what is left of it. To the five
    cross-entropies of a position come `equity_weight` times the squared error of its cubeless
    equity, in points, which is what plays are chosen by; cross-entropy cares more for rare
    gammons. A position without contact counts `race_weight` times.

    learning_rate: step -> learning rate, such as a :class:`bgrl.train.Schedule`. optimizer:
    "adamw"; or "muon" for the hidden layers' matrices, whose steps it makes orthogonal, so that
    rare inputs learn as fast as common ones (Jordan et al., "Muon", 2024; scaled to AdamW's rates
    as in Liu et al., "Muon is scalable for LLM training", 2025), and AdamW for the rest. betas:
    AdamW's. weight_decay: of either. grad_clip: the largest norm of a step's gradient, 0 for no
    limit.
    average: decay of an exponential average of the weights, which is then what is validated and
    saved as the net; 0 for none. device: "cpu", "cuda", ...; `mixed_precision` runs the layers in
    bfloat16 and `compile` fuses them with torch.compile, which both pay on a GPU. On a CPU without
    them the first layer works on the boards directly (:class:`FirstLayer`). threads: of the
    CPU, 0 for one a core; the same net comes out bit for bit whatever their number, interrupted or
    not. divergence: a step whose loss is so many times the running loss stops the
    training.

    Raises BgrlError when the window's variant is not the net's, or for a device that isn't there.
    """

    def __init__(
        self,
        net: Net,
        stream: WindowStream,
        learning_rate: Callable[[int], float],
        *,
        optimizer: str = "adamw",
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.0,
        grad_clip: float = 1.0,
        average: float = 0.0,
        equity_weight: float = 0.0,
        race_weight: float = 1.0,
        device: str = "cpu",
        mixed_precision: bool = False,
        compile: bool = False,
        threads: int = 0,
        divergence: float = 3.0,
    ):
        # torch.compile wraps a module and puts a prefix before its names; train what is inside.
        net = getattr(net, "_orig_mod", net)
        if net.variant != stream.window.variant:
            raise BgrlError(
                f"the net plays {net.variant.name}, the window holds {stream.window.variant.name}"
            )
        check_options(
            optimizer=optimizer,
            weight_decay=weight_decay,
            grad_clip=grad_clip,
            average=average,
            equity_weight=equity_weight,
            race_weight=race_weight,
            device=device,
            threads=threads,
        )
        self._device = torch.device(device)
        self.net = net.to(self._device).train()
        self.stream = stream
        self.learning_rate = learning_rate
        self.grad_clip = grad_clip
        self.average = average
        self.equity_weight = equity_weight
        self.race_weight = race_weight
        # An equity is linear in the outputs: what each of them is worth.
        worth = equity(np.eye(5), net.variant.points) - equity(np.zeros(5), net.variant.points)
        self._stakes = torch.from_numpy(worth.astype(np.float32)).to(self._device)
        self.divergence = divergence
        #: Steps done so far; the stream's next batch is the one of this number.
        self.step = 0
        self._names = [name for name, _ in net.named_parameters()]
        self._parameters = list(net.parameters())
        self._averages = [p.detach().clone() for p in self._parameters] if average else []
        hidden = [layer.weight for layer in net.linears[:-1]]
        self._orthogonal: set[Tensor] = set(hidden if optimizer == "muon" else [])
        others = [p for p in self._parameters if p not in self._orthogonal]
        self._optimizers: list[torch.optim.Optimizer] = [
            torch.optim.AdamW(others, lr=0.0, betas=betas, weight_decay=weight_decay, fused=True)
        ]
        if self._orthogonal:
            self._optimizers.append(
                torch.optim.Muon(
                    hidden, lr=0.0, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw"
                )
            )
        self._mixed_precision = mixed_precision
        self._first_layer: FirstLayer | None = None
        if self._device.type == "cpu" and not mixed_precision and not compile:
            self._first_layer = FirstLayer(net.encoder, net.variant.checkers)
        self._pool: ThreadPoolExecutor | None = None
        if self._device.type == "cpu":
            # Each thread works on rows of its own. Torch's own threads would spin while they wait
            # for each other, which is slow where something else needs the processor, too.
            torch.set_num_threads(1)
            threads = threads or os.cpu_count() or 1
            if threads > 1:
                self._pool = ThreadPoolExecutor(threads)
        self._dense = torch.compile(self._encode_and_apply) if compile else self._encode_and_apply
        self._running_loss: float | None = None
        self._checkpoint: Path | None = None
        self._validation: tuple[np.ndarray, np.ndarray] | None = None

    def train(
        self,
        until: int,
        *,
        folder: str | os.PathLike | None = None,
        checkpoint_every: int = 1000,
        metrics: MetricLog | None = None,
        log_every: int = 100,
        validate_every: int = 1000,
        extra: Mapping[str, float | int | str] | None = None,
    ) -> dict[str, float]:
        """Train up to step number `until`; returns the last metrics, validation included.

        folder: gets a checkpoint every `checkpoint_every` steps and at the end (:meth:`save`).
        metrics: gets a line every `log_every` steps, with a validation every `validate_every` steps
        and at the end. extra: added to each line, such as the generation.

        The metrics: loss (mean since the last line), lr, grad_norm, epoch, positions_per_second,
        data_wait (share of the time spent waiting for data), and those of :meth:`validate`.

        Raises BgrlError naming step and learning rate when training diverges; the checkpoint that
        it names was written before and is good. And at once when `checkpoint_every`, `log_every` or
        `validate_every` is below 1.
        """
        for name, value in (
            ("checkpoint_every", checkpoint_every),
            ("log_every", log_every),
            ("validate_every", validate_every),
        ):
            if value < 1:
                raise BgrlError(f"{name} is {value}, expected at least 1")
        line: dict[str, float] = {}
        unchecked: list[tuple[Tensor, Tensor]] = []
        losses: list[float] = []
        every = 1 if self._device.type == "cpu" else _GPU_CHECK_EVERY
        todo = max(0, until - self.step)
        with Prefetcher(self.stream, self.step) as batches, progress(todo, "train", "steps") as bar:
            since, positions, waited = time.perf_counter(), 0, 0.0
            for batch in itertools.islice(batches, todo):
                unchecked.append(self.train_step(batch))
                positions += len(batch.boards)
                bar.advance()
                logs = self.step == until or self.step % log_every == 0
                saves = folder and (self.step == until or self.step % checkpoint_every == 0)
                if logs or saves or len(unchecked) >= every:
                    losses += [self._check(*pair) for pair in unchecked]
                    norm = float(unchecked[-1][1])
                    unchecked.clear()
                if logs:
                    seconds = time.perf_counter() - since
                    line = {
                        "loss": sum(losses) / len(losses),
                        "lr": self.learning_rate(self.step - 1),
                        "grad_norm": norm,
                        "epoch": self.step / self.stream.steps_per_epoch,
                        "positions_per_second": positions / seconds,
                        "data_wait": (batches.wait_seconds - waited) / seconds,
                    }
                    if self.step == until or self.step % validate_every == 0:
                        line |= self.validate()
                    bar.note(f"loss {line['loss']:.4f}")
                    if metrics is not None:
                        metrics.write(self.step, {**line, **(extra or {})})
                    losses.clear()
                    since, positions, waited = time.perf_counter(), 0, batches.wait_seconds
                if saves and folder:
                    self.save(folder)
        return line

    def train_step(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """One step of the optimizer; returns loss and gradient norm, as scalars on the device."""
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self.learning_rate(self.step)
        size = _PART_ROWS if self._device.type == "cpu" else len(batch.boards)
        starts = range(0, len(batch.boards), size)
        results = [
            *(self._pool.map if self._pool and len(starts) > 1 else map)(
                lambda start: self._gradients(batch, slice(start, start + size)), starts
            )
        ]
        loss, gradients = results[0]
        for part_loss, part_gradients in results[1:]:
            loss += part_loss
            torch._foreach_add_(gradients, part_gradients)
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient
        norm = torch.nn.utils.clip_grad_norm_(self._parameters, self.grad_clip or math.inf)
        for optimizer in self._optimizers:
            optimizer.step()
        if self._averages:
            # The average of the first steps, then one of the last 1 / (1 - decay) or so.
            weight = max(1 - self.average, 1 / (self.step + 1))
            torch._foreach_lerp_(self._averages, self._parameters, weight)
        self.step += 1
        return loss, norm

    @torch.no_grad()
    def revive(self, below: float) -> int:
        """Give new weights to dormant hidden units; returns how many there were.

        Dormant: open in less than a share `below` of the held-out positions, of which up to 8192
        all over the window are looked at; without any, no unit is. Such a unit learns no more. Its
        weights become those of a new net, its bias what makes it open in about half of the
        positions (either factor of a product, which so is open in about a quarter), what it adds to
        the next layer nothing, and the optimizer forgets it: the net stays as it is until the unit
        has learned (Sokar, Agarwal, Castro and Evci, "The dormant neuron phenomenon in deep
        reinforcement learning", ICML 2023). Depends on the net, the positions and the step only.
        """
        boards = self.stream.window.validation()[0]
        if not len(boards):
            return 0
        boards = boards[:: math.ceil(len(boards) / _VALIDATION_ROWS)]
        fresh = Net(self.net.encoder, self.net.hidden, self.net.variant, self.net.products)
        fresh.reset(self.step)
        x = self.net.encode(torch.from_numpy(boards).to(self._device).float())
        found = 0
        tensors = dict(zip(self._names, self._parameters, strict=True))
        averages = dict(zip(self._names, self._averages, strict=False))
        for i, layer in enumerate(self.net.linears[:-1]):
            inputs = x
            x = torch.relu(layer(inputs))
            x = self.net.units(x) if i == 0 else x
            dormant = (x > 0).float().mean(0) < below
            found += int(dormant.sum())
            sums = dormant.repeat(len(layer.bias) // len(dormant))  # of a product: both
            weight = fresh.linears[i].weight.to(self._device)
            bias = -(inputs.mean(0) @ weight.T)
            for name, at, new in (
                (f"layers.{i}.weight", (sums,), weight),
                (f"layers.{i}.bias", (sums,), bias),
                (f"layers.{i + 1}.weight", (slice(None), dormant), None),
            ):
                for tensor in (tensors[name], averages.get(name)):
                    if tensor is not None:
                        tensor[at] = 0.0 if new is None else new[at]
                for moment in self._moments(tensors[name]).values():
                    moment[at] = 0.0
        return found

    def _gradients(self, batch: Batch, rows: slice) -> tuple[Tensor, tuple[Tensor, ...]]:
        """What some rows of a batch add to its loss, and the gradient of that."""
        boards = batch.boards[rows]
        targets = torch.from_numpy(batch.targets[rows]).to(self._device, non_blocking=True)
        weights = None
        if self.race_weight != 1:
            counts = [self.race_weight if is_race(board) else 1.0 for board in boards]
            weights = torch.tensor(counts, device=self._device)[:, None]
        logits = self.logits(boards)
        loss = F.binary_cross_entropy_with_logits(logits, targets, weights, reduction="sum")
        if self.equity_weight:
            squares = ((torch.sigmoid(logits) - targets) @ self._stakes).square()
            if weights is not None:
                squares = squares * weights[:, 0]
            loss = loss + self.equity_weight * squares.sum()
        loss = loss / batch.targets.size
        return loss.detach(), torch.autograd.grad(loss, self._parameters)

    def logits(self, boards: np.ndarray) -> Tensor:
        """The net's logits float32[N, 5] for `boards` int8[N, 2, 26]."""
        if self._first_layer is not None:
            first = self.net.linears[0]
            return self.net.later_layers(self._first_layer(first.weight, first.bias, boards))
        on_device = torch.from_numpy(boards).to(self._device, non_blocking=True)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._mixed_precision):
            logits = self._dense(on_device)
        return logits.float()

    def _encode_and_apply(self, boards: Tensor) -> Tensor:
        return self.net.logits(self.net.encode(boards.float()))

    def _check(self, loss: Tensor, norm: Tensor) -> float:
        """The loss as a number. Raises BgrlError when it, or the gradient, shows divergence."""
        value, size = float(loss), float(norm)
        running = self._running_loss
        bad = not (math.isfinite(value) and math.isfinite(size))
        if bad or (running is not None and value > self.divergence * running):
            before = "" if running is None else f" after about {running:.4g}"
            good = (
                f"the last good checkpoint is {self._checkpoint}"
                if self._checkpoint
                else ("no checkpoint was written before")
            )
            raise BgrlError(
                f"training diverged at about step {self.step}: loss {value:.4g}{before}, gradient "
                f"norm {size:.4g}, learning rate {self.learning_rate(self.step - 1):.4g}; {good}"
            )
        if running is None:
            running = value
        self._running_loss = _RUNNING_DECAY * running + (1 - _RUNNING_DECAY) * value
        return value

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Fit to held-out positions, by :meth:`saved_net`; nothing if none are held out.

        val_loss: cross-entropy alone, all positions alike; val_excess: what of it is above the
        targets' own entropy, which no net can go below; val_equity_error: root mean square
        difference of the equities, in points.
        """
        if self._validation is None:
            self._validation = self.stream.window.validation()
        boards, targets = self._validation
        if not len(boards):
            return {}
        weights = [p.detach().clone() for p in self._parameters]
        self._set_weights(self._averages or weights)
        try:
            logits = torch.cat(
                [
                    self.logits(boards[i : i + _VALIDATION_ROWS]).cpu()
                    for i in range(0, len(boards), _VALIDATION_ROWS)
                ]
            )
        finally:
            self._set_weights(weights)
        wanted = torch.from_numpy(targets)
        loss = F.binary_cross_entropy_with_logits(logits, wanted)
        entropy = F.binary_cross_entropy(wanted, wanted)
        points = self.net.variant.points
        error = equity(torch.sigmoid(logits).numpy(), points) - equity(targets, points)
        return {
            "val_loss": float(loss),
            "val_excess": float(loss - entropy),
            "val_equity_error": float(np.sqrt(np.mean(np.square(error)))),
        }

    def _memory(self, parameter: Tensor) -> dict[str, Any]:
        """What the optimizer of `parameter` remembers of it; its first step fills it in."""
        optimizer = self._optimizers[1 if parameter in self._orthogonal else 0]
        return cast(dict[str, Any], optimizer.state[parameter])

    def _moment_names(self, parameter: Tensor) -> tuple[str, ...]:
        orthogonal = parameter in self._orthogonal
        return ("momentum_buffer",) if orthogonal else ("exp_avg", "exp_avg_sq")

    def _moments(self, parameter: Tensor) -> dict[str, Tensor]:
        """The averages of gradients that its optimizer keeps; none before the first step."""
        memory = self._memory(parameter)
        return {kind: memory[kind] for kind in self._moment_names(parameter) if kind in memory}

    def _set_weights(self, tensors: list[Tensor]) -> None:
        with torch.no_grad():
            for parameter, tensor in zip(self._parameters, tensors, strict=True):
                parameter.copy_(tensor)

    def saved_net(self) -> Net:
        """A copy of the net on the CPU, with the averaged weights if there are any."""
        net = Net(self.net.encoder, self.net.hidden, self.net.variant, self.net.products)
        with torch.no_grad():
            for parameter, tensor in zip(
                net.parameters(), self._averages or self._parameters, strict=True
            ):
                parameter.copy_(tensor)
        return net

    def save(self, folder: str | os.PathLike, made: dict[str, Any] | None = None) -> Path:
        """Write the checkpoint ``folder/step-000001000``: the net, and what resuming needs.

        It is a folder of plain data that :func:`bgrl.nets.load_net` reads, too. Older checkpoints
        are deleted but for the one before. made: see :func:`bgrl.nets.save_net`.
        """
        tensors = {}
        for name, parameter in zip(self._names, self._parameters, strict=True):
            tensors[f"weight.{name}"] = parameter.detach()
            for kind, moment in self._moments(parameter).items():
                tensors[f"{kind}.{name}"] = moment
        for name, average in zip(self._names, self._averages, strict=False):
            tensors[f"average.{name}"] = average
        state = {
            "format": FORMAT,
            "version": VERSION,
            "step": self.step,
            "running_loss": self._running_loss,
            "stream": self.stream.identity,
            "tensors": sorted(tensors),
        }
        path = Path(folder) / _step_folder(self.step)
        with atomic_dir(path) as beside:
            self.saved_net().weights({"step": self.step, **(made or {})}).write(beside)
            atomic_write_bytes(
                beside / TENSORS_FILE,
                save_tensors({name: t.cpu().contiguous() for name, t in tensors.items()}),
            )
            atomic_write_json(beside / STATE_FILE, state)
        self._checkpoint = path
        for old in checkpoints(folder)[:-KEEP_CHECKPOINTS]:
            # Renamed first: a folder half deleted must not look like a checkpoint.
            rubbish = old.with_name(f"{TEMPORARY_PREFIX}{old.name}")
            os.replace(old, rubbish)
            shutil.rmtree(rubbish, ignore_errors=True)
        return path

    def resume(self, folder: str | os.PathLike) -> bool:
        """Go on from the newest checkpoint that :meth:`save` left in `folder`, if there is one.

        Weights, moments and step are restored; with the same stream, schedule and threads, all that
        follows is bit for bit what it would have been. Other data, as when the window has moved
        on, are accepted and said in the log.

        Raises CorruptFile or SchemaMismatch, naming the file, when the checkpoint is not whole, of
        another version, of a net of another shape or type, or has numbers that no training leaves.
        The trainer is then as it was.
        """
        found = checkpoints(folder)
        if not found:
            return False
        path = found[-1]
        state = read_json(path / STATE_FILE)
        if not isinstance(state, dict) or (state.get("format"), state.get("version")) != (
            FORMAT,
            VERSION,
        ):
            raise SchemaMismatch(f"{path / STATE_FILE}: not {FORMAT} version {VERSION}")
        step, running_loss = state.get("step"), state.get("running_loss")
        if not is_integer(step) or _step_folder(step) != path.name:
            raise CorruptFile(f"{path / STATE_FILE}: its step is {step!r}")
        if not (running_loss is None or is_number(running_loss)):
            raise CorruptFile(f"{path / STATE_FILE}: its running_loss is {running_loss!r}")
        if not isinstance(state.get("stream"), dict):
            raise CorruptFile(f"{path / STATE_FILE}: its stream is {state.get('stream')!r}")
        try:
            tensors = load_tensors((path / TENSORS_FILE).read_bytes())
        except OSError as error:
            raise CorruptFile(f"{path / TENSORS_FILE}: {error.strerror}") from error
        except (SafetensorError, KeyError) as error:
            raise CorruptFile(f"{path / TENSORS_FILE}: not a whole file: {error}") from error
        averages = ("average",) if self._averages else ()
        for name, parameter in zip(self._names, self._parameters, strict=True):
            for kind in ("weight", *self._moment_names(parameter), *averages):
                tensor = tensors.get(f"{kind}.{name}")
                if tensor is None or tensor.shape != parameter.shape:
                    shape = "missing" if tensor is None else list(tensor.shape)
                    raise SchemaMismatch(
                        f"{path / TENSORS_FILE}: {kind}.{name} is {shape}, "
                        f"expected {list(parameter.shape)}"
                    )
                if tensor.dtype != parameter.dtype:
                    raise SchemaMismatch(
                        f"{path / TENSORS_FILE}: {kind}.{name} is {tensor.dtype}, "
                        f"expected {parameter.dtype}"
                    )
                if not tensor.isfinite().all():
                    raise CorruptFile(
                        f"{path / TENSORS_FILE}: {kind}.{name} has numbers that are not finite"
                    )
        if state["stream"] != self.stream.identity:
            log.info("%s was written with other data; going on with the present data", path)
        self._set_weights([tensors[f"weight.{name}"] for name in self._names])
        if self._averages:
            self._averages = [tensors[f"average.{name}"].to(self._device) for name in self._names]
        for name, parameter in zip(self._names, self._parameters, strict=True):
            memory = self._memory(parameter)
            memory["step"] = torch.tensor(float(step), device=self._device)
            for kind in self._moment_names(parameter):
                memory[kind] = tensors[f"{kind}.{name}"].to(self._device)
        self.step = step
        self._running_loss = running_loss
        self._checkpoint = path
        return True


def _step_folder(step: int) -> str:
    return f"step-{step:09d}"


def checkpoints(folder: str | os.PathLike) -> list[Path]:
    """The trainer's checkpoints in `folder`, oldest first."""
    folder = Path(folder)
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if _STEP_FOLDER.fullmatch(path.name))
