# SPDX-License-Identifier: Apache-2.0
"""Scalars and images for Weights & Biases, for those who installed it."""

import importlib
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor

from diorama.engine.disk import write_atomically
from diorama.engine.logs import RunLog
from diorama.errors import UserError


class WandbLog(RunLog):
    """A W&B run whose id is kept in the run folder, so that a resumed run goes on in it."""

    def __init__(self, folder: Path, name: str, config: dict[str, Any]):
        try:
            self._wandb = importlib.import_module("wandb")
        except ImportError:
            raise UserError(
                "--log.wandb needs the wandb package: pip install 'diorama[wandb]'"
            ) from None
        id_file = folder / "wandb_id.txt"
        if not id_file.exists():
            write_atomically(id_file, secrets.token_hex(8) + "\n")
        self._run = self._wandb.init(
            project="diorama", id=id_file.read_text(encoding="utf-8").strip(), name=name,
            dir=str(folder), config=config, resume="allow",
        )  # fmt: skip

    def scalars(self, step: int, kind: str, values: Mapping[str, Any]) -> None:
        """Numbers as `kind/name`; W&B itself drops steps it has seen."""
        numbers = {f"{kind}/{k}": v for k, v in values.items() if isinstance(v, (int, float))}
        self._run.log(numbers, step=step)

    def image(self, step: int, name: str, rgb: Float[Tensor, "H W 3"]) -> None:
        """An image under its name."""
        self._run.log({name: self._wandb.Image(rgb.clamp(0, 1).cpu().numpy())}, step=step)

    def close(self) -> None:
        """Finish the W&B run."""
        self._run.finish()
