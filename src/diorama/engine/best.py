# SPDX-License-Identifier: Apache-2.0
"""The checkpoint whose held-out images looked best so far, kept beside the newest ones."""

from diorama.engine.checkpoint import Checkpoint
from diorama.engine.checkpoint_folder import list_checkpoints, save_checkpoint
from diorama.engine.disk import read_json, write_json
from diorama.engine.run_folder import RunFolder


def keep_if_best(checkpoint: Checkpoint, psnr: float, run: RunFolder) -> bool:
    """Put the checkpoint into RUN/best if its PSNR exceeds that of the one that is there.

    A run that was resumed from an earlier step forgets what came after that step.
    """
    note = run.best / "best.json"
    if note.exists() and list_checkpoints(run.best):
        before = read_json(note)
        if before["step"] < checkpoint.step and before["psnr"] >= psnr:
            return False
    run.best.mkdir(exist_ok=True)
    kept = save_checkpoint(checkpoint, run.best, keep=1)
    for other in list_checkpoints(run.best):
        if other != kept:
            other.unlink()
    write_json(note, {"step": checkpoint.step, "psnr": psnr})
    return True
