# SPDX-License-Identifier: Apache-2.0
"""One checkpoint as one safetensors file that knows whether it is whole.

Tensors are named `model/...`, `optimizer/...`, `data/...`, `rng/...`. Everything else is one JSON
string in the file's metadata, beside a SHA-256 of that string and of every tensor's name, type,
shape and bytes. Nothing in the file can run.
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from diorama.engine.disk import sync_folder
from diorama.errors import UserError
from diorama.model import Model

FORMAT_VERSION = 1
Tensors = dict[str, Tensor]


class CorruptCheckpoint(Exception):
    """The file is torn, altered or not a Diorama checkpoint."""


@dataclass(frozen=True)
class Checkpoint:
    """All that a run needs to go on as if it had never stopped; `step` steps are done."""

    step: int
    model: Tensors
    optimizer: Tensors = field(default_factory=dict)
    data: Tensors = field(default_factory=dict)
    rng: Tensors = field(default_factory=dict)
    plain: dict[str, Any] = field(default_factory=dict)
    """Planned steps, restarts, seconds, data state, random states, similarity, versions."""


def write_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write under a temporary folder, sync, rename into place, sync the folder."""
    tensors = _flatten(checkpoint)
    plain = json.dumps({**checkpoint.plain, "step": checkpoint.step})
    metadata = {
        "format": f"diorama-checkpoint-{FORMAT_VERSION}",
        "plain": plain,
        "sha256": _digest(tensors, plain),
    }
    partial = path.parent / ".partial"
    partial.mkdir(parents=True, exist_ok=True)
    for litter in partial.iterdir():  # left by a run that was killed while writing
        litter.unlink()
    temporary = partial / path.name
    try:
        _save(tensors, temporary, metadata)
        # The library creates its file for the owner only; follow the user's umask instead.
        temporary.chmod(partial.stat().st_mode & 0o666)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            for litter in partial.iterdir():
                litter.unlink()
            partial.rmdir()
    sync_folder(path.parent)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read and verify; raises `CorruptCheckpoint` with the reason."""
    tensors: Tensors = {}
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            for name in file.keys():  # noqa: SIM118  (the handle is no mapping)
                tensors[name] = file.get_tensor(name).clone()
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise CorruptCheckpoint(f"unreadable: {error}") from error
    version = metadata.get("format", "")
    if not version.startswith("diorama-checkpoint-"):
        raise CorruptCheckpoint("not a Diorama checkpoint")
    if version != f"diorama-checkpoint-{FORMAT_VERSION}":
        raise UserError(f"{path}: written by another version of Diorama ({version}); update it.")
    if metadata.get("sha256") != _digest(tensors, metadata.get("plain", "")):
        raise CorruptCheckpoint("its checksum does not match its contents")
    plain = json.loads(metadata["plain"])
    return Checkpoint(
        step=plain.pop("step"),
        model=_part(tensors, "model"),
        optimizer=_part(tensors, "optimizer"),
        data=_part(tensors, "data"),
        rng=_part(tensors, "rng"),
        plain=plain,
    )


def load_model_state(model: nn.Module, state: Mapping[str, Tensor], source: Path) -> None:
    """Load weights and buffers; the first tensor that does not fit is named."""
    if isinstance(model, Model):
        model.adopt_shapes(state)
    own = model.state_dict()
    advice = "It was trained with another method, other options or another version of Diorama."
    for name, tensor in own.items():
        if name not in state:
            raise UserError(f"{source}: the tensor '{name}' of this model is missing. {advice}")
        if state[name].shape != tensor.shape:
            raise UserError(
                f"{source}: the tensor '{name}' has shape {tuple(state[name].shape)} but this "
                f"model needs {tuple(tensor.shape)}. {advice}"
            )
    for name in state:
        if name not in own:
            raise UserError(f"{source}: this model has no tensor '{name}'. {advice}")
    model.load_state_dict(dict(state))


def model_state(model: nn.Module) -> Tensors:
    """Weights and persistent buffers, tensors only."""
    state = model.state_dict()
    for name, value in state.items():
        if not isinstance(value, Tensor):
            raise ValueError(f"model state '{name}' must be a tensor, got {type(value).__name__}")
    return dict(state)


def _flatten(checkpoint: Checkpoint) -> Tensors:
    parts = {
        "model": checkpoint.model,
        "optimizer": checkpoint.optimizer,
        "data": checkpoint.data,
        "rng": checkpoint.rng,
    }
    flat: Tensors = {}
    seen: set[int] = set()
    for part, tensors in parts.items():
        for name, tensor in tensors.items():
            plain = tensor.detach().cpu().contiguous()
            storage = plain.untyped_storage().data_ptr()
            # safetensors refuses views of one storage, which tied weights are.
            flat[f"{part}/{name}"] = plain.clone() if storage in seen else plain
            seen.add(storage)
    return flat


def _part(tensors: Tensors, part: str) -> Tensors:
    prefix = f"{part}/"
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def _digest(tensors: Tensors, plain: str) -> str:
    digest = hashlib.sha256(plain.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"\0{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _save(tensors: Tensors, path: Path, metadata: dict[str, str]) -> None:
    """`save_file`, with the system's error number put back where Python programs look for it."""
    try:
        save_file(tensors, path, metadata)
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        code = int(number[1])
        raise OSError(code, os.strerror(code), str(path)) from error
