# SPDX-License-Identifier: Apache-2.0
"""N Gaussian splats as plain tensors: what the files hold and the rasteriser draws."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Color = Literal["shifted", "sigmoid"]
SplatIndex = Bool[Tensor, " N"] | Int[Tensor, " M"] | slice

_ROWS = ("means", "quaternions", "log_scales", "opacity_logits", "sh")
_DEGREES = {1: 0, 4: 1, 9: 2, 16: 3}


@dataclass(frozen=True, eq=False)
class Splats:
    """N Gaussians in float32, in the frame of a 3DGS .ply (usually x right, y down, z forward).

    Parameters are stored as they are trained: logarithms, logits and quaternions of any length.
    """

    means: Float[Tensor, "N 3"]

    quaternions: Float[Tensor, "N 4"]
    """w x y z, of any length but zero; they turn the Gaussian's own axes into the world's."""

    log_scales: Float[Tensor, "N 3"]
    """Natural logarithms of the standard deviations along the Gaussian's own axes."""

    opacity_logits: Float[Tensor, " N"]

    sh: Float[Tensor, "N K 3"]
    """Spherical harmonics of `sh_basis`, K = (degree + 1)^2 coefficients of red, green, blue."""

    color: Color = "shifted"
    """max(0, SH + 0.5) as in the original system, or sigmoid(SH) as in the taichi system."""

    antialiased: bool = False
    """Whether opacities were trained with the compensation for the screen-space blur."""

    notes: tuple[str, ...] = ()
    """Sentences for the user about what of a file is not here."""

    def __post_init__(self) -> None:
        n = self.means.shape[0]
        shapes = {"means": (n, 3), "quaternions": (n, 4), "log_scales": (n, 3)}
        for name, shape in {**shapes, "opacity_logits": (n,)}.items():
            got = tuple(getattr(self, name).shape)
            if got != shape:
                raise ValueError(f"{name} must have the shape {shape}, got {got}")
        sh = tuple(self.sh.shape)
        if len(sh) != 3 or (sh[0], sh[2]) != (n, 3) or sh[1] not in _DEGREES:
            raise ValueError(f"sh must have the shape ({n}, 1 | 4 | 9 | 16, 3), got {sh}")
        for name in _ROWS:
            if getattr(self, name).dtype != torch.float32:
                raise ValueError(f"{name} must be float32, got {getattr(self, name).dtype}")
        if self.color not in ("shifted", "sigmoid"):
            raise ValueError(f"color must be 'shifted' or 'sigmoid', got {self.color!r}")

    def __len__(self) -> int:
        return self.means.shape[0]

    @property
    def degree(self) -> int:
        """Of the spherical harmonics, 0 to 3."""
        return _DEGREES[self.sh.shape[1]]

    def select(self, index: SplatIndex) -> "Splats":
        """The splats that a mask, indices or a slice name."""
        return replace(self, **{name: getattr(self, name)[index] for name in _ROWS})

    def with_degree(self, degree: int) -> "Splats":
        """The same splats with SH cut off at this degree, or filled with zeros up to it."""
        if not 0 <= degree <= 3:
            raise ValueError(f"degree must be 0 to 3, got {degree}")
        count = (degree + 1) ** 2
        sh = self.sh.new_zeros(len(self), count, 3)
        kept = min(count, self.sh.shape[1])
        sh[:, :kept] = self.sh[:, :kept]
        return replace(self, sh=sh)

    @staticmethod
    def cat(parts: Sequence["Splats"]) -> "Splats":
        """The splats of all parts, one after the other, with the highest of their degrees."""
        if not parts:
            raise ValueError("Splats.cat needs at least one part")
        kinds = {(part.color, part.antialiased) for part in parts}
        if len(kinds) > 1:
            raise ValueError(f"parts must agree in color and antialiased, got {sorted(kinds)}")
        degree = max(part.degree for part in parts)
        equal = [part if part.degree == degree else part.with_degree(degree) for part in parts]
        rows = {name: torch.cat([getattr(part, name) for part in equal]) for name in _ROWS}
        notes = dict.fromkeys(note for part in parts for note in part.notes)
        return replace(equal[0], **rows, notes=tuple(notes))
