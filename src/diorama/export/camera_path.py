# SPDX-License-Identifier: Apache-2.0
"""Camera paths that suit a scene, by name: its own, an orbit, a spiral, a tour, or a file."""

import math
from dataclasses import replace
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.cameras import (
    CameraPath,
    Cameras,
    interpolate_cameras,
    orbit,
    read_path,
    spiral,
    spiral_focus_depth,
)
from diorama.data.scene import SPLITS, Scene
from diorama.errors import UserError

PATHS = ("auto", "orbit", "spiral", "tour", *SPLITS)
FPS = 30.0


def camera_path(scene: Scene, name: str, num_frames: int) -> CameraPath:
    """The path `name` through the scene.

    auto: the data format's own path, else an orbit. orbit: a circle at the cameras' distance
    and height. spiral: around the average camera. tour: smoothly past the training cameras.
    train, val, test: the photographs' own cameras. Anything else is the path of a JSON file.
    """
    if name == "auto":
        own = scene.render_path
        return camera_path(scene, "orbit", num_frames) if own is None else CameraPath(own, FPS)
    if name == "orbit":
        return CameraPath(_along(scene, _orbit(scene, num_frames)), FPS)
    if name == "spiral":
        return CameraPath(_along(scene, _spiral(scene, num_frames)), FPS)
    if name == "tour":
        return CameraPath(_tour(scene, num_frames), FPS)
    if name in SPLITS:
        indices = list(scene.splits[name])
        if not indices:
            raise UserError(f"--path {name}: this scene has no {name} images.")
        return CameraPath(scene.cameras[indices], FPS)
    return _from_file(scene, name)


def _from_file(scene: Scene, name: str) -> CameraPath:
    path = Path(name)
    if path.suffix != ".json" and not path.exists():
        raise UserError(f"--path {name}: choose from {', '.join(PATHS)}, or name a JSON file.")
    return read_path(path, scene.scene_from_user)


def _orbit(scene: Scene, num_frames: int) -> Float[Tensor, "K 3 4"]:
    """A circle about the scene's centre through the cameras' median distance and elevation."""
    poses = scene.cameras.world_from_camera
    center = poses.new_tensor(scene.bounds.center)
    up = torch.nn.functional.normalize(-poses[:, :, 1].mean(dim=0), dim=0)
    offsets = poses[:, :, 3] - center
    distance = offsets.norm(dim=1)
    elevation = torch.asin(((offsets @ up) / distance.clamp(min=1e-9)).clamp(-1, 1)).median()
    return orbit(
        center,
        distance.median().item(),
        math.degrees(elevation.item()),
        num_frames,
        up=tuple(up.tolist()),
    )


def _spiral(scene: Scene, num_frames: int) -> Float[Tensor, "K 3 4"]:
    depth = spiral_focus_depth(scene.bounds.near, scene.bounds.far)
    try:
        return spiral(scene.cameras.world_from_camera, depth, num_frames)
    except ValueError as error:
        raise UserError(
            "--path spiral: the cameras look from all sides and have no middle; use orbit or tour."
        ) from error


def _tour(scene: Scene, num_frames: int) -> Cameras:
    """Past the training cameras in their order, as a video was shot."""
    cameras = scene.cameras[list(scene.splits["train"])]
    return interpolate_cameras(cameras, num_frames, loop=False)


def _along(scene: Scene, poses: Float[Tensor, "K 3 4"]) -> Cameras:
    """The optics of the first photograph, without its distortion, along the poses."""
    first = scene.cameras[0]
    plain = replace(first, distortion=torch.zeros_like(first.distortion))
    return plain.along(poses)
