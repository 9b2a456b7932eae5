# SPDX-License-Identifier: Apache-2.0
"""Normalised device coordinates for forward-facing scenes (NeRF, appendix C).

A ray that starts at the plane z = -near and goes to infinity becomes one that runs from -1 to 1 in
z while its parameter runs from 0 to 1. View directions must be taken before the transform.
"""

from jaxtyping import Float
from torch import Tensor, stack

from diorama.cameras.number import Number


def ndc_rays(
    origins: Float[Tensor, "R 3"],
    directions: Float[Tensor, "R 3"],
    fx: Number,
    fy: Number,
    width: int,
    height: int,
    near: Number = 1.0,
) -> tuple[Float[Tensor, "R 3"], Float[Tensor, "R 3"]]:
    """NDC origins and directions of rays in an OpenGL world (the average camera looks along -z).

    With the origin moved to z = -near along its ray,

        o' = (-2 fx/W  ox/oz,            -2 fy/H  oy/oz,            1 + 2 near/oz)
        d' = (-2 fx/W (dx/dz - ox/oz),   -2 fy/H (dy/dz - oy/oz),   -2 near/oz)

    The result does not depend on the length of `directions`, and d' is not a unit vector. Rays
    that do not point towards -z never cross the near plane and give meaningless numbers.
    """
    origins = origins + (-(near + origins[:, 2]) / directions[:, 2]).unsqueeze(-1) * directions
    ox, oy, oz = origins.unbind(-1)
    dx, dy, dz = directions.unbind(-1)
    scale_x, scale_y = -2 * fx / width, -2 * fy / height
    ndc_origins = stack([scale_x * ox / oz, scale_y * oy / oz, 1 + 2 * near / oz], dim=-1)
    ndc_directions = stack(
        [scale_x * (dx / dz - ox / oz), scale_y * (dy / dz - oy / oz), -2 * near / oz], dim=-1
    )
    return ndc_origins, ndc_directions


def ndc_rays_opencv(
    origins: Float[Tensor, "R 3"],
    directions: Float[Tensor, "R 3"],
    fx: Number,
    fy: Number,
    width: int,
    height: int,
    near: Number = 1.0,
) -> tuple[Float[Tensor, "R 3"], Float[Tensor, "R 3"]]:
    """`ndc_rays` for our recentred world, where the average camera looks along +z with y down.

    That is the world after `recentre` or the inverse of `average_pose`. The result has NDC's own
    axes (x right, y up, z away from the camera).
    """
    flip = origins.new_tensor([1.0, -1.0, -1.0])
    return ndc_rays(origins * flip, directions * flip, fx, fy, width, height, near)


def distance_from_ndc(
    t: Float[Tensor, "R S"],
    origins: Float[Tensor, "R 3"],
    directions: Float[Tensor, "R 3"],
    near: Number = 1.0,
) -> Float[Tensor, "R S"]:
    """Distance along unit OpenCV-world rays at the NDC parameter t in [0, 1); infinite at 1.

    The NDC point o' + t d' lies at the world depth near / (1 - t) beyond z = 0.
    """
    depth = near / (1 - t)
    return (depth - origins[:, 2:]) / directions[:, 2:]
