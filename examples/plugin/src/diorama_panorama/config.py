# SPDX-License-Identifier: Apache-2.0
"""Settings of the panorama; no torch here, so that `diorama --help` stays quick."""

from dataclasses import dataclass
from typing import ClassVar

from diorama.config import ModelConfig


@dataclass(frozen=True)
class PanoramaConfig(ModelConfig):
    """A table of colours over the sphere of directions."""

    target: ClassVar[str] = "diorama_panorama.model:PanoramaModel"

    height: int = 32
    """Rows of the table, from pole to pole; there are twice as many columns."""
