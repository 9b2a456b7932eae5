# SPDX-License-Identifier: Apache-2.0
"""Training from beginning to end: results on disk, budgets, failures, restarts."""

import errno
import io
import json
import math
import sys
import time
import types
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diorama.engine import checkpoint as checkpoint_module
from diorama.engine.checkpoint_folder import list_checkpoints, newest_checkpoint
from diorama.engine.loop import MAX_RESTARTS, TrainingLoop
from diorama.engine.planner import Planner
from diorama.engine.progress import PlainReporter, Reporter, RichReporter, make_reporter
from diorama.engine.step import StepResult
from diorama.engine.trainer import Trainer
from diorama.errors import UserError
from tests.engine.tiny import TinyModel, default_for, tiny_config, tiny_scene


def train(folder: Path, reporter: Reporter | None = None, **changes) -> Path:
    return Trainer(tiny_config(folder, **changes), tiny_scene(), reporter).train()


def read_log(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


def read_metrics(run: Path) -> dict:
    return json.loads((run / "metrics.json").read_text())


def test_a_run_leaves_everything_one_needs(tmp_path):
    run = train(tmp_path, max_steps=200)
    assert run == tmp_path / "tiny picture" / "tiny" / "run"
    metrics = read_metrics(run)
    assert metrics.keys() == {
        "schema_version", "method", "data", "step", "planned_steps", "max_minutes",
        "training_seconds", "peak_memory_mb", "restarts", "seed", "split", "means", "images",
        "versions",
    }  # fmt: skip
    assert (metrics["method"], metrics["step"], metrics["split"]) == ("tiny", 200, "test")
    assert [image["name"] for image in metrics["images"]] == ["004.png", "005.png"]
    assert metrics["means"].keys() == {"psnr", "ssim", "bias"}
    mean = sum(image["psnr"] for image in metrics["images"]) / 2
    assert metrics["means"]["psnr"] == pytest.approx(mean)
    assert metrics["means"]["psnr"] > 15
    assert metrics["training_seconds"] > 0
    assert metrics["peak_memory_mb"] > 50
    assert metrics["versions"].keys() == {"diorama", "torch", "python", "native"}
    held_out = json.loads((run / "eval_images.json").read_text())
    assert held_out == {"split": "test", "images": ["004.png", "005.png"]}
    assert [path.name for path in list_checkpoints(run / "checkpoints")] == [
        "step-000000200.safetensors", "step-000000190.safetensors",
    ]  # fmt: skip


def test_the_log_has_losses_rates_and_evaluations(tmp_path):
    log = read_log(train(tmp_path))
    first = next(entry for entry in log if entry["kind"] == "train")
    assert {"step", "loss", "loss/rgb", "loss/tint", "psnr", "lr/trunk", "lr/head",
            "rays_per_second", "seconds"} <= first.keys()  # fmt: skip
    assert [e["step"] for e in log if e["kind"] == "eval"] == [25, 50]
    assert first["loss"] == pytest.approx(first["loss/rgb"] + first["loss/tint"], rel=1e-4)


def test_a_name_is_never_used_twice(tmp_path):
    run = train(tmp_path)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(UserError, match=r"exists already. Choose another --name"):
        train(tmp_path)
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_without_held_out_images_it_still_trains(tmp_path):
    scene = replace(tiny_scene(), splits={"train": (0, 1, 2, 3, 4, 5), "val": (), "test": ()})
    run = Trainer(tiny_config(tmp_path), scene).train()
    metrics = read_metrics(run)
    assert (metrics["split"], metrics["images"], metrics["means"]) == (None, [], {})


def test_two_accumulated_batches_equal_one_of_twice_the_size(tmp_path):
    quiet_model = {"noise": 0.0}
    one = train(tmp_path / "one", model=quiet_model, data={"rays": 64})
    two = train(tmp_path / "two", model=quiet_model, data={"rays": 32}, optim={"accumulate": 2})
    whole, parts = (newest_checkpoint(run / "checkpoints")[0].model for run in (one, two))
    for name in ("trunk.0.weight", "head.weight", "head.bias"):
        torch.testing.assert_close(whole[name], parts[name], rtol=1e-4, atol=1e-5)
    assert int(parts["num_steps"]) == 2 * int(whole["num_steps"])


def test_a_loss_that_is_not_a_number_stops_with_its_name(tmp_path):
    with pytest.raises(UserError, match=r"loss term 'tint' became nan at step 37") as caught:
        train(tmp_path, model={"nan_at": 37})
    assert "step-000000030.safetensors" in str(caught.value)
    run = tmp_path / "tiny picture" / "tiny" / "run"
    checkpoint, _, _ = newest_checkpoint(run / "checkpoints")
    assert checkpoint.step == 30
    assert all(bool(torch.isfinite(tensor).all()) for tensor in checkpoint.model.values())


def test_weights_that_are_not_numbers_are_not_saved(tmp_path, monkeypatch):
    forward = TinyModel.forward

    def poisoned(self, batch, step, generator):
        outputs = forward(self, batch, step, generator)
        if step == 29:
            self.head.bias.register_hook(lambda grad: grad * float("inf"))
        return outputs

    monkeypatch.setattr(TinyModel, "forward", poisoned)
    with pytest.raises(UserError, match=r"not finite any more at step 30; .*step-000000020"):
        train(tmp_path)


def test_a_dead_start_begins_anew_and_resumes_exactly(tmp_path):
    said: list[str] = []
    reporter = Reporter()
    reporter.message = said.append
    run = train(tmp_path / "a", reporter, model={"dead_starts": 2}, log={"save_every": 5})
    assert sum("nothing is painted; starting again" in text for text in said) == 2
    assert read_metrics(run)["restarts"] == 2
    log = read_log(run)
    assert [e["step"] for e in log if e["kind"] == "train"] == [10, 20, 30, 40, 50, 60]
    assert [e["restarts"] for e in log if e["kind"] == "restart"] == [1, 2]
    straight = newest_checkpoint(run / "checkpoints")[0].model
    older = list_checkpoints(run / "checkpoints")[1]
    Trainer.resume(older, None, tiny_scene(), Reporter(), default_for)
    again = newest_checkpoint(run / "checkpoints")[0].model
    assert all(torch.equal(straight[name], again[name]) for name in straight)


def test_starts_that_stay_dead_end_with_advice(tmp_path):
    with pytest.raises(UserError, match=f"started dead {MAX_RESTARTS + 1} times"):
        train(tmp_path, model={"dead_starts": 99})


def test_a_time_budget_fixes_the_steps_and_ends_the_schedule(tmp_path):
    seconds = 3.0
    started = time.perf_counter()
    run = train(
        tmp_path, max_minutes=seconds / 60, max_steps=1_000_000,
        model={"sleep": 0.004}, log={"save_every": 100, "every": 1, "eval_every": 50},
    )  # fmt: skip
    took = time.perf_counter() - started
    metrics, log = read_metrics(run), read_log(run)
    # Wide bounds, because other programs may take the machine in the middle of it.
    assert 0.4 * seconds < metrics["training_seconds"] < 2.5 * seconds
    assert took < 2.5 * seconds + 3
    plans = [entry for entry in log if entry["kind"] == "plan"]
    assert plans[-1]["planned_steps"] == metrics["step"]
    assert plans[0]["step"] < 0.5 * metrics["step"]
    last = [entry for entry in log if entry["kind"] == "train"][-1]
    assert last["lr/head"] == pytest.approx(1e-3, rel=0.05)
    checkpoint, _, _ = newest_checkpoint(run / "checkpoints")
    assert checkpoint.plain["planned_steps"] == checkpoint.step == metrics["step"]


def train_four_seconds(tmp_path: Path) -> Path:
    return train(
        tmp_path, max_minutes=4.0 / 60, max_steps=1_000_000,
        model={"sleep": 0.005}, log={"every": 1},
    )  # fmt: skip


def test_a_run_that_becomes_slower_is_cut_to_its_budget(tmp_path, monkeypatch):
    def slower(loop: TrainingLoop) -> StepResult:
        if loop.state.planned_steps is not None:
            time.sleep(0.005)
        return step(loop)

    step = TrainingLoop._step
    monkeypatch.setattr(TrainingLoop, "_step", slower)
    run = train_four_seconds(tmp_path)
    metrics, log = read_metrics(run), read_log(run)
    plans = [entry["planned_steps"] for entry in log if entry["kind"] == "plan"]
    assert len(plans) > 1 and plans[-1] == metrics["step"] < 0.75 * plans[0]
    # Uncut it would take almost twice its budget.
    assert metrics["training_seconds"] < 1.5 * 4.0
    last = [entry for entry in log if entry["kind"] == "train"][-1]
    assert last["lr/head"] == pytest.approx(1e-3, rel=0.05)
    checkpoint, _, _ = newest_checkpoint(run / "checkpoints")
    assert checkpoint.plain["planned_steps"] == metrics["step"]


def test_a_run_that_was_slow_at_first_uses_its_budget(tmp_path, monkeypatch):
    def three_times_slower(planner: Planner, step: int, seconds: float) -> None:
        note_step(planner, step, 3 * seconds)

    note_step = Planner.note_step
    monkeypatch.setattr(Planner, "note_step", three_times_slower)
    run = train_four_seconds(tmp_path)
    metrics, log = read_metrics(run), read_log(run)
    plans = [entry["planned_steps"] for entry in log if entry["kind"] == "plan"]
    assert plans[-1] == metrics["step"] > 1.5 * plans[0]
    # As first planned it would take about a third of its budget.
    assert 0.6 * 4.0 < metrics["training_seconds"] < 1.5 * 4.0
    last = [entry for entry in log if entry["kind"] == "train"][-1]
    assert last["lr/head"] == pytest.approx(1e-3, rel=0.05)


def test_making_the_model_counts_as_training_time(tmp_path, monkeypatch):
    build = Trainer._build

    def slow_build(trainer: Trainer, is_new: bool):
        time.sleep(0.5)
        return build(trainer, is_new)

    monkeypatch.setattr(Trainer, "_build", slow_build)
    assert read_metrics(train(tmp_path, max_steps=2))["training_seconds"] > 0.5


def test_a_planned_run_resumes_to_its_plan(tmp_path):
    run = train(tmp_path, max_minutes=1.5 / 60, max_steps=1_000_000, model={"sleep": 0.004})
    planned = read_metrics(run)["step"]
    older = list_checkpoints(run / "checkpoints")[1]
    Trainer.resume(older, None, tiny_scene(), Reporter(), default_for)
    assert read_metrics(run)["step"] == planned


def test_a_budget_never_exceeds_max_steps(tmp_path):
    run = train(tmp_path, max_minutes=5.0, max_steps=40)
    assert read_metrics(run)["step"] == 40


@pytest.mark.parametrize(
    ("code", "sentence"),
    [(errno.ENOSPC, "the disk is full. Free some space"), (errno.EROFS, "not permitted")],
)
def test_a_disk_that_refuses_is_reported_with_the_way_on(tmp_path, monkeypatch, code, sentence):
    save_file = checkpoint_module.save_file

    def refusing(tensors, path, metadata):
        if path.name == "step-000000030.safetensors":
            raise OSError(code, "refused", str(path))
        save_file(tensors, path, metadata)

    monkeypatch.setattr(checkpoint_module, "save_file", refusing)
    with pytest.raises(UserError, match=sentence) as caught:
        train(tmp_path)
    assert "then go on from step-000000020.safetensors: diorama resume" in str(caught.value)
    run = tmp_path / "tiny picture" / "tiny" / "run"
    assert newest_checkpoint(run / "checkpoints")[0].step == 20


def test_exhausted_memory_names_the_flags(tmp_path, monkeypatch):
    def hungry(self, batch, step, generator):
        return {"rgb": torch.empty(2**60)}

    monkeypatch.setattr(TinyModel, "forward", hungry)
    with pytest.raises(UserError, match=r"out of memory. Use fewer --data.rays"):
        train(tmp_path)


def test_the_model_is_told_where_schedules_end(tmp_path, monkeypatch):
    models: list[TinyModel] = []
    get_callbacks = TinyModel.get_callbacks

    def noting(self):
        models.append(self)
        return get_callbacks(self)

    monkeypatch.setattr(TinyModel, "get_callbacks", noting)
    train(tmp_path)
    assert set(models[0].seen_max_steps) == {60}
    assert models[0].finished_at == [60]


def test_plain_lines_when_not_a_terminal():
    stream = io.StringIO()
    assert isinstance(make_reporter(False, stream), PlainReporter)
    assert type(make_reporter(True, stream)) is Reporter


def test_plain_lines_say_what_matters(tmp_path):
    stream = io.StringIO()
    train(tmp_path, PlainReporter(stream, seconds=0.0))
    lines = stream.getvalue().splitlines()
    last = [line for line in lines if line.startswith("step 60/60")][-1]
    for word in ("loss ", "psnr ", "rays/s", "left"):
        assert word in last
    assert lines[-1].startswith("trained 60 steps; held-out (2 images)")
    assert not any("\x1b" in line for line in lines)


def test_a_reader_that_went_away_does_not_stop_training(tmp_path):
    class Closed(io.StringIO):
        def write(self, text: str, /) -> int:
            raise BrokenPipeError

    assert read_metrics(train(tmp_path, PlainReporter(Closed(), seconds=0.0)))["step"] == 60


def test_a_bar_on_a_terminal(tmp_path):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    reporter = make_reporter(False, stream)
    assert isinstance(reporter, RichReporter)
    train(tmp_path, reporter)
    assert "training" in stream.getvalue()
    assert "rays/s" in stream.getvalue()


def test_quiet_prints_nothing(tmp_path, capfd):
    train(tmp_path)
    assert capfd.readouterr() == ("", "")


def test_tensorboard_has_scalars_and_images_once(tmp_path):
    run = train(tmp_path, log={"tensorboard": True})
    older = list_checkpoints(run / "checkpoints")[1]
    Trainer.resume(older, None, tiny_scene(), Reporter(), default_for)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    steps = [event.step for event in events.Scalars("train/loss")]
    assert steps == [10, 20, 30, 40, 50, 60]
    assert {"eval/psnr", "train/psnr", "train/lr/head"} <= set(events.Tags()["scalars"])
    assert "eval/004.png" in events.Tags()["images"]


def test_wandb_is_optional(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UserError, match=r"pip install 'diorama\[wandb\]'"):
        train(tmp_path, log={"wandb": True})
    logged: list[dict] = []
    run = types.SimpleNamespace(log=lambda values, step: logged.append(values), finish=lambda: None)
    ids: list[str] = []
    fake = types.ModuleType("wandb")
    fake.init = lambda **options: ids.append(options["id"]) or run
    fake.Image = lambda array: array.shape
    monkeypatch.setitem(sys.modules, "wandb", fake)
    folder = train(tmp_path / "b", log={"wandb": True})
    Trainer.resume(folder, None, tiny_scene(), Reporter(), default_for)
    assert ids[0] == ids[1]
    assert any("train/loss" in values for values in logged)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"max_steps": 0}, "--max-steps 0: must be at least 1"),
        ({"max_minutes": 0.0}, "--max-minutes 0.0: must be above 0"),
        ({"optim": {"accumulate": 0}}, "--optim.accumulate 0"),
        ({"optim": {"lr_final": math.inf}}, "--optim.lr-final: must be a finite number"),
        ({"optim": {"weight_decay": -1.0}}, "--optim.weight-decay -1.0: must be at least 0"),
        ({"optim": {"beta2": 1.0}}, "--optim.beta2 1.0: must be below 1"),
        ({"threads": 0}, "--threads 0"),
        ({"device": "abacus"}, "--device abacus: not usable here"),
        ({"name": "../elsewhere"}, "--name ../elsewhere: use a plain folder name"),
    ],
)
def test_senseless_options_are_refused_before_anything_is_written(tmp_path, changes, sentence):
    with pytest.raises(UserError, match=sentence):
        train(tmp_path / "out", **changes)
    assert not list(tmp_path.iterdir())
