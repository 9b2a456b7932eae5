# SPDX-License-Identifier: Apache-2.0
"""A run that was killed, stopped, moved or extended ends as if nothing had happened."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diorama.engine.checkpoint_folder import newest_checkpoint
from diorama.engine.progress import Reporter
from diorama.engine.signals import Interrupted
from diorama.engine.trainer import Trainer
from diorama.errors import UserError
from tests.engine.tiny import TinyModel, default_for, tiny_config, tiny_scene

ROOT = Path(__file__).parents[2]


class Notebook(Reporter):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def message(self, text: str) -> None:
        self.said.append(text)


def train(folder: Path, **changes) -> Path:
    return Trainer(tiny_config(folder, **changes), scene=tiny_scene()).train()


def resume(run: Path, configure=None, reporter=None) -> Path:
    return Trainer.resume(run, configure, tiny_scene(), reporter, default_for)


def weights(run: Path) -> dict[str, torch.Tensor]:
    checkpoint, _, warnings = newest_checkpoint(run / "checkpoints")
    assert not warnings
    moments = {f"moment {name}": tensor for name, tensor in checkpoint.optimizer.items()}
    return {"step": torch.tensor(checkpoint.step), **checkpoint.model, **moments,
            "drawn": checkpoint.data["drawn"]}  # fmt: skip


def assert_same_bits(a: Path, b: Path) -> None:
    first, second = weights(a), weights(b)
    assert first.keys() == second.keys()
    for name in first:
        assert torch.equal(first[name], second[name]), name


def healed(config):
    """The same config without what killed the process."""
    return replace(config, quiet=True, model=replace(config.model, kill_at=-1, sleep=0.0))


def spawn(folder: Path, steps: int, kill_at: int, sleep: float = 0.0) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.engine.tiny", str(folder), str(steps), str(kill_at),
               str(sleep)]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory) -> Path:
    return train(tmp_path_factory.mktemp("uninterrupted"))


def test_killed_at_a_random_step_it_ends_with_the_same_bits(tmp_path, uninterrupted):
    kill_at = random.Random().randrange(60)
    process = spawn(tmp_path, 60, kill_at)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, errors
    run = tmp_path / "tiny picture" / "tiny" / "run"
    assert resume(run, healed) == run
    assert_same_bits(run, uninterrupted), f"killed at {kill_at}"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_says_how_to_go_on(tmp_path, uninterrupted, monkeypatch, number):
    forward = TinyModel.forward

    def signalling(self, batch, step, generator):
        if step == 33:
            os.kill(os.getpid(), number)
        return forward(self, batch, step, generator)

    monkeypatch.setattr(TinyModel, "forward", signalling)
    former = signal.getsignal(number)
    with pytest.raises(Interrupted, match="go on with: diorama resume") as caught:
        train(tmp_path)
    assert signal.getsignal(number) is former
    assert (caught.value.step, caught.value.exit_code) == (34, 128 + number)
    monkeypatch.undo()
    checkpoint, _, _ = newest_checkpoint(caught.value.run / "checkpoints")
    assert checkpoint.step == 34
    resume(caught.value.run)
    assert_same_bits(caught.value.run, uninterrupted)


def test_sigint_from_outside_saves_and_exits(tmp_path):
    process = spawn(tmp_path, 100_000, -1, sleep=0.005)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("step "):
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert "Interrupted: stopped at step" in errors
    run = tmp_path / "tiny picture" / "tiny" / "run"
    checkpoint, _, _ = newest_checkpoint(run / "checkpoints")
    assert checkpoint.step > 0


def test_a_run_killed_before_its_first_checkpoint_starts_over(tmp_path, uninterrupted):
    run = train(tmp_path)
    shutil.rmtree(run / "checkpoints")
    (run / "checkpoints").mkdir()
    resume(run)
    assert_same_bits(run, uninterrupted)


def test_a_moved_run_resumes(tmp_path, uninterrupted):
    run = train(tmp_path, max_steps=60, log={"keep": 3})
    elsewhere = tmp_path / "elsewhere" / "my run"
    elsewhere.parent.mkdir()
    run.rename(elsewhere)
    resume(elsewhere / "checkpoints" / "step-000000040.safetensors")
    assert_same_bits(elsewhere, uninterrupted)
    aside = sorted(path.name for path in (elsewhere / "checkpoints" / "set-aside").iterdir())
    assert aside == ["step-000000050.safetensors", "step-000000060.safetensors"]


def test_a_torn_checkpoint_is_named_and_the_previous_one_used(tmp_path, uninterrupted):
    run = train(tmp_path)
    newest = run / "checkpoints" / "step-000000060.safetensors"
    newest.write_bytes(newest.read_bytes()[:1000])
    notebook = Notebook()
    resume(run, reporter=notebook)
    assert any(str(newest) in text and "torn or corrupt" in text for text in notebook.said)
    assert_same_bits(run, uninterrupted)


def test_more_steps_on_request_and_no_step_twice_in_the_log(tmp_path):
    run = train(tmp_path)
    resume(run, lambda config: replace(config, max_steps=80))
    steps = [(e["kind"], e["step"]) for e in _log(run)]
    assert len(steps) == len(set(steps))
    assert [s for kind, s in steps if kind == "train"] == list(range(10, 90, 10))
    assert json.loads((run / "metrics.json").read_text())["step"] == 80
    assert json.loads((run / "config.json").read_text())["config"]["max_steps"] == 80
    resume(run)
    assert json.loads((run / "metrics.json").read_text())["step"] == 80


def test_the_log_is_cut_at_the_checkpoint(tmp_path):
    run = train(tmp_path)
    with (run / "log.jsonl").open("a") as file:
        file.write('{"step": 70, "kind": "train", "loss": 1}\n{"step": 71, "ki')
    resume(run)
    assert max(entry["step"] for entry in _log(run)) == 60


def test_evaluating_does_not_change_what_is_trained(tmp_path, uninterrupted):
    run = train(tmp_path, log={"eval_every": 0})
    assert_same_bits(run, uninterrupted)


def test_a_model_of_another_shape_is_refused_by_tensor_name(tmp_path):
    run = train(tmp_path)
    with pytest.raises(UserError, match=r"'trunk.0.weight' has shape \(16, 3\) but this model"):
        resume(run, lambda config: replace(config, model=replace(config.model, width=17)))


def test_the_seed_of_a_run_is_fixed(tmp_path):
    run = train(tmp_path)
    with pytest.raises(UserError, match="--seed and the method of a run are fixed"):
        resume(run, lambda config: replace(config, seed=1))


def test_data_normalised_differently_is_refused(tmp_path):
    run = train(tmp_path)
    scene = json.loads((run / "scene.json").read_text())
    scene["scene_from_user"]["scale"] = 2.0
    (run / "scene.json").write_text(json.dumps(scene))
    with pytest.raises(UserError, match="normalised differently"):
        resume(run)


def _log(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
