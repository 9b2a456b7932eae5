# SPDX-License-Identifier: Apache-2.0
"""Random but realistic cameras for the property tests."""

import torch
from hypothesis import strategies as st
from torch import Tensor

from diorama.cameras import Cameras, from_colmap, matrix_from_quaternion

seeds = st.integers(0, 2**31 - 1)

# Values of real lenses, up to strong action cameras; the fold lies outside the image for all.
COLMAP_PARAMETERS: dict[str, tuple[float, ...]] = {
    "SIMPLE_PINHOLE": (600, 331, 236),
    "PINHOLE": (600, 590, 331, 236),
    "SIMPLE_RADIAL": (600, 331, 236, -0.08),
    "RADIAL": (600, 331, 236, -0.2, 0.05),
    "OPENCV": (600, 590, 331, 236, -0.28, 0.09, 1.2e-3, -8e-4),
    "FULL_OPENCV": (600, 590, 331, 236, 0.31, -0.12, 9e-4, 4e-4, 0.02, 0.45, -0.05, 0.01),
    "OPENCV_FISHEYE": (250, 251, 331, 236, 0.06, -0.02, 0.005, -0.001),
    "SIMPLE_RADIAL_FISHEYE": (250, 331, 236, -0.03),
    "RADIAL_FISHEYE": (250, 331, 236, 0.04, -0.01),
}


def random_poses(count: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Uniformly random rotations and centres of a few units."""
    generator = torch.Generator().manual_seed(seed)
    quaternions = torch.randn(count, 4, generator=generator, dtype=torch.float64)
    centers = 3 * torch.randn(count, 3, 1, generator=generator, dtype=torch.float64)
    return torch.cat([matrix_from_quaternion(quaternions), centers], dim=-1).to(dtype)


def colmap_cameras(name: str, poses: Tensor) -> Cameras:
    """640 x 480 cameras of a COLMAP model with the parameters above."""
    model, intrinsics, distortion = from_colmap(name, COLMAP_PARAMETERS[name])
    count = len(poses)
    return Cameras(
        poses,
        poses.new_tensor(intrinsics).expand(count, 4),
        torch.tensor([[640, 480]]).expand(count, 2),
        torch.full((count,), int(model)),
        poses.new_tensor(distortion).expand(count, 9),
    )


def mixed_cameras(seed: int, dtype: torch.dtype = torch.float64) -> Cameras:
    """One camera of every kind, in one batch."""
    names = list(COLMAP_PARAMETERS)
    poses = random_poses(len(names) + 1, seed, dtype)
    parts = [colmap_cameras(name, poses[i : i + 1]) for i, name in enumerate(names)]
    return Cameras.cat([*parts, Cameras.equirectangular(poses[-1:], 640, 480)])


def random_pixels(cameras: Cameras, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Camera indices and continuous pixel coordinates inside their images."""
    generator = torch.Generator().manual_seed(seed)
    index = torch.randint(len(cameras), (count,), generator=generator)
    unit = torch.rand(count, 2, generator=generator, dtype=torch.float64)
    return index, (unit * cameras.size[index]).to(cameras.intrinsics.dtype)
