# SPDX-License-Identifier: Apache-2.0
"""Patches of views that nobody photographed, in which surfaces are asked to be plain.

Photographs say little of plain walls and tables and of what few of them show; a field puts fog and
holes there, which the photographs do not mind and new views do. So patches are looked at from
places around the cameras (compare RegNeRF, Niemeyer et al., CVPR 2022). In a pinhole
image the inverse depth of a plane is a linear function of the pixel, however it is inclined:

    L = mean |d_{i-1} - 2 d_i + d_{i+1}|   along rows and columns,   d = unit * sum_k w_k / z_k

is zero for planes, and, growing with the first power only, allows edges.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from diorama.cameras import Cameras, Rays
from diorama.data.scene import Scene
from diorama.methods.nerfacto.losses import inverse_depth, soft_length
from diorama.methods.nerfacto.samples import RaySamples
from diorama.nn.pose_refinement import rotation_matrices

SIDE = 8
"""Rays along each side of a patch."""
STRIDE = 4.0
"""Pixels of the photograph between neighbouring rays."""
WANDER = 0.2
"""Standard deviation of places from their camera, relative to the cameras' mean distance from
their centre."""
TURN = 0.25
"""Standard deviation of directions from their camera's, in radians about each axis."""
SOFTNESS = 1e-3
"""Differences below this are squared: they need not become zero."""
PIXEL_OF_RADIUS = 3.0**0.5
"""The distance of neighbouring pixels, in cone radii (`Rays.radii`)."""


class NewViews(nn.Module):
    """Places and directions around the training cameras."""

    frames: Tensor

    def __init__(self, scene: Scene):
        super().__init__()
        self.cameras: Cameras = scene.cameras
        train = torch.tensor(scene.splits["train"], dtype=torch.int64)
        centers = scene.cameras.world_from_camera[train, :, 3]
        self.wander = WANDER * float((centers - centers.mean(dim=0)).norm(dim=1).mean())
        self.register_buffer("frames", train, persistent=False)

    def draw(self, count: int, generator: torch.Generator) -> Rays:
        """Patches of SIDE x SIDE rays, row by row, one patch after the other.

        Each patch is a small pinhole image of its own, whose depth is measured along the patch's
        middle; so it does not matter what lens the camera has.
        """
        device = self.frames.device
        normal = torch.randn(count, 2, 3, generator=generator, device=device)
        chosen = torch.randint(len(self.frames), (count,), generator=generator, device=device)
        frame = self.frames[chosen].cpu()
        place = torch.rand(count, 2, generator=generator, device=device).cpu()
        middle = self.cameras.rays(frame, place * self.cameras.size[frame]).to(device)

        forward = (rotation_matrices(TURN * normal[:, 0]) @ middle.directions[:, :, None])[:, :, 0]
        right, down = _across(forward)
        pixel = PIXEL_OF_RADIUS * middle.radii
        steps = STRIDE * (torch.arange(SIDE, device=device) - 0.5 * (SIDE - 1)) * pixel[:, None]
        directions = (
            forward[:, None, None]
            + steps[:, :, None, None] * down[:, None, None]
            + steps[:, None, :, None] * right[:, None, None]
        ).flatten(0, 2)
        length = directions.norm(dim=1)
        origins = middle.origins + self.wander * normal[:, 1]
        per_ray = SIDE * SIDE
        return Rays(
            origins.repeat_interleave(per_ray, dim=0),
            directions / length[:, None],
            1.0 / length,
            middle.radii.repeat_interleave(per_ray),
            middle.camera_index.repeat_interleave(per_ray),
        )


def plainness_loss(
    rays: Rays, samples: RaySamples, weights: Float[Tensor, "R S"], unit: float
) -> Float[Tensor, ""]:
    """The module's formula for the rays of `NewViews.draw`; `unit` is the scene's length."""
    inverse = inverse_depth(rays, samples, weights, unit).view(-1, SIDE, SIDE)
    bends = torch.stack((inverse.diff(n=2, dim=1)[:, :, 1:-1], inverse.diff(n=2, dim=2)[:, 1:-1]))
    return soft_length(bends, SOFTNESS).mean()


def _across(forward: Float[Tensor, "K 3"]) -> tuple[Float[Tensor, "K 3"], Float[Tensor, "K 3"]]:
    """Two unit vectors across each direction and each other."""
    axis = torch.nn.functional.one_hot(forward.abs().argmin(dim=1), 3).to(forward)
    right = torch.linalg.cross(axis, forward)
    right = right / right.norm(dim=1, keepdim=True)
    return right, torch.linalg.cross(forward, right)
