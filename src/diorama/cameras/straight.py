# SPDX-License-Identifier: Apache-2.0
"""Cameras without distortion that see what distorted ones saw."""

from dataclasses import replace

import torch

from diorama.cameras.camera_model import CameraModel
from diorama.cameras.cameras import Cameras
from diorama.cameras.undistort import undistorted_camera


def is_straight(camera: Cameras) -> bool:
    """Whether one camera's lens has no distortion (an ideal pinhole or fisheye)."""
    is_panorama = int(camera.model[0]) == int(CameraModel.EQUIRECTANGULAR)
    return not is_panorama and not bool(camera.distortion[0].any())


def straight_camera(camera: Cameras) -> Cameras:
    """One camera with an ideal lens of the same kind, size and pose.

    A perspective lens becomes the pinhole whose every pixel the distorted image covers; a fisheye
    becomes the ideal equidistant one of the same focal lengths, which keeps its field of view, so
    that some of its pixels may have no source. Panoramas have no such camera: ValueError.
    """
    if is_straight(camera):
        return camera
    if int(camera.model[0]) == int(CameraModel.FISHEYE):
        return replace(camera, distortion=torch.zeros_like(camera.distortion))
    return undistorted_camera(camera)
