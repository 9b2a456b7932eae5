# SPDX-License-Identifier: Apache-2.0
"""PNG files of colours, alphas and depths, rounded to bytes and never cut off."""

import contextlib
import os
from pathlib import Path

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from diorama.errors import UserError

# Turbo, the rainbow with even lightness steps: Mikhailov's polynomial fit, lowest power first.
_TURBO = (
    (0.13572138, 4.61539260, -42.66032258, 132.13108234, -152.94239396, 59.28637943),
    (0.09140261, 2.19418839, 4.84296658, -14.18503333, 4.27729857, 2.82956604),
    (0.10667330, 12.64194608, -60.58204836, 110.36276771, -89.90310912, 27.34824973),
)


def to_bytes(values: Float[Tensor, "*shape"]) -> UInt8[Tensor, "*shape"]:
    """round(255 v) with v held within 0..1; what is not a number becomes 0."""
    return (values.detach().nan_to_num(0.0).clamp(0, 1) * 255).round().to(torch.uint8)


def color_map(values: Float[Tensor, "*shape"]) -> UInt8[Tensor, "*shape 3"]:
    """Turbo colours of values in 0..1: 0 is dark blue, 1 is dark red."""
    v = values.detach().nan_to_num(0.0).clamp(0, 1)
    powers = torch.stack([v**i for i in range(6)], dim=-1)
    return to_bytes(powers @ torch.tensor(_TURBO, dtype=v.dtype, device=v.device).T)


def depth_image(
    depth: Float[Tensor, "H W"],
    alpha: Float[Tensor, "H W"] | None = None,
    limits: tuple[float, float] | None = None,
) -> UInt8[Tensor, "H W 3"]:
    """Near red, far blue, white where nothing is; unset limits span the middle 98 % of depths."""
    is_known = torch.isfinite(depth) & (depth > 0)
    if alpha is not None:
        is_known &= alpha > 0.5
    if limits is None:
        limits = _depth_limits(depth[is_known])
    near, far = limits
    nearness = (far - depth) / max(far - near, 1e-12)
    # Half of the range at either end is cut: turbo is almost black there.
    colors = color_map(0.05 + 0.9 * nearness.clamp(0, 1))
    cover = is_known.to(colors.device)[..., None]
    return torch.where(cover, colors, torch.full_like(colors, 255))


def _depth_limits(depths: Float[Tensor, " N"]) -> tuple[float, float]:
    if depths.numel() == 0:
        return 0.0, 1.0
    ordered = depths.detach().float().flatten().sort().values
    last = len(ordered) - 1
    return float(ordered[round(0.01 * last)]), float(ordered[round(0.99 * last)])


def write_png(
    path: Path,
    image: UInt8[Tensor, "H W C"]
    | UInt8[Tensor, "H W"]
    | Float[Tensor, "H W C"]
    | Float[Tensor, "H W"],
) -> None:
    """Write grey, RGB or RGBA from bytes or from floats in 0..1; all of the file or none."""
    from PIL import Image

    if image.ndim == 3 and image.shape[2] not in (3, 4):
        raise ValueError(f"image must have 3 or 4 channels or none, got {tuple(image.shape)}")
    pixels = image if image.dtype == torch.uint8 else to_bytes(image)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.cpu().contiguous().numpy()).save(partial, format="PNG")
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise UserError(f"{path}: the image cannot be written ({error.strerror}).") from error
