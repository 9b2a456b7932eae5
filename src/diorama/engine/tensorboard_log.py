# SPDX-License-Identifier: Apache-2.0
"""Scalars and images for TensorBoard."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor

from diorama.engine.logs import RunLog


class TensorBoardLog(RunLog):
    """Event files in a folder; what an earlier session wrote after `step` is hidden from view."""

    def __init__(self, folder: Path, step: int):
        self._folder = folder
        self._open(step)

    def _open(self, step: int) -> None:
        from torch.utils.tensorboard.writer import SummaryWriter

        # Purging asks TensorBoard to drop what lies at or after the given step.
        purge = step + 1 if self._folder.exists() else None
        self._writer = SummaryWriter(str(self._folder), purge_step=purge, flush_secs=20)

    def scalars(self, step: int, kind: str, values: Mapping[str, Any]) -> None:
        """Numbers as `kind/name`; text is left to the JSONL log."""
        for name, value in values.items():
            if isinstance(value, (int, float)):
                self._writer.add_scalar(f"{kind}/{name}", value, step)

    def image(self, step: int, name: str, rgb: Float[Tensor, "H W 3"]) -> None:
        """An image under its name."""
        self._writer.add_image(name, rgb.clamp(0, 1).cpu(), step, dataformats="HWC")

    def histogram(self, step: int, name: str, values: Float[Tensor, " N"]) -> None:
        """A histogram under its name; what is not finite has no place in it, and of nothing
        there is none (a view may show no Gaussian at all)."""
        shown = values[values.isfinite()].cpu()
        if len(shown) > 0:
            self._writer.add_histogram(name, shown, step)

    def rewind(self, step: int) -> None:
        """Go on in a new event file that purges the later steps."""
        self._writer.close()
        self._open(step)

    def close(self) -> None:
        """Flush and close the event file."""
        self._writer.close()
