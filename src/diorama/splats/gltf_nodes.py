# SPDX-License-Identifier: Apache-2.0
"""Where the meshes of a glTF scene stand: the nodes' transforms multiplied along the tree."""

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from diorama.cameras import Similarity
from diorama.splats.gltf_container import Gltf

_LARGEST = 1e12
# Axes of a node may differ in length by this share; files round their matrices.
_SIMILAR = 1e-3


def placed_meshes(gltf: Gltf) -> Iterator[tuple[dict[str, Any], Similarity]]:
    """Every mesh that a node of the scene shows, with the transform to the world."""
    seen: set[int] = set()
    waiting = deque((index, np.eye(4)) for index in _roots(gltf))
    while waiting:
        index, world_from_parent = waiting.popleft()
        node = gltf.item("nodes", index)
        if index in seen:
            raise gltf.refuse(f"nodes[{index}] has two parents or is its own")
        seen.add(index)
        world_from_node = world_from_parent @ _local(gltf, node, index)
        if np.abs(world_from_node).max() > _LARGEST:
            raise gltf.refuse(f"nodes[{index}] moves its mesh out of all bounds")
        if "mesh" in node:
            yield gltf.item("meshes", node["mesh"]), _similarity(gltf, world_from_node, index)
        waiting += [(child, world_from_node) for child in _indices(gltf, node, "children")]


def _roots(gltf: Gltf) -> list[int]:
    if gltf.data.get("scenes"):
        return _indices(gltf, gltf.item("scenes", gltf.data.get("scene", 0)), "nodes")
    nodes = gltf.data.get("nodes")
    if not isinstance(nodes, list):
        return []
    every = [gltf.item("nodes", index) for index in range(len(nodes))]
    children = {child for node in every for child in _indices(gltf, node, "children")}
    return [index for index in range(len(every)) if index not in children]


def _indices(gltf: Gltf, owner: dict[str, Any], key: str) -> list[int]:
    indices = owner.get(key, [])
    if not isinstance(indices, list) or any(type(index) is not int for index in indices):
        raise gltf.refuse(f"{key} must be a list of indices")
    return indices


def _local(gltf: Gltf, node: dict[str, Any], index: int) -> np.ndarray:
    """The node's own matrix, or translation, rotation (x y z w) and scale."""

    def numbers(key: str, default: tuple[float, ...]) -> np.ndarray:
        values = node.get(key, default)
        is_right = isinstance(values, list | tuple) and len(values) == len(default)
        if not is_right or not all(type(value) in (int, float) for value in values):
            raise gltf.refuse(f"nodes[{index}].{key} must be {len(default)} numbers")
        if not all(abs(value) <= _LARGEST for value in values):
            raise gltf.refuse(f"nodes[{index}].{key} holds numbers that are not finite or sane")
        return np.array(values, dtype=np.float64)

    if "matrix" in node:
        return numbers("matrix", (0.0,) * 16).reshape(4, 4).T
    x, y, z, w = numbers("rotation", (0.0, 0.0, 0.0, 1.0))
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    length = max(x * x + y * y + z * z + w * w, 1e-12)
    matrix = np.eye(4)
    matrix[:3, :3] += 2 * (w * cross + cross @ cross) / length
    matrix[:3, :3] *= numbers("scale", (1.0, 1.0, 1.0))
    matrix[:3, 3] = numbers("translation", (0.0, 0.0, 0.0))
    return matrix


def _similarity(gltf: Gltf, matrix: np.ndarray, index: int) -> Similarity:
    linear = matrix[:3, :3]
    determinant = float(np.linalg.det(linear))
    scale = abs(determinant) ** (1 / 3)
    gram = linear @ linear.T / max(scale, 1e-12) ** 2
    if determinant <= 0 or np.abs(gram - np.eye(3)).max() > _SIMILAR:
        raise gltf.refuse(
            f"nodes[{index}] is mirrored, flattened or scaled by different amounts along its axes,"
            " which splats with view-dependent colour cannot follow"
        )
    u, _, vt = np.linalg.svd(linear)
    return Similarity(scale, torch.from_numpy(u @ vt), torch.from_numpy(matrix[:3, 3].copy()))
