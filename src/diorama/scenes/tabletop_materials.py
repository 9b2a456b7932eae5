# SPDX-License-Identifier: Apache-2.0
"""Materials of the tabletop, one function per thing, from points of its frame to linear albedo."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.scenes.textures import (
    azimuth,
    fractal,
    lattice_hash,
    marble,
    masonry,
    mix,
    mottled,
    noise,
    plain,
    smoothstep,
    srgb,
    wood,
)

Points = Float[Tensor, "N 3"]
Colors = Float[Tensor, "N 3"]

PALETTE = {
    "coral": "e5644e",
    "mustard": "eeb23f",
    "teal": "2f9390",
    "navy": "2f456f",
    "cream": "f6ead2",
    "rose": "f2a3ad",
    "leaf": "7fa653",
}


RAINBOW_RADII = (0.335, 0.265, 0.195, 0.125)
FIR_TIERS = ((0.17, 0.09, 0.2), (0.14, 0.08, 0.335), (0.10, 0.075, 0.46))
"""Lower radius, half height and centre height of each tier, bottom up."""


MUSHROOMS = ((0.0, 0.0, 1.0), (-0.18, -0.04, 0.68), (0.13, 0.08, 0.5))
"""Place on the lawn and size of each."""


def named(points: Points, name: str) -> Colors:
    """A colour of the palette."""
    return plain(points, srgb(PALETTE[name]))


def plinth(p: Points) -> Colors:
    """Turned walnut."""
    return wood(p, "7a4a2a", "b87b48", 11.0, axis=0)


def foot(p: Points) -> Colors:
    """Darker wood below."""
    return wood(p, "4d2f1f", "6b4329", 9.0, axis=0)


def lawn(p: Points) -> Colors:
    """Mown grass with small flowers and a sandy path that winds from the door to the rim."""
    grass = mottled(p, "7f9f52", "a9c06c", 5.0)
    blades = noise(p, 42.0)
    grass = grass * (0.84 + 0.32 * blades)[:, None]
    grass = _flowers(p, grass)
    x, y = p[:, 0], p[:, 1]
    # The path leaves the door towards the light and bends to the front rim.
    along = (-y - 0.02).clamp(0, 1.2)
    center = -0.43 + 0.10 * torch.sin(along * 4.2) + 0.42 * along * along
    wobble = 0.05 * (fractal(p, 9.0, 2) - 0.5)
    offset = (x - center).abs() + wobble
    inside = smoothstep(0.088, 0.075, offset) * smoothstep(0.12, 0.04, y)
    tone = (0.9 + 0.25 * (noise(p, 30.0) - 0.5) + 0.1 * (noise(p, 60.0) - 0.5))[:, None]
    path = plain(p, srgb("e4cda0")) * tone
    rim = smoothstep(0.086, 0.078, (offset - 0.088).abs() * 4 + 0.05) * smoothstep(0.12, 0.04, y)
    edged = mix(grass, plain(p, srgb("b5975f")), 0.35 * rim)
    return mix(edged, path, inside)


def _flowers(p: Points, grass: Colors) -> Colors:
    size = 0.085
    cell_x, cell_y = torch.floor(p[:, 0] / size), torch.floor(p[:, 1] / size)
    a, b = cell_x.long(), cell_y.long()
    u = p[:, 0] / size - cell_x - 0.25 - 0.5 * lattice_hash(a, b, 1)
    v = p[:, 1] / size - cell_y - 0.25 - 0.5 * lattice_hash(a, b, 2)
    radius = (u * u + v * v).sqrt()
    petal = 0.19 + 0.045 * torch.cos(5 * torch.atan2(v, u))
    is_there = (lattice_hash(a, b, 3) < 0.33).to(p) * (p[:, :2].norm(dim=-1) < 0.97)
    kind = lattice_hash(a, b, 4)[:, None]
    petals = torch.where(kind < 0.6, plain(p, srgb("fff8ea")), plain(p, srgb("f4a9b4")))
    grass = mix(grass, petals, is_there * smoothstep(0.03, -0.03, radius - petal))
    return mix(grass, named(p, "mustard"), is_there * smoothstep(0.10, 0.06, radius))


def walls(p: Points) -> Colors:
    """Cream plaster, timber frame, windows on the long sides, a round-topped door in front."""
    x, y, z = p.unbind(-1)
    color = plain(p, srgb("f4e4c6")) * (0.9 + 0.2 * fractal(p, 14.0, 2))[:, None]
    is_end = y.abs() > 0.284
    along = torch.where(is_end, x, y)
    half = torch.where(is_end, 0.23, 0.29)
    beam = torch.maximum(
        smoothstep(0.040, 0.036, half - along.abs()), smoothstep(0.030, 0.026, 0.2 - z.abs())
    )
    color = mix(color, _timber(p), beam)
    # Long sides: two windows each. Ends: a door in front (-y), a window behind.
    side_u = y.abs() - 0.13
    color = _window(p, color, side_u, z - 0.0, (~is_end).to(p))
    color = _window(p, color, x, z - 0.0, (is_end & (y > 0)).to(p))
    return _door(p, color, x, z, (is_end & (y < 0)).to(p))


def _timber(p: Points) -> Colors:
    return plain(p, srgb("6d442c")) * (0.8 + 0.4 * noise(p, 30.0))[:, None]


def _window(p: Points, color: Colors, u: Tensor, v: Tensor, where: Tensor) -> Colors:
    extent = torch.maximum(u.abs() / 0.062, v.abs() / 0.075)
    frame = where * smoothstep(1.0, 0.95, extent)
    glass = smoothstep(0.78, 0.72, extent) * smoothstep(0.006, 0.009, u.abs())
    glass = where * glass * smoothstep(0.006, 0.009, v.abs())
    color = mix(color, plain(p, srgb("fdf6e6")), frame)
    gleam = smoothstep(-0.05, 0.06, u + v)[:, None]
    pane = plain(p, srgb("3a5f86")) * (1 - gleam) + plain(p, srgb("8fc0d4")) * gleam
    return mix(color, pane, glass)


def _door(p: Points, color: Colors, u: Tensor, z: Tensor, where: Tensor) -> Colors:
    head = (u * u + (z - 0.02).clamp_min(0) ** 2).sqrt()
    surround = where * smoothstep(0.098, 0.093, head)
    leaf = where * smoothstep(0.078, 0.074, head)
    plank = smoothstep(0.004, 0.002, ((u / 0.039 + 0.5) % 1.0 - 0.5).abs() * 0.039)
    knob = where * smoothstep(0.013, 0.010, ((u - 0.045) ** 2 + (z + 0.07) ** 2).sqrt())
    color = mix(color, plain(p, srgb("fdf6e6")), surround)
    paint = named(p, "teal") * (1 - 0.4 * plank)[:, None]
    return mix(mix(color, paint, leaf), plain(p, srgb("f2c14e")), knob)


def gable(p: Points) -> Colors:
    """The triangle under the roof: plaster, a king post and a round window."""
    x, z = p[:, 0], p[:, 2]
    color = plain(p, srgb("f4e4c6")) * (0.9 + 0.2 * fractal(p, 14.0, 2))[:, None]
    post = smoothstep(0.020, 0.017, x.abs())
    color = mix(color, _timber(p), torch.maximum(post, smoothstep(0.022, 0.018, z)))
    radius = (x * x + (z - 0.085) ** 2).sqrt()
    color = mix(color, plain(p, srgb("fdf6e6")), smoothstep(0.056, 0.052, radius))
    return mix(color, plain(p, srgb("4d7ea3")), smoothstep(0.040, 0.036, radius))


def _scallops(
    p: Points,
    along: Tensor,
    down: Tensor,
    width: float,
    tones: tuple[str, str, str],
    around: int = 0,
) -> Colors:
    """Rounded tiles in shifted rows; ``down`` grows towards the eaves.

    ``around`` tiles close a circle; 0 for a flat roof.
    """
    height = width * 0.8
    row = torch.floor(down / height)
    shifted = along / width + 0.5 * (row % 2)
    tile = torch.floor(shifted)
    u = shifted - tile - 0.5
    v = down / height - row
    # Below its own round end a tile shows the next row's tile.
    is_below = v > 0.55 + 0.45 * (1 - (2 * u) ** 2).clamp_min(0).sqrt()
    next_shift = along / width + 0.5 * ((row + 1) % 2)
    row = torch.where(is_below, row + 1, row)
    tile = torch.where(is_below, torch.floor(next_shift), tile)
    tile = tile.long() % around if around else tile.long()
    tone = lattice_hash(tile, row.long(), 5).to(p)
    color = mix(plain(p, srgb(tones[0])), plain(p, srgb(tones[1])), tone)
    edge = (v - (0.55 + 0.45 * (1 - (2 * u) ** 2).clamp_min(0).sqrt())).abs()
    return mix(color, plain(p, srgb(tones[2])), 0.75 * smoothstep(0.14, 0.04, edge))


def roof(p: Points) -> Colors:
    """Terracotta tiles; the cut edges are timber."""
    x, y, z = p.unbind(-1)
    c = 0.5**0.5
    down, above = (x.abs() - z) * c, (x.abs() + z) * c
    tiles = _scallops(p, y, down + 0.03, 0.078, ("d0583b", "ee8a5e", "96371f"))
    is_cut = (above < 0.012).to(p)
    return mix(tiles, _timber(p), is_cut)


def chimney(p: Points) -> Colors:
    """Red brick."""
    along = torch.where(p[:, 0].abs() > 0.044, p[:, 1], p[:, 0])
    tone, mortar = masonry(along + 0.2, p[:, 2], 0.05, 0.028, 6)
    brick = mix(plain(p, srgb("a94a35")), plain(p, srgb("cf7455")), tone)
    return mix(brick, plain(p, srgb("e2d3bd")), mortar)


def stone_plain(p: Points) -> Colors:
    """Dressed limestone."""
    return mottled(p, "b9ad98", "ddd3c0", 16.0)


def tower(p: Points) -> Colors:
    """Round masonry with arrow-slit windows and a band of ivy-green lichen below."""
    turn = azimuth(p)
    tone, mortar = masonry(turn * 14 * 0.0673, p[:, 2] + 1.0, 0.0673, 0.05, 8, around=14)
    stone = mix(plain(p, srgb("a59c8d")), plain(p, srgb("d9cfbd")), tone)
    stone = stone * (0.88 + 0.24 * noise(p, 28.0))[:, None]
    stone = mix(stone, plain(p, srgb("8a8173")), mortar)
    lichen = smoothstep(0.5, 0.75, fractal(p, 7.0, 3) + 0.5 * (-0.12 - p[:, 2]))
    stone = mix(stone, plain(p, srgb("7d9455")), 0.7 * lichen)
    around = (((turn * 4) % 1.0) - 0.5) / 4 * 2 * math.pi * 0.15
    slit = (around * around + ((p[:, 2] - 0.20).abs() - 0.035).clamp_min(0) ** 2).sqrt()
    stone = mix(stone, plain(p, srgb("f3e7cf")), smoothstep(0.040, 0.036, slit))
    return mix(stone, plain(p, srgb("33506f")), smoothstep(0.025, 0.021, slit))


def tower_roof(p: Points) -> Colors:
    """Slate-blue scallops, wrapped around the cone in a whole number of tiles per row."""
    along = azimuth(p) * 14 * 0.07
    return _scallops(p, along, 0.5 - p[:, 2] * 1.25, 0.07, ("2c5f7c", "5b9ab0", "1d3c55"), 14)


def gold(p: Points) -> Colors:
    """Gilded."""
    return plain(p, srgb("f0bd45"))


def rainbow(p: Points) -> Colors:
    """Four painted arches; the grain shows through the paint."""
    x, z = p[:, 0], p[:, 2]
    radius = torch.where(z > 0, (x * x + z * z).sqrt(), x.abs())
    band = ((0.37 - radius) / 0.07).clamp(0, 3).long()
    names = ("coral", "mustard", "teal", "navy")
    paints = torch.stack([srgb_tensor(p, name) for name in names])
    grain = wood(p, "c4c4c4", "ffffff", 14.0, axis=1)
    return paints[band] * grain


def bark(p: Points) -> Colors:
    """Vertical furrows."""
    return mottled(p * p.new_tensor([3.0, 3.0, 0.6]), "5a3a28", "8f6443", 14.0, 2)


def blossom(p: Points) -> Colors:
    """A cloud of petals."""
    color = mottled(p, "e0768f", "fbc6cb", 13.0, 3)
    sparkle = smoothstep(0.70, 0.8, noise(p, 34.0))
    return mix(color, plain(p, srgb("fff1ec")), 0.8 * sparkle)


def fir(p: Points) -> Colors:
    """Needles, lighter towards each tier's lower rim."""
    color = mottled(p, "2f6048", "4f8a5c", 16.0, 3)
    z = p[:, 2]
    rim = torch.zeros_like(z)
    for _, half, height in FIR_TIERS:
        above_rim = (z - height) / half + 1
        rim = torch.where(above_rim > -0.2, smoothstep(1.35, 0.0, above_rim), rim)
    needles = 0.75 + 0.25 * torch.cos(azimuth(p) * 2 * math.pi * 18)
    return mix(color, plain(p, srgb("a8c97f")), 0.65 * rim * needles)


