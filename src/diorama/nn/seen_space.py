# SPDX-License-Identifier: Apache-2.0
"""Which parts of space the training cameras see, and how many of them.

What one camera alone sees can look like anything: matter close to it explains its image as well as
the scene does. Fields that may only put matter where several cameras look cannot grow such
floaters, nor any where nobody looks.
"""

import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor, nn

from diorama.data.scene import Scene
from diorama.nn.scene_frame import SceneFrame
from diorama.nn.unit_cells import cell_index

RESOLUTION = 96
"""Cells per side of the unit cube."""
MAX_VIEWS = 250
"""Cameras beyond these, evenly spaced, are not asked: counts must fit a byte."""
MARGIN = 0.05
"""A camera is taken to see this share of its image's size beyond the edges."""


class SeenSpace(nn.Module):
    """How many training cameras have the centre of each cell in their image."""

    num_views: UInt8[Tensor, "X Y Z"]

    def __init__(self, scene: Scene, frame: SceneFrame, resolution: int = RESOLUTION):
        super().__init__()
        # It follows from the cameras, which every run folder holds.
        self.register_buffer("num_views", _count(scene, frame, resolution), persistent=False)

    def contains(self, unit_points: Float[Tensor, "N 3"], min_views: int) -> Bool[Tensor, " N"]:
        """Whether at least so many cameras see the cell of each point of the unit cube."""
        index = cell_index(unit_points, self.num_views.shape[0])
        return self.num_views.view(-1)[index] >= min_views


@torch.no_grad()
def _count(scene: Scene, frame: SceneFrame, resolution: int) -> UInt8[Tensor, "X Y Z"]:
    axis = (torch.arange(resolution) + 0.5) / resolution
    grid = torch.stack(torch.meshgrid(axis, axis, axis, indexing="ij"), dim=-1).view(-1, 3)
    centers = frame.from_unit(grid)
    counts = torch.zeros(len(centers), dtype=torch.uint8)
    train = scene.splits["train"]
    asked = train if len(train) <= MAX_VIEWS else train[:: -(-len(train) // MAX_VIEWS)]
    for index in asked:
        xy, depth, is_valid = scene.cameras[index].project(centers)
        size = scene.cameras.size[index]
        low, high = -MARGIN * size, (1 + MARGIN) * size
        counts += is_valid & (depth > 0) & (xy > low).all(dim=1) & (xy < high).all(dim=1)
    return counts.view(resolution, resolution, resolution)
