# SPDX-License-Identifier: Apache-2.0
"""Views of trained Gaussians, through any lens."""

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.cameras import Cameras
from diorama.cameras.straight import is_straight
from diorama.cameras.warp import covering_camera, warped
from diorama.methods.splat.config import SplatConfig
from diorama.methods.splat.drawing import Style, draw
from diorama.methods.splat.gaussians import Gaussians
from diorama.model import RenderOutput


@torch.no_grad()
def render_image(
    gaussians: Gaussians, config: SplatConfig, background: Float[Tensor, "3"], camera: Cameras
) -> RenderOutput:
    """rgb, expected depth, alpha and world normals; `median_depth` and `count` as extras.

    A distorted lens sees a drawing through an ideal one, resampled.
    """
    straight = camera if is_straight(camera) else covering_camera(camera)
    style = Style(background, config.sh_degree, has_normals=True)
    drawn = draw(gaussians, straight, config, style)
    assert drawn.depth is not None and drawn.normal is not None, "both were asked for"
    median = drawn.raster.median_splat
    depths = drawn.z_depths
    images = {
        "rgb": drawn.rgb,
        "depth": drawn.depth,
        "alpha": drawn.alpha,
        "normal": _unit(drawn.normal),
        "median_depth": torch.where(median >= 0, depths[median.clamp(min=0).long()], 0.0),
        "count": drawn.raster.count.float(),
    }
    if straight is not camera:
        images = {name: warped(image, straight, camera) for name, image in images.items()}
    return RenderOutput(
        rgb=images.pop("rgb"), depth=images.pop("depth"), alpha=images.pop("alpha"),
        normal=images.pop("normal"), extras=images,
    )  # fmt: skip


def _unit(vectors: Float[Tensor, "H W 3"]) -> Float[Tensor, "H W 3"]:
    return torch.nn.functional.normalize(vectors, dim=-1)
