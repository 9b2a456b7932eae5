# SPDX-License-Identifier: Apache-2.0
"""The camera path that a format's own software renders by convention."""

from jaxtyping import Float
from torch import Tensor

from diorama.cameras import Cameras
from diorama.cameras.paths import blender_circle, spherify, spiral, spiral_focus_depth
from diorama.data.scene import SceneBounds


def render_path(
    hint: str,
    poses: Float[Tensor, "N 3 4"],
    cameras: Cameras,
    bounds: SceneBounds,
    test: tuple[int, ...],
) -> Cameras | None:
    """NeRF's circle, LLFF's spiral, the circle of `spherify`, or the test cameras (`hint`).

    All but the last have the optics of the first camera.
    """
    if hint == "circle":
        radius = float(poses[:, :, 3].norm(dim=-1).median())
        path = blender_circle(radius=4.0 if 3.5 < radius < 4.6 else radius)
    elif hint == "spiral":
        # The format's near is 0.9 times the nearest bound, which the focus depth starts from.
        path = spiral(poses, spiral_focus_depth(bounds.near / 0.9, bounds.far))
    elif hint == "sphere":
        try:
            sphere = spherify(poses)
        except ValueError:
            return None
        path = sphere.similarity.inverse().apply_to_poses(sphere.circle)
    else:
        return cameras[list(test)] if test else None
    return cameras[0].along(path.float())
