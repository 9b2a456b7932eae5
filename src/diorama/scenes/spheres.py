# SPDX-License-Identifier: Apache-2.0
"""Three balls: the scene whose depths, normals and distances have closed forms."""

from diorama.scenes import primitives as shape
from diorama.scenes.procedural import ProceduralScene
from diorama.scenes.solids import Solid
from diorama.scenes.textures import mottled

BALLS = (
    ((0.0, 0.0, 0.0), 0.6, ("c8452f", "f0a35c")),
    ((0.75, -0.3, 0.2), 0.3, ("1f6f78", "7fd0c4")),
    ((-0.55, 0.6, -0.25), 0.35, ("3b4a86", "b9c3ee")),
)
"""Centre, radius and the two colours of each ball."""


def spheres() -> ProceduralScene:
    """The scene; nothing stands on anything, so shading is the only hint of depth."""
    solids = tuple(
        Solid(
            f"ball {i}",
            lambda p, r=radius: shape.sphere(p, r),
            lambda p, c=colors: mottled(p, *c, frequency=6.0),
            center,
        )
        for i, (center, radius, colors) in enumerate(BALLS)
    )
    return ProceduralScene("spheres", solids, (-1.1, -1.1, -0.8), (1.1, 1.1, 0.8))
