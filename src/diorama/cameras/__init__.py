# SPDX-License-Identifier: Apache-2.0
"""Cameras, rays, poses and camera paths. Conventions: docs/conventions.md."""

from diorama.cameras.camera_model import CameraModel
from diorama.cameras.cameras import Cameras
from diorama.cameras.colmap_models import COLMAP_MODELS, from_colmap
from diorama.cameras.interpolation import interpolate, interpolate_cameras
from diorama.cameras.ndc import distance_from_ndc, ndc_rays, ndc_rays_opencv
from diorama.cameras.path_json import CameraPath, path_from_json, path_to_json, read_path
from diorama.cameras.paths import (
    Spherified,
    blender_circle,
    orbit,
    spherify,
    spiral,
    spiral_focus_depth,
)
from diorama.cameras.poses import (
    average_pose,
    flip_yz,
    look_at,
    nearest_point_to_axes,
    recentre,
    spherical_pose,
)
from diorama.cameras.projection import Projected
from diorama.cameras.quaternions import matrix_from_quaternion, quaternion_from_matrix, slerp
from diorama.cameras.rays import Rays
from diorama.cameras.similarity import Similarity
from diorama.cameras.undistort import (
    resample_image,
    resample_nearest,
    undistort_image,
    undistorted_camera,
)

__all__ = [
    "COLMAP_MODELS",
    "CameraModel",
    "CameraPath",
    "Cameras",
    "Projected",
    "Rays",
    "Similarity",
    "Spherified",
    "average_pose",
    "blender_circle",
    "distance_from_ndc",
    "flip_yz",
    "from_colmap",
    "interpolate",
    "interpolate_cameras",
    "look_at",
    "matrix_from_quaternion",
    "ndc_rays",
    "ndc_rays_opencv",
    "nearest_point_to_axes",
    "orbit",
    "path_from_json",
    "path_to_json",
    "quaternion_from_matrix",
    "read_path",
    "recentre",
    "resample_image",
    "resample_nearest",
    "slerp",
    "spherical_pose",
    "spherify",
    "spiral",
    "spiral_focus_depth",
    "undistort_image",
    "undistorted_camera",
]
