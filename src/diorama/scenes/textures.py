# SPDX-License-Identifier: Apache-2.0
"""Procedural colour: palette, value noise and the patterns that materials are made of."""

import math
from functools import lru_cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

Points = Float[Tensor, "N 3"]
Values = Float[Tensor, " N"]
Colors = Float[Tensor, "N 3"]

_TABLE_SIDE = 32


def srgb(code: str) -> tuple[float, float, float]:
    """Linear-light albedo of a colour written as in a web page, "d9704f"."""
    channels = (int(code[i : i + 2], 16) / 255 for i in (0, 2, 4))
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return r, g, b


def plain(points: Points, color: tuple[float, float, float]) -> Colors:
    """The same colour everywhere."""
    return points.new_tensor(color).expand(len(points), 3)


def mix(a: Colors, b: Colors, weight: Values) -> Colors:
    """a where the weight is 0, b where it is 1."""
    return a + (b - a) * weight[:, None]


def smoothstep(low: float, high: float, x: Values) -> Values:
    """0 below ``low``, 1 above ``high``, smooth between; low > high gives the falling step."""
    t = ((x - low) / (high - low)).clamp(0, 1)
    return t * t * (3 - 2 * t)


def lattice_hash(a: Int[Tensor, " N"], b: Int[Tensor, " N"], seed: int = 0) -> Values:
    """A number in [0, 1) for each cell of an integer lattice; the same on every machine."""
    h = (a * 374761393 + b * 668265263 + seed * 2147483647) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 1274126177) & 0xFFFFFFFF
    h = ((h ^ (h >> 16)) * 2246822519) & 0xFFFFFFFF
    return ((h ^ (h >> 15)) & 0xFFFFFF).float() / float(1 << 24)


@lru_cache(maxsize=1)
def _noise_table() -> Float[Tensor, " T"]:
    cell = torch.arange(_TABLE_SIDE**3)
    return lattice_hash(cell, cell * 7 + 3, seed=11)


def noise(points: Points, frequency: float) -> Values:
    """Smooth value noise in [0, 1]; features of size 1 / frequency, periodic after 32 of them."""
    table = _noise_table().to(points)
    scaled = points * frequency + 100.37
    floor = scaled.floor()
    cell = floor.long() % _TABLE_SIDE
    following = (cell + 1) % _TABLE_SIDE
    f = scaled - floor
    wx, wy, wz = (f * f * (3 - 2 * f)).unbind(-1)
    x0, y0, z0 = cell.unbind(-1)
    x1, y1, z1 = following.unbind(-1)

    def row(y: Int[Tensor, " N"], z: Int[Tensor, " N"]) -> Values:
        base = (z * _TABLE_SIDE + y) * _TABLE_SIDE
        return torch.lerp(table[base + x0], table[base + x1], wx)

    near = torch.lerp(row(y0, z0), row(y1, z0), wy)
    far = torch.lerp(row(y0, z1), row(y1, z1), wy)
    return torch.lerp(near, far, wz)


def fractal(points: Points, frequency: float, octaves: int = 3) -> Values:
    """Sum of octaves of noise, each twice as fine and half as strong, scaled to [0, 1]."""
    total = sum(noise(points, frequency * 2**k) * 0.5**k for k in range(octaves))
    assert isinstance(total, Tensor)
    return total / (2 - 0.5 ** (octaves - 1))


def mottled(points: Points, dark: str, light: str, frequency: float, octaves: int = 3) -> Colors:
    """Two colours mixed by fractal noise with its contrast stretched."""
    weight = smoothstep(0.3, 0.7, fractal(points, frequency, octaves))
    return mix(plain(points, srgb(dark)), plain(points, srgb(light)), weight)


def wood(points: Points, dark: str, light: str, rings: float, axis: int = 2) -> Colors:
    """Growth rings around ``axis``, wobbling with noise, and fine fibres along it."""
    u, v = (points[:, k] for k in range(3) if k != axis)
    stretch = torch.ones(3, dtype=points.dtype)
    stretch[axis] = 0.2
    wobble = fractal(points * stretch, 2.2, 2)
    radius = ((u - 0.13) ** 2 + (v + 0.21) ** 2).sqrt() + 0.16 * wobble
    phase = (radius * rings) % 1.0
    band = smoothstep(0.0, 0.75, phase) * smoothstep(1.0, 0.85, phase)
    fibre = noise(points * (stretch * stretch), 45.0)
    weight = (0.85 - 0.6 * band + 0.3 * (fibre - 0.5)).clamp(0, 1)
    return mix(plain(points, srgb(dark)), plain(points, srgb(light)), weight)


def marble(points: Points, vein: str, ground: str) -> Colors:
    """Thin turbulent veins over a pale ground."""
    warp = fractal(points, 5.0, 4)
    wave = torch.sin((points[:, 0] + points[:, 1] * 0.6 + points[:, 2] * 1.3) * 14 + warp * 17)
    weight = (1 - wave.abs()).clamp(0, 1) ** 2.2 * 0.9 + 0.25 * (warp - 0.4).clamp_min(0)
    return mix(plain(points, srgb(ground)), plain(points, srgb(vein)), weight.clamp(0, 1))


def masonry(
    along: Values, up: Values, width: float, height: float, seed: int, around: int = 0
) -> tuple[Values, Values]:
    """Running-bond bricks: a random number per brick, and 1 on the mortar between them.

    ``around`` bricks close a circle; 0 for a straight wall.
    """
    course = torch.floor(up / height)
    shifted = along / width + 0.5 * (course % 2)
    brick = torch.floor(shifted)
    index = brick.long() % around if around else brick.long()
    tone = lattice_hash(index, course.long(), seed).to(along)
    edge_u = (0.5 - (shifted - brick - 0.5).abs()) * width
    edge_v = (0.5 - (up / height - course - 0.5).abs()) * height
    mortar = smoothstep(0.012, 0.004, torch.minimum(edge_u, edge_v))
    return tone, mortar


def azimuth(points: Points) -> Values:
    """Angle around z as a fraction of a turn, in [0, 1)."""
    return (torch.atan2(points[:, 1], points[:, 0]) / (2 * math.pi)) % 1.0