def ball(p: Points) -> Colors:
    """Six gores in three colours with cream between, and caps."""
    turn = azimuth(p) * 6
    sector = torch.floor(turn).long() % 3
    choices = torch.stack(
        [srgb_tensor(p, "coral"), srgb_tensor(p, "mustard"), srgb_tensor(p, "teal")]
    )
    width = (turn % 1.0 - 0.5).abs()
    color = mix(named(p, "cream"), choices[sector], smoothstep(0.27, 0.25, width))
    cap = smoothstep(0.168, 0.170, p[:, 2].abs())
    return mix(color, named(p, "navy"), cap)


def srgb_tensor(like: Tensor, name: str) -> Float[Tensor, " 3"]:
    """A palette colour with the dtype of ``like``."""
    return like.new_tensor(srgb(PALETTE[name]))


def ring(p: Points) -> Colors:
    """Checkers around both circles of the torus."""
    radius = (p[:, 0] ** 2 + p[:, 1] ** 2).sqrt()
    around = torch.floor(azimuth(p) * 16)
    tube = torch.floor((torch.atan2(p[:, 2], radius - 0.155) / (2 * math.pi)) % 1.0 * 8)
    is_dark = ((around + tube) % 2).to(p)
    return mix(named(p, "cream"), named(p, "navy"), is_dark)


