# SPDX-License-Identifier: Apache-2.0
"""The tabletop: a toy village on a round wooden plinth, Diorama's first screen.

A half-timbered cottage with a stone tower, a wooden rainbow, a blossom tree, two firs, a beach
ball, a checkered ring with a marble, building blocks and mushrooms. Every solid's distance is
exact, so the scene's is too, outside.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from diorama.scenes import primitives as shape
from diorama.scenes import tabletop_materials as material
from diorama.scenes.procedural import ProceduralScene
from diorama.scenes.solids import Solid

Shape = Callable[[Tensor], Tensor]
Offset = tuple[float, float, float]

GROUND = -0.40
"""Height of the lawn."""


def tabletop() -> ProceduralScene:
    """The scene; fits in +-1.12 across and -0.64 to 0.82 in height."""
    solids = (
        *_base(),
        *_cottage(),
        *_rainbow(),
        *_trees(),
        *_toys(),
        *_blocks(),
        *_mushrooms(),
    )
    return ProceduralScene("tabletop", solids, (-1.12, -1.12, -0.65), (1.12, 1.12, 0.83))


def _base() -> tuple[Solid, ...]:
    return (
        Solid(
            "plinth",
            lambda p: shape.cylinder(p, 1.1, 0.085, 0.03),
            material.plinth,
            (0.0, 0.0, GROUND - 0.115),
        ),
        Solid(
            "foot",
            lambda p: shape.cylinder(p, 0.98, 0.04, 0.015),
            material.foot,
            (0.0, 0.0, GROUND - 0.2),
        ),
        Solid(
            "lawn",
            lambda p: shape.cylinder(p, 1.02, 0.05, 0.025),
            material.lawn,
            (0.0, 0.0, GROUND - 0.05),
        ),
    )


def _cottage() -> tuple[Solid, ...]:
    x, y, turn = -0.30, 0.20, -28.0

    def place(name: str, distance: Shape, albedo: Shape, offset: Offset) -> Solid:
        a = math.radians(turn)
        across = x + offset[0] * math.cos(a) - offset[1] * math.sin(a)
        back = y + offset[0] * math.sin(a) + offset[1] * math.cos(a)
        return Solid(name, distance, albedo, (across, back, GROUND + offset[2]), turn)

    return (
        place(
            "walls",
            lambda p: shape.box(p, (0.23, 0.29, 0.2), 0.012),
            material.walls,
            (0.0, 0.0, 0.19),
        ),
        place(
            "gable",
            lambda p: shape.gable(p, 0.222, 0.222, 0.282, 0.008),
            material.gable,
            (0.0, 0.0, 0.385),
        ),
        place("roof", _roof_slab, material.roof, (0.0, 0.0, 0.63)),
        place(
            "chimney",
            lambda p: shape.box(p, (0.045, 0.05, 0.13), 0.01),
            material.chimney,
            (0.13, 0.12, 0.62),
        ),
        place(
            "chimney cap",
            lambda p: shape.box(p, (0.06, 0.065, 0.018), 0.008),
            material.stone_plain,
            (0.13, 0.12, 0.755),
        ),
        place(
            "door step",
            lambda p: shape.box(p, (0.1, 0.05, 0.02), 0.01),
            material.stone_plain,
            (-0.0, -0.32, 0.018),
        ),
        place(
            "tower",
            lambda p: shape.cylinder(p, 0.15, 0.38, 0.012),
            material.tower,
            (0.20, 0.34, 0.37),
        ),
        place(
            "tower ring",
            lambda p: shape.torus(p, 0.152, 0.022),
            material.stone_plain,
            (0.20, 0.34, 0.745),
        ),
        place(
            "tower roof",
            lambda p: shape.cone(p, 0.19, 0.006, 0.19, 0.012),
            material.tower_roof,
            (0.20, 0.34, 0.96),
        ),
        place("finial", lambda p: shape.sphere(p, 0.036), material.gold, (0.20, 0.34, 1.185)),
    )


def _roof_slab(p: Tensor) -> Tensor:
    """Two slabs that meet at the ridge (the frame's origin), folded into one by symmetry in x.

    Folding is exact: a point's nearest slab is the one on its own side.
    """
    x, y, z = p.unbind(-1)
    c = 0.5**0.5
    x = x.abs()
    along, above = (x - z) * c, (x + z) * c
    local = torch.stack([along - 0.19, y, above]).T
    return shape.box(local, (0.215, 0.36, 0.026), 0.014)


def _rainbow() -> tuple[Solid, ...]:
    def distance(p: Tensor) -> Tensor:
        bands = [
            shape.horseshoe(p, radius, 0.085, 0.033, 0.085, 0.014)
            for radius in material.RAINBOW_RADII
        ]
        return torch.stack(bands).amin(0)

    return (Solid("rainbow", distance, material.rainbow, (0.45, 0.22, GROUND + 0.084), -38.0),)


def _trees() -> tuple[Solid, ...]:
    x, y = -0.74, -0.16
    crowns = (
        ((0.0, 0.0, 0.44), 0.17),
        ((-0.10, 0.06, 0.36), 0.12),
        ((0.11, -0.03, 0.35), 0.12),
        ((0.01, -0.11, 0.37), 0.115),
        ((0.03, 0.10, 0.38), 0.12),
    )

    def crown(p: Tensor) -> Tensor:
        return torch.stack([shape.sphere(p - p.new_tensor(c), r) for c, r in crowns]).amin(0)

    return (
        Solid(
            "trunk",
            lambda p: shape.cone(p, 0.042, 0.022, 0.16, 0.01),
            material.bark,
            (x, y, GROUND + 0.16),
        ),
        Solid("blossom", crown, material.blossom, (x, y, GROUND)),
        *_fir(0.22, 0.76, 1.0),
        *_fir(0.47, 0.70, 0.68),
    )


def _fir(x: float, y: float, size: float) -> tuple[Solid, ...]:
    def tiers(p: Tensor) -> Tensor:
        cones = [
            shape.cone(
                p - p.new_tensor([0.0, 0.0, z * size]),
                r * size,
                0.01 * size,
                h * size,
                0.014 * size,
            )
            for r, h, z in material.FIR_TIERS
        ]
        return torch.stack(cones).amin(0)

    return (
        Solid(
            "fir trunk",
            lambda p: shape.cylinder(p, 0.035 * size, 0.07 * size),
            material.bark,
            (x, y, GROUND + 0.06 * size),
        ),
        Solid("fir", tiers, lambda p: material.fir(p / size), (x, y, GROUND), 17.0 / size),
    )


def _toys() -> tuple[Solid, ...]:
    return (
        Solid(
            "ball",
            lambda p: shape.sphere(p, 0.185),
            material.ball,
            (0.10, -0.60, GROUND + 0.185),
            20.0,
            28.0,
        ),
        Solid(
            "ring",
            lambda p: shape.torus(p, 0.155, 0.07),
            material.ring,
            (0.64, -0.36, GROUND + 0.07),
            15.0,
        ),
        Solid(
            "marble",
            lambda p: shape.sphere(p, 0.125),
            material.marble_ball,
            (0.64, -0.36, GROUND + 0.188),
            40.0,
            20.0,
        ),
    )


def _blocks() -> tuple[Solid, ...]:
    def cube(p: Tensor) -> Tensor:
        return shape.box(p, (0.1, 0.1, 0.1), 0.018)

    return (
        Solid(
            "block a",
            cube,
            lambda p: material.block(p, "mustard"),
            (-0.40, -0.56, GROUND + 0.1),
            20.0,
        ),
        Solid(
            "block b",
            cube,
            lambda p: material.block(p, "teal"),
            (-0.63, -0.62, GROUND + 0.1),
            -12.0,
        ),
        Solid(
            "block c",
            cube,
            lambda p: material.block(p, "coral"),
            (-0.50, -0.59, GROUND + 0.3),
            38.0,
        ),
        Solid(
            "die",
            lambda p: shape.box(p, (0.06, 0.06, 0.06), 0.016),
            material.die,
            (-0.27, -0.80, GROUND + 0.06),
            55.0,
        ),
    )


def _mushrooms() -> tuple[Solid, ...]:
    def stems(p: Tensor) -> Tensor:
        each = [
            shape.cone(
                p - p.new_tensor([x, y, 0.075 * s]), 0.042 * s, 0.03 * s, 0.075 * s, 0.01 * s
            )
            for x, y, s in material.MUSHROOMS
        ]
        return torch.stack(each).amin(0)

    def caps(p: Tensor) -> Tensor:
        each = [
            shape.dome(p - p.new_tensor([x, y, 0.105 * s]), 0.135 * s, 0.035 * s)
            for x, y, s in material.MUSHROOMS
        ]
        return torch.stack(each).amin(0)

    position = (-0.28, 0.82, GROUND)
    return (
        Solid("stems", stems, material.stem, position),
        Solid("caps", caps, material.caps, position),
    )
