# SPDX-License-Identifier: Apache-2.0
"""The device and the threads that a run uses."""

import torch

from diorama.errors import UserError


def choose_device(name: str) -> torch.device:
    """The device called `name`; auto is CUDA when there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"--device {name}: not usable here ({reason}). Try cpu.") from error
    return device


def use_threads(threads: int | None) -> None:
    """Let torch and the native kernels use this many CPU threads; None leaves torch's choice."""
    if threads is None:
        return
    if threads < 1:
        raise UserError(f"--threads {threads}: at least one thread is needed.")
    torch.set_num_threads(threads)
