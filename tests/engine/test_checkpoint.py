# SPDX-License-Identifier: Apache-2.0
"""Checkpoints are whole or known not to be, and an error while writing harms nothing."""

import random
import resource
import stat

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from diorama.engine.checkpoint import (
    Checkpoint,
    CorruptCheckpoint,
    load_model_state,
    read_checkpoint,
    write_checkpoint,
)
from diorama.engine.checkpoint_folder import (
    exact_checkpoint,
    list_checkpoints,
    newest_checkpoint,
    save_checkpoint,
)
from diorama.engine.disk import disk_errors
from diorama.engine.rng import preserved_rng, restore_rng, rng_plain, rng_tensors
from diorama.errors import UserError


def make(step: int = 7, scale: float = 1.0) -> Checkpoint:
    generator = torch.Generator().manual_seed(step)
    shared = torch.rand((4, 4), generator=generator) * scale
    return Checkpoint(
        step=step,
        model={
            "weight": shared, "tied": shared, "view": shared.t(), "half": shared.bfloat16(),
            "is_set": torch.tensor([True, False]), "empty": torch.zeros(0, 3),
            "count": torch.tensor(3),
        },
        optimizer={"all/0/exp_avg": torch.rand(4, generator=generator)},
        data={"order": torch.arange(5)},
        rng=rng_tensors(),
        plain={"planned_steps": 100, "rng": rng_plain(), "note": "ä"},
    )  # fmt: skip


def assert_equal(a: Checkpoint, b: Checkpoint) -> None:
    assert (a.step, a.plain) == (b.step, b.plain)
    for part in ("model", "optimizer", "data", "rng"):
        first, second = getattr(a, part), getattr(b, part)
        assert first.keys() == second.keys()
        for name in first:
            assert first[name].dtype == second[name].dtype
            assert torch.equal(first[name], second[name]), name


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint")
    checkpoint = make()
    write_checkpoint(checkpoint, folder / "step-000000007.safetensors")
    return checkpoint, (folder / "step-000000007.safetensors").read_bytes(), folder


def test_round_trip_keeps_every_bit_and_leaves_no_litter(tmp_path):
    checkpoint = make()
    path = tmp_path / "step-000000007.safetensors"
    write_checkpoint(checkpoint, path)
    assert_equal(read_checkpoint(path), checkpoint)
    assert list(tmp_path.iterdir()) == [path]
    probe = tmp_path / "probe"
    probe.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(probe.stat().st_mode)


@settings(max_examples=40, deadline=None)
@given(st.floats(0, 1, exclude_max=True))
def test_a_torn_file_is_recognised(written, share):
    _, content, folder = written
    path = folder / "torn.safetensors"
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(CorruptCheckpoint):
        read_checkpoint(path)


@settings(max_examples=150, deadline=None)
@given(st.floats(0, 1, exclude_max=True), st.integers(1, 255))
def test_an_altered_byte_is_recognised_or_without_effect(written, share, change):
    checkpoint, content, folder = written
    altered = bytearray(content)
    altered[int(share * len(content))] ^= change
    path = folder / "altered.safetensors"
    path.write_bytes(bytes(altered))
    try:
        found = read_checkpoint(path)
    except (CorruptCheckpoint, UserError):
        return
    assert_equal(found, checkpoint)


def test_the_newest_whole_one_is_used_and_the_others_are_named(tmp_path):
    for step in (10, 20, 30):
        save_checkpoint(make(step), tmp_path, keep=3)
    torn, altered = (tmp_path / f"step-0000000{step}.safetensors" for step in (30, 20))
    torn.write_bytes(torn.read_bytes()[:-9])
    content = bytearray(altered.read_bytes())
    content[-5] ^= 1
    altered.write_bytes(bytes(content))
    (tmp_path / "notes.txt").write_text("a stray file")
    checkpoint, path, warnings = newest_checkpoint(tmp_path)
    assert (checkpoint.step, path.name) == (10, "step-000000010.safetensors")
    assert [str(torn) in warnings[0], str(altered) in warnings[1]] == [True, True]
    assert "checksum" in warnings[1]
    path.write_bytes(b"")
    sentence = r"none of the 3 checkpoints is usable, the newest is step-000000030\.safetensors:"
    with pytest.raises(UserError, match=sentence):
        newest_checkpoint(tmp_path)
    with pytest.raises(UserError, match=r"step-000000020.safetensors: torn or corrupt"):
        exact_checkpoint(altered)
    with pytest.raises(UserError, match="no checkpoint yet"):
        newest_checkpoint(tmp_path / "nothing")


def test_only_the_newest_are_kept(tmp_path):
    for step in (10, 20, 30, 1_000_000_000):
        save_checkpoint(make(step), tmp_path, keep=2)
    names = [path.name for path in list_checkpoints(tmp_path)]
    assert names == ["step-1000000000.safetensors", "step-000000030.safetensors"]


def test_a_full_disk_leaves_the_former_checkpoint(tmp_path):
    save_checkpoint(make(10), tmp_path, keep=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(UserError, match="the disk is full"), disk_errors(tmp_path):
            save_checkpoint(make(20), tmp_path, keep=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000010.safetensors"]
    assert read_checkpoint(tmp_path / "step-000000010.safetensors").step == 10


def test_the_first_tensor_that_does_not_fit_is_named(tmp_path):
    model = nn.Linear(3, 2)
    state = nn.Linear(4, 2).state_dict()
    with pytest.raises(UserError, match=r"'weight' has shape \(2, 4\) but this model needs"):
        load_model_state(model, state, tmp_path)
    with pytest.raises(UserError, match="'bias' of this model is missing"):
        load_model_state(model, {"weight": model.weight}, tmp_path)
    with pytest.raises(UserError, match="no tensor 'more'"):
        load_model_state(model, {**model.state_dict(), "more": model.weight}, tmp_path)


def test_every_global_generator_is_restored():
    tensors, plain = rng_tensors(), rng_plain()

    def draw() -> tuple[float, float, float, float]:
        return (torch.rand(()).item(), np.random.standard_normal(),  # noqa: NPY002
                random.random(), random.gauss(0, 1))  # fmt: skip

    first = draw()
    assert draw() != first
    restore_rng(tensors, plain)
    with preserved_rng():
        again = draw()
    restore_rng(tensors, plain)
    # beartype draws from Python's generator while it checks the call above; torch and numpy are
    # untouched by it.
    assert again[:2] == first[:2] == draw()[:2]
    random.setstate(_python_state(plain))
    expected = random.random()
    random.seed(5)
    restore_rng(tensors, plain)
    random.setstate(_python_state(plain))
    assert random.random() == expected


def _python_state(plain):
    version, words, gauss = plain["python"]
    return version, tuple(words), gauss
