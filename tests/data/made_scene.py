# SPDX-License-Identifier: Apache-2.0
"""Small scenes written to a folder, whose every pixel tells which image and place it is from."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from diorama.cameras import Cameras, Similarity
from diorama.data.scene import Frame, Scene, SceneBounds


def coded_image(index: int, width: int, height: int) -> np.ndarray:
    """RGBA with red = image, green = column, blue = row, alpha = their sum."""
    rows, columns = np.mgrid[:height, :width]
    code = np.stack([np.full_like(rows, index), columns, rows, index + rows + columns], -1)
    return (code % 256).astype(np.uint8)


def made_scene(
    folder: Path, sizes: Sequence[tuple[int, int]], num_test: int = 1, alpha: bool = True
) -> Scene:
    """A scene with one image per (width, height); the last `num_test` are held out."""
    frames = []
    for i, (width, height) in enumerate(sizes):
        path = folder / f"{i:03d}.png"
        Image.fromarray(coded_image(i, width, height)[..., : 4 if alpha else 3]).save(path)
        frames.append(Frame(name=path.name, image_path=path, raw_size=(width, height)))
    count = len(frames)
    angle = torch.arange(count) * (2 * torch.pi / max(count, 1))
    poses = torch.zeros(count, 3, 4)
    forward = torch.stack([-angle.cos(), -angle.sin(), torch.zeros(count)], -1)
    down = torch.tensor([0.0, 0.0, -1.0]).expand(count, 3)
    poses[..., 0], poses[..., 1] = torch.linalg.cross(down, forward), down
    poses[..., 2], poses[..., 3] = forward, -4 * forward
    size = torch.tensor(sizes)
    width, height = size[:, 0], size[:, 1]
    cameras = Cameras.pinhole(poses, width * 1.2, width * 1.2, width / 2, height / 2, width, height)
    train = tuple(range(count - num_test))
    test = tuple(range(count - num_test, count))
    return Scene(
        name="made",
        format="blender",
        root=folder,
        frames=tuple(frames),
        cameras=cameras,
        splits={"train": train, "val": (), "test": test},
        scene_from_user=Similarity.identity(),
        bounds=SceneBounds(
            (0.0, 0.0, 0.0), 1.0, (-1.0, -1.0, -1.0), (1.0, 1.0, 1.0), near=2.0, far=6.0
        ),
        has_alpha=alpha,
    )


def with_masks(scene: Scene, masks: Sequence[np.ndarray | None], is_alpha: bool) -> Scene:
    """The scene with a mask file beside each image that has a mask here."""
    frames = []
    for frame, mask in zip(scene.frames, masks, strict=True):
        path = None
        if mask is not None:
            path = frame.image_path.with_suffix(".mask.png")
            Image.fromarray(mask).save(path)
        frames.append(replace(frame, mask_path=path, mask_is_alpha=is_alpha))
    return replace(scene, frames=tuple(frames))


def with_depths(scene: Scene, depths: Sequence[np.ndarray | None], unit: float) -> Scene:
    """The scene with a .npy depth beside each image that has a depth here."""
    frames = []
    for frame, depth in zip(scene.frames, depths, strict=True):
        path = None
        if depth is not None:
            path = frame.image_path.with_suffix(".npy")
            np.save(path, depth)
        frames.append(replace(frame, depth_path=path, depth_unit=unit))
    return replace(scene, frames=tuple(frames))