def marble_ball(p: Points) -> Colors:
    """Green-veined stone."""
    return marble(p, "2c6e73", "eef2e6")


def block(p: Points, name: str) -> Colors:
    """Pale wood with a painted panel and a disc, square or ring on each face."""
    face = p.abs().argmax(-1)
    u = torch.where(face == 0, p[:, 1], p[:, 0])
    v = torch.where(face == 2, p[:, 1], p[:, 2])
    extent = torch.maximum(u.abs(), v.abs())
    color = wood(p, "c99a63", "ecc896", 16.0, axis=0)
    color = mix(color, named(p, name), smoothstep(0.081, 0.078, extent))
    radius = (u * u + v * v).sqrt()
    disc = smoothstep(0.050, 0.047, radius)
    hole = smoothstep(0.026, 0.029, radius)
    diamond = smoothstep(0.058, 0.055, u.abs() + v.abs())
    star = smoothstep(
        0.055, 0.051, radius * (1 + 0.28 * torch.cos(5 * torch.atan2(v, u) + math.pi / 2))
    )
    symbol = torch.where(face == 0, disc * hole, torch.where(face == 1, star, diamond))
    return mix(color, named(p, "cream"), symbol)


def die(p: Points) -> Colors:
    """White with navy pips: 1 on top and so on around, opposite faces summing to seven."""
    face = p.abs().argmax(-1)
    is_positive = p.gather(1, face[:, None]).squeeze(1) > 0
    value = torch.where(is_positive, p.new_tensor([2, 3, 1])[face], p.new_tensor([5, 4, 6])[face])
    u = torch.where(face == 0, p[:, 1], p[:, 0])
    v = torch.where(face == 2, p[:, 1], p[:, 2])
    center = (u * u + v * v).sqrt()
    diagonal = torch.minimum(_to(u, v, 1, 1), _to(u, v, -1, -1))
    other = torch.minimum(_to(u, v, 1, -1), _to(u, v, -1, 1))
    middle = torch.minimum(_to(u, v, 1, 0), _to(u, v, -1, 0))
    far = torch.full_like(u, 1.0)
    nearest = torch.where(value % 2 == 1, center, far)
    nearest = torch.minimum(nearest, torch.where(value >= 2, diagonal, far))
    nearest = torch.minimum(nearest, torch.where(value >= 4, other, far))
    nearest = torch.minimum(nearest, torch.where(value == 6, middle, far))
    return mix(plain(p, srgb("fdf7ea")), named(p, "navy"), smoothstep(0.012, 0.009, nearest))


