# SPDX-License-Identifier: Apache-2.0
"""Exact signed distances of simple solids, each centred on its own origin with z up.

All functions map N points to N distances, negative inside, with a gradient of length one almost
everywhere. Square roots are clamped away from zero so that autograd gives 0 there, never NaN.
"""

import torch
from jaxtyping import Float
from torch import Tensor

Points = Float[Tensor, "N 3"]
Distances = Float[Tensor, " N"]


def hypot2(a: Distances, b: Distances) -> Distances:
    """sqrt(a^2 + b^2) with gradient 0 at the origin."""
    return (a * a + b * b).clamp_min(1e-14).sqrt()


def hypot3(a: Distances, b: Distances, c: Distances) -> Distances:
    """sqrt(a^2 + b^2 + c^2) with gradient 0 at the origin."""
    return (a * a + b * b + c * c).clamp_min(1e-14).sqrt()


def corner(u: Distances, v: Distances) -> Distances:
    """Distance to the quadrant u <= 0, v <= 0: how two orthogonal bounds meet."""
    return hypot2(u.clamp_min(0), v.clamp_min(0)) + torch.maximum(u, v).clamp_max(0)


def sphere(points: Points, radius: float) -> Distances:
    """Ball of the given radius."""
    x, y, z = points.unbind(-1)
    return hypot3(x, y, z) - radius


def box(points: Points, half: tuple[float, float, float], rounding: float = 0.0) -> Distances:
    """Box of half sizes ``half`` (outer, rounding included) with edges of radius ``rounding``."""
    x, y, z = points.unbind(-1)
    u = x.abs() - (half[0] - rounding)
    v = y.abs() - (half[1] - rounding)
    w = z.abs() - (half[2] - rounding)
    outside = hypot3(u.clamp_min(0), v.clamp_min(0), w.clamp_min(0))
    return outside + torch.maximum(torch.maximum(u, v), w).clamp_max(0) - rounding


def cylinder(points: Points, radius: float, half: float, rounding: float = 0.0) -> Distances:
    """Upright cylinder from -half to +half with rounded rims."""
    x, y, z = points.unbind(-1)
    return corner(hypot2(x, y) - (radius - rounding), z.abs() - (half - rounding)) - rounding


def torus(points: Points, major: float, minor: float) -> Distances:
    """Ring lying in the xy plane."""
    x, y, z = points.unbind(-1)
    return hypot2(hypot2(x, y) - major, z) - minor


def cone(
    points: Points, bottom: float, top: float, half: float, rounding: float = 0.0
) -> Distances:
    """Upright truncated cone: radius ``bottom`` at -half, ``top`` at +half, then rounded outwards.

    The nearest point is on a cap or on the slanted side; the sign is negative when both say inside
    (I. Quilez, capped cone).
    """
    x, y, z = points.unbind(-1)
    r = hypot2(x, y)
    cap_radius = torch.where(z < 0, bottom, top)
    cap_r = r - torch.minimum(r, cap_radius)
    cap_z = z.abs() - half
    slope_r, slope_z = top - bottom, 2.0 * half
    along = ((top - r) * slope_r + (half - z) * slope_z) / (slope_r**2 + slope_z**2)
    along = along.clamp(0, 1)
    side_r = r - top + slope_r * along
    side_z = z - half + slope_z * along
    is_inside = (side_r < 0) & (cap_z < 0)
    squared = torch.minimum(cap_r**2 + cap_z**2, side_r**2 + side_z**2)
    distance = squared.clamp_min(1e-14).sqrt()
    return torch.where(is_inside, -distance, distance) - rounding


def dome(points: Points, radius: float, height: float) -> Distances:
    """The part of a ball above z = height (I. Quilez, cut sphere)."""
    x, y, z = points.unbind(-1)
    rim = (radius * radius - height * height) ** 0.5
    r = hypot2(x, y)
    side = torch.maximum(
        (height - radius) * r * r + rim * rim * (height + radius - 2.0 * z), height * r - rim * z
    )
    ball = hypot2(r, z) - radius
    return torch.where(
        side < 0, ball, torch.where(r < rim, height - z, hypot2(r - rim, z - height))
    )


def horseshoe(
    points: Points, radius: float, leg: float, half_width: float, half_depth: float, rounding: float
) -> Distances:
    """Arch in the xz plane: a half ring of mean ``radius`` above z = 0, legs down to z = -leg.

    The cross section is 2 half_width by 2 half_depth. Exact because a point's nearest cross section
    is the one at its own angle (above) or height (legs).
    """
    x, y, z = points.unbind(-1)
    x = x.abs()
    across_ring = (hypot2(x, z) - radius).abs() - (half_width - rounding)
    across_leg = (x - radius).abs() - (half_width - rounding)
    across = torch.where(z > 0, across_ring, across_leg)
    depth = y.abs() - (half_depth - rounding)
    below = -z - (leg - rounding)
    outside = hypot3(across.clamp_min(0), depth.clamp_min(0), below.clamp_min(0))
    inside = torch.maximum(torch.maximum(across, depth), below).clamp_max(0)
    return outside + inside - rounding


def gable(
    points: Points, half_width: float, height: float, half_depth: float, rounding: float
) -> Distances:
    """Roof prism along y: isosceles triangle, base at z = 0, apex at height, rounded outwards."""
    x, y, z = points.unbind(-1)
    x = x.abs()
    base = hypot2((x - half_width).clamp_min(0), z)
    along = (x * half_width + (height - z) * height) / (half_width**2 + height**2)
    along = along.clamp(0, 1)
    side_x = x - half_width * along
    side_z = z - height + height * along
    edge = torch.minimum(base, hypot2(side_x, side_z))
    is_inside = (z > 0) & (z * half_width + x * height < height * half_width)
    section = torch.where(is_inside, -edge, edge)
    return corner(section, y.abs() - half_depth) - rounding
