# SPDX-License-Identifier: Apache-2.0
"""Ground-truth meshes: marching cubes on the signed distance, then a step onto the surface."""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.scenes.grid import CandidateGrid
from diorama.scenes.shading import encode_srgb
from diorama.scenes.solids import SolidUnion, columnwise

if TYPE_CHECKING:
    import trimesh

_POINTS_AT_ONCE = 1 << 18


def mesh_of(scene: SolidUnion, grid: CandidateGrid, resolution: int) -> "trimesh.Trimesh":
    """Mesh with ``resolution`` cells along the longest side of the scene's box, facing outwards."""
    import trimesh
    from skimage.measure import marching_cubes

    if resolution < 8:
        raise ValueError(f"resolution must be at least 8, got {resolution}")
    extent = [b - a for a, b in zip(grid.low, grid.high, strict=True)]
    spacing = max(extent) / resolution
    axes = [
        a + spacing * torch.arange(int(e / spacing) + 1)
        for a, e in zip(grid.low, extent, strict=True)
    ]
    points = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)
    values = _sdf(grid, points.reshape(-1, 3)).reshape(points.shape[:3])
    vertices, faces, _, _ = marching_cubes(values.numpy(), 0.0, gradient_direction="descent")
    on_surface = _projected(scene, torch.from_numpy(vertices.copy()) * spacing, grid, spacing)
    colors = encode_srgb(scene.albedo(columnwise(on_surface)))
    rgb = (colors * 255).round().to(torch.uint8).numpy()
    return trimesh.Trimesh(on_surface.numpy(), faces, vertex_colors=rgb, process=False)


def _sdf(grid: CandidateGrid, points: Float[Tensor, "N 3"]) -> Float[Tensor, " N"]:
    parts = []
    for part in points.split(_POINTS_AT_ONCE):
        part = columnwise(part)
        parts.append(grid.sdf(part, grid.cell_of(part)))
    return torch.cat(parts)


def _projected(
    scene: SolidUnion, offsets: Float[Tensor, "N 3"], grid: CandidateGrid, spacing: float
) -> Float[Tensor, "N 3"]:
    """Linear interpolation misses curved surfaces by O(spacing^2); Newton steps remove that."""
    points = columnwise(offsets + offsets.new_tensor(grid.low))
    for _ in range(3):
        distance, owner = scene.sdf_and_owner(points)
        step = distance.clamp(-spacing, spacing)
        points = columnwise(points - step[:, None] * scene.normal(points, owner))
    return points.contiguous()