def _to(u: Tensor, v: Tensor, a: int, b: int) -> Tensor:
    return ((u - 0.029 * a) ** 2 + (v - 0.029 * b) ** 2).sqrt()


def stem(p: Points) -> Colors:
    """Ivory."""
    return mottled(p, "e4d4b4", "f7edd9", 20.0, 2)


def caps(p: Points) -> Colors:
    """Each point takes the colour of the nearest mushroom's cap, turned and scaled with it."""
    centers = p.new_tensor([[x, y] for x, y, _ in MUSHROOMS])
    nearest = (p[:, None, :2] - centers).square().sum(-1).argmin(-1)
    color = torch.zeros_like(p)
    for i, (x, y, size) in enumerate(MUSHROOMS):
        chosen = nearest == i
        local = (p[chosen] - p.new_tensor([x, y, 0.105 * size])) / size
        color[chosen] = _cap(local * p.new_tensor([(-1.0) ** i, 1.0, 1.0]))
    return color


def _cap(p: Points) -> Colors:
    """Toadstool red with white spots on a spiral of equal areas; pale gills below."""
    red = mottled(p, "c8312c", "e2503f", 9.0, 2)
    nearest = torch.full_like(p[:, 0], 9.0)
    for k in range(16):
        z = 0.97 - 0.7 * k / 15
        angle, rim = k * 2.399963, (1 - z * z) ** 0.5
        spot = p.new_tensor([rim * math.cos(angle), rim * math.sin(angle), z]) * 0.135
        radius = 0.015 + 0.006 * math.sin(5.0 * k)
        nearest = torch.minimum(nearest, (p - spot).norm(dim=-1) - radius)
    color = mix(red, plain(p, srgb("fff6e8")), smoothstep(0.002, -0.002, nearest))
    return mix(color, stem(p), smoothstep(0.040, 0.036, p[:, 2]))
