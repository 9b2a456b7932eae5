# SPDX-License-Identifier: Apache-2.0
"""antimatter15's .splat: 32 bytes a splat and no header; one colour seen from everywhere."""

from pathlib import Path

import numpy as np

from diorama.errors import UserError
from diorama.splats.arrays import SplatArrays, byte_to_logit, opacity_to_byte, unit_quaternions
from diorama.splats.sh_basis import SH_DC
from diorama.splats.splats import Splats

_ROW = np.dtype(
    [("position", "<f4", 3), ("scale", "<f4", 3), ("rgba", "u1", 4), ("rotation", "u1", 4)]
)


def decode_splat(raw: bytes, path: Path) -> Splats:
    """Splats of degree 0. Nothing in the file says what it is, so sizes must at least be sizes."""
    if len(raw) % _ROW.itemsize:
        raise UserError(
            f"{path}: {len(raw)} bytes are no multiple of the {_ROW.itemsize} that a .splat has"
            " for each splat; the file is cut off or not a .splat."
        )
    table = np.frombuffer(raw, _ROW)
    scales = table["scale"].astype(np.float64)
    if not (np.isfinite(scales).all() and (scales >= 0).all()):
        raise UserError(
            f"{path}: holds sizes that are negative or not finite; is it another format by this"
            " name?"
        )
    with np.errstate(divide="ignore"):
        log_scales = np.log(scales)
    arrays = SplatArrays(
        means=table["position"],
        quaternions=(table["rotation"].astype(np.float64) - 128) / 128,
        log_scales=log_scales,
        opacity_logits=byte_to_logit(table["rgba"][:, 3]),
        sh=((table["rgba"][:, None, :3] / 255) - 0.5) / SH_DC,
    )
    return arrays.to_splats(path)


def encode_splat(splats: Splats) -> bytes:
    """The biggest and most opaque splats first, because viewers draw while they download."""
    arrays = SplatArrays.of(splats)
    # ln(volume * opacity), up to a constant.
    weight = arrays.log_scales.sum(axis=1) - np.logaddexp(0, -arrays.opacity_logits)
    order = np.argsort(-weight, kind="stable")
    quaternions = unit_quaternions(arrays.quaternions)
    table = np.zeros(len(order), _ROW)
    table["position"] = arrays.means[order]
    table["scale"] = np.exp(arrays.log_scales[order])
    table["rgba"][:, :3] = np.clip(np.rint((0.5 + SH_DC * arrays.sh[order, 0]) * 255), 0, 255)
    table["rgba"][:, 3] = opacity_to_byte(arrays.opacity_logits[order])
    table["rotation"] = np.clip(np.rint(quaternions[order] * 128 + 128), 0, 255)
    return table.tobytes()
