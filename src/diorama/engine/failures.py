# SPDX-License-Identifier: Apache-2.0
"""What can go wrong while training, as sentences with advice."""

import contextlib
import math
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor

from diorama.engine.checkpoint import Checkpoint
from diorama.engine.checkpoint_folder import list_checkpoints
from diorama.engine.disk import disk_sentence
from diorama.engine.run_folder import RunFolder
from diorama.errors import UserError

_NO_MEMORY = re.compile(r"not enough memory|can't allocate memory|out of memory", re.IGNORECASE)
_MEMORY_ADVICE = (
    "out of memory. Use fewer --data.rays, a larger --data.downscale or a smaller --data.cache-gb"
)


def resume_command(run: Path) -> str:
    """What to type to go on with a run."""
    return f"diorama resume {shlex.quote(str(run))}"


@contextlib.contextmanager
def training_errors(run: RunFolder | None) -> Iterator[None]:
    """Turn exhausted memory and disks into `UserError`s that say how to go on."""
    try:
        yield
    except OSError as error:
        sentence = disk_sentence(error, Path() if run is None else run.path, _how_to_go_on(run))
        if sentence is None:
            raise
        raise UserError(sentence) from error
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise UserError(_no_memory(run)) from error
    except RuntimeError as error:
        if not _NO_MEMORY.search(str(error)):
            raise
        raise UserError(_no_memory(run)) from error


def check_finite_loss(terms: Mapping[str, Tensor], step: int, run: RunFolder) -> None:
    """Refuse to learn from a loss term that is not a number."""
    for name, term in terms.items():
        if not bool(torch.isfinite(term)):
            raise _diverged(f"the loss term '{name}' became {float(term.detach())}", step, run)


def check_finite_state(checkpoint: Checkpoint, parameters: set[str], run: RunFolder) -> None:
    """Refuse to save weights or moments that are not numbers over ones that are."""
    state = {name: checkpoint.model[name] for name in sorted(parameters)} | checkpoint.optimizer
    for name, tensor in state.items():
        # The cheap sum may overflow though every element is finite, hence the second look.
        is_suspect = tensor.is_floating_point() and not math.isfinite(float(tensor.sum()))
        if is_suspect and not bool(torch.isfinite(tensor).all()):
            raise _diverged(f"'{name}' is not finite any more", checkpoint.step, run)


def _diverged(what: str, step: int, run: RunFolder) -> UserError:
    return UserError(
        f"{what} at step {step}; nothing was saved over {_last_good(run)}. Lower --optim.lr or set "
        f"--optim.clip-norm and train again, or go on from there: {resume_command(run.path)}"
    )


def _last_good(run: RunFolder) -> str:
    checkpoints = list_checkpoints(run.checkpoints)
    return checkpoints[0].name if checkpoints else "the start (there is no checkpoint yet)"


def _how_to_go_on(run: RunFolder | None) -> str:
    if run is None:
        return ""
    return f"go on from {_last_good(run)}: {resume_command(run.path)}"


def _no_memory(run: RunFolder | None) -> str:
    how = _how_to_go_on(run)
    return f"{_MEMORY_ADVICE}{', then ' + how if how else '.'}"
