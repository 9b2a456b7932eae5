# SPDX-License-Identifier: Apache-2.0
"""The frame of NeRF's occupancy grid."""

from diorama.data.scene import Scene
from diorama.nn.scene_frame import SceneFrame

NDC_MARGIN = 1.2  # rays of outer cameras leave the first camera's frustum a little


def grid_frame(scene: Scene, is_ndc: bool) -> SceneFrame:
    """The frame that suits the scene's kind: the NDC cube, the scene's box, or all of space."""
    if is_ndc:
        return SceneFrame((-NDC_MARGIN, -NDC_MARGIN, -1.0), (NDC_MARGIN, NDC_MARGIN, 1.0), False)
    bounds = scene.bounds
    if scene.kind == "object":
        return SceneFrame(bounds.aabb_min, bounds.aabb_max, False)
    (x, y, z), r = bounds.center, bounds.radius
    return SceneFrame((x - r, y - r, z - r), (x + r, y + r, z + r), True)
