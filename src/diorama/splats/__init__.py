# SPDX-License-Identifier: Apache-2.0
"""Gaussian splats as data: one value type, every file format, and moves between frames."""

from diorama.splats.files import SUFFIXES, read_splats, write_splats
from diorama.splats.points import PointColors, read_points
from diorama.splats.sh_rotation import rotate_sh
from diorama.splats.sigmoid_to_shifted import shifted_to_sigmoid, sigmoid_to_shifted
from diorama.splats.splats import Color, Splats
from diorama.splats.transform import flip_axes, transform_splats

__all__ = [
    "SUFFIXES",
    "Color",
    "PointColors",
    "Splats",
    "flip_axes",
    "read_points",
    "read_splats",
    "rotate_sh",
    "shifted_to_sigmoid",
    "sigmoid_to_shifted",
    "transform_splats",
    "write_splats",
]
