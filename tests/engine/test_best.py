# SPDX-License-Identifier: Apache-2.0
"""The best checkpoint: kept, replaced, and forgotten when a run goes back behind it."""

import torch

from diorama.engine.best import keep_if_best
from diorama.engine.checkpoint import Checkpoint
from diorama.engine.checkpoint_folder import list_checkpoints, step_of
from diorama.engine.run_folder import RunFolder


def kept_step(run: RunFolder) -> int:
    (path,) = list_checkpoints(run.best)
    return step_of(path)


def checkpoint(step: int) -> Checkpoint:
    return Checkpoint(step, {"weight": torch.full((2,), float(step))})


def test_only_the_best_is_kept(tmp_path):
    run = RunFolder(tmp_path)
    assert keep_if_best(checkpoint(10), 20.0, run)
    assert not keep_if_best(checkpoint(20), 19.0, run)
    assert kept_step(run) == 10
    assert keep_if_best(checkpoint(30), 21.0, run)
    assert kept_step(run) == 30


def test_a_run_that_went_back_forgets_what_came_later(tmp_path):
    run = RunFolder(tmp_path)
    keep_if_best(checkpoint(30), 25.0, run)
    assert keep_if_best(checkpoint(20), 19.0, run)
    assert kept_step(run) == 20
