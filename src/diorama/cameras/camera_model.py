# SPDX-License-Identifier: Apache-2.0
"""The three ways in which a camera maps directions to pixels."""

from enum import IntEnum


class CameraModel(IntEnum):
    """The mapping from a direction to a pixel; everything else about a camera is numbers.

    PERSPECTIVE: x = X/Z, y = Y/Z, then rational radial and tangential distortion (OpenCV).
    FISHEYE: the angle from the optical axis, times an even polynomial, is the image radius.
    EQUIRECTANGULAR: longitude and latitude; the image centre looks along +z.
    """

    PERSPECTIVE = 0
    FISHEYE = 1
    EQUIRECTANGULAR = 2
