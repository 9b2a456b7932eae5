# SPDX-License-Identifier: Apache-2.0
"""A scene for splats that come without one: bounds from the splats, cameras in a ring around."""

import math
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.cameras import Cameras, Similarity, orbit
from diorama.data.scene import Frame, Scene, SceneBounds, vector
from diorama.errors import UserError
from diorama.splats import Splats

WIDTH, HEIGHT, VERTICAL_DEGREES = 800, 600, 50.0
NUM_CAMERAS, ELEVATION_DEGREES = 8, 15.0
TAIL = 0.02
"""Share of the opacity that may lie beyond either side of the box: floaters and far background."""
MARGIN = 1.05
CLOSENESS = 0.85
"""Relative to where the box's corners are in view for certain; they are rarely filled."""
UPS = {
    "x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0),
    "-x": (-1.0, 0.0, 0.0), "-y": (0.0, -1.0, 0.0), "-z": (0.0, 0.0, -1.0),
}  # fmt: skip
"""Axes that may point up. Files of the original system have y down."""


def scene_of_splats(splats: Splats, path: Path, up: str = "-y") -> Scene:
    """The scene in the file's own frame, seen by a ring of cameras that look at its middle."""
    if up not in UPS:
        raise UserError(f"--up {up}: there are {', '.join(UPS)}.")
    if len(splats) == 0:
        raise UserError(f"{path}: it holds no splats, so there is nothing to see.")
    weights = torch.sigmoid(splats.opacity_logits)
    lower, upper = weighted_box(splats.means, weights, TAIL)
    center, half = (lower + upper) / 2, (upper - lower) / 2 * MARGIN
    # One splat, or splats in a plane, still need a box with an inside.
    half = half.clamp(
        min=max(1e-3 * float(half.max()), float(splats.log_scales.median().exp()), 1e-6)
    )
    reach = float(half.norm())
    distance = CLOSENESS * reach / math.sin(math.radians(VERTICAL_DEGREES / 2))
    poses = orbit(center, distance, ELEVATION_DEGREES, NUM_CAMERAS, up=UPS[up], start_degrees=-90.0)
    return Scene(
        name=path.stem,
        format="splats",
        root=path.parent,
        frames=tuple(Frame(f"view {i}", Path(f"view {i}")) for i in range(NUM_CAMERAS)),
        cameras=Cameras.from_fov(poses, VERTICAL_DEGREES, WIDTH, HEIGHT),
        splits={"train": tuple(range(NUM_CAMERAS)), "val": (), "test": ()},
        scene_from_user=Similarity.identity(),
        bounds=SceneBounds(
            vector(center), float(half.max()), vector(center - half), vector(center + half),
            near=max(distance - 2 * reach, 0.02 * distance), far=distance + 2 * reach,
        ),
        has_files=False,
    )  # fmt: skip


def weighted_box(
    points: Float[Tensor, "N 3"], weights: Float[Tensor, " N"], tail: float
) -> tuple[Float[Tensor, "3"], Float[Tensor, "3"]]:
    """On each axis the values between which all but `tail` of the weight lies, on either side."""
    order = points.argsort(dim=0)
    total = weights.double()[order].cumsum(dim=0)
    total = total / total[-1].clamp(min=1e-300)
    limits = total.new_tensor([tail, 1 - tail]).expand(3, 2).contiguous()
    places = torch.searchsorted(total.T.contiguous(), limits).clamp(max=len(points) - 1)
    ordered = points.gather(0, order)
    lower, upper = ordered.gather(0, places.T)
    return lower, upper
