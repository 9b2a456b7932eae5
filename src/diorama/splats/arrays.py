# SPDX-License-Identifier: Apache-2.0
"""Splats as NumPy arrays on their way from and to a file, and what every reader refuses."""

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch

from diorama.errors import UserError
from diorama.splats.splats import Color, Splats

# Infinite parameters occur in trained files and mean "as small" or "as opaque as can be".
_LIMITS = {"log_scales": 30.0, "opacity_logits": 30.0, "sh": 1e4}
_MAX_COEFFICIENTS = 16


@dataclass(frozen=True, eq=False)
class SplatArrays:
    """The rows of `Splats`, unchecked."""

    means: np.ndarray
    quaternions: np.ndarray
    log_scales: np.ndarray
    opacity_logits: np.ndarray
    sh: np.ndarray

    @staticmethod
    def of(splats: Splats) -> "SplatArrays":
        """The splats' values on the CPU."""
        names = [field.name for field in fields(SplatArrays)]
        return SplatArrays(*(getattr(splats, name).detach().cpu().numpy() for name in names))

    def to_splats(self, path: Path, color: Color = "shifted", antialiased: bool = False) -> Splats:
        """Checked splats: no NaN, no infinite position, at least one splat.

        Infinite sizes, opacities and colours become very large ones, a quaternion of zeros (which
        the original renderer takes for no rotation) becomes that. Harmonics beyond degree 3 are
        left out, which the splats' notes tell.
        """
        count = len(self.means)
        if count == 0:
            raise UserError(f"{path}: holds no splats; export the scene again.")
        rows = {}
        for field in fields(self):
            values = np.ascontiguousarray(getattr(self, field.name), dtype=np.float32)
            is_bad = np.isnan(values) if field.name in _LIMITS else ~np.isfinite(values)
            if num_bad := int(is_bad.reshape(count, -1).any(axis=1).sum()):
                raise UserError(
                    f"{path}: {num_bad} of {count} splats have {field.name.replace('_', ' ')} that"
                    " are not finite numbers; remove them with the tool that wrote the file."
                )
            limit = _LIMITS.get(field.name, np.inf)
            rows[field.name] = np.clip(values, -limit, limit)
        rows["quaternions"][~rows["quaternions"].any(axis=1)] = (1, 0, 0, 0)
        notes = cut_notes(path) if rows["sh"].shape[1] > _MAX_COEFFICIENTS else ()
        rows["sh"] = np.ascontiguousarray(rows["sh"][:, :_MAX_COEFFICIENTS])
        tensors = {name: torch.from_numpy(values) for name, values in rows.items()}
        return Splats(**tensors, color=color, antialiased=antialiased, notes=notes)


def cut_notes(path: Path) -> tuple[str, ...]:
    """What is to be said of a file with more harmonics than are drawn."""
    return (f"{path}: its colours have harmonics beyond degree 3, which are left out.",)


def unit_quaternions(quaternions: np.ndarray) -> np.ndarray:
    """Quaternions (N 4, w first) of length 1 in float64; zeros become no rotation."""
    wide = quaternions.astype(np.float64)
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.where(length > 0, wide / np.where(length > 0, length, 1), (1, 0, 0, 0))


def sigmoid(values: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) without overflow."""
    return 0.5 + 0.5 * np.tanh(0.5 * values)


def logit(opacity: np.ndarray, margin: float) -> np.ndarray:
    """ln(o / (1 - o)), with o kept `margin` away from 0 and 1, where it is infinite."""
    inner = np.clip(opacity.astype(np.float64), margin, 1 - margin)
    return np.log(inner) - np.log1p(-inner)


def opacity_to_byte(logits: np.ndarray) -> np.ndarray:
    """The nearest of 256 opacities."""
    return np.rint(255 * sigmoid(logits)).astype(np.uint8)


def byte_to_logit(opacity: np.ndarray) -> np.ndarray:
    """The inverse; 0 and 255 become opacities within a quarter step of 0 and 1."""
    return logit(opacity / 255, margin=0.25 / 255)


def to_unorm(values: np.ndarray, bits: int) -> np.ndarray:
    """Values of 0 to 1 as the nearest unsigned integers of so many bits; others are clipped."""
    top = (1 << bits) - 1
    return np.clip(np.rint(values * top), 0, top).astype(np.uint32)


def from_unorm(packed: np.ndarray, shift: int, bits: int) -> np.ndarray:
    """The value of 0 to 1 in the `bits` that begin at bit `shift`."""
    top = (1 << bits) - 1
    return ((packed >> np.uint32(shift)) & np.uint32(top)).astype(np.float64) / top
