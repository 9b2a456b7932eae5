# SPDX-License-Identifier: Apache-2.0
"""What is read from disk, how it is split and normalised, and how training batches are drawn."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import tyro

from diorama.config.base import Config

Format = Literal[
    "auto", "blender", "transforms", "taichi", "colmap", "llff", "deepvoxels", "linemod", "neus"
]


@dataclass(frozen=True)
class DataConfig(Config):
    """The data set; subclasses say what a training batch of it is."""

    path: Annotated[Path | None, tyro.conf.arg(name="data", prefix_name=False, metavar="PATH")] = (
        None
    )
    """The data set's folder (or its JSON file); scene:tabletop is the one we bring along."""
    format: Format = "auto"
    """How to read it; auto looks at the files."""
    downscale: float = 1.0
    """Divide image sizes by this, by area averaging; intrinsics follow."""
    max_side: int | None = None
    """Reduce images whose longer side exceeds this many pixels to it; unset keeps their size."""
    split: Literal["auto", "files", "every", "fraction", "all"] = "auto"
    """Where held-out images come from: the data set's own files or lists, every n-th by sorted
    name, an even fraction, or none held out. auto prefers files, then every."""
    eval_every: int = 8
    """With split every: each n-th image (0, n, 2n, ...) is held out."""
    train_fraction: float = 0.9
    """With split fraction: this share trains, evenly spaced."""
    test_skip: int = 1
    """Keep each n-th image of the val and test lists only (nerf-pytorch uses 8)."""
    normalize: Literal["auto", "none", "cameras", "points"] = "auto"
    """How the scene is centred and scaled; auto leaves formats that define their own frame."""
    orientation: Literal["auto", "up", "none"] = "auto"
    """Whether the cameras' mean up axis is turned to +z."""
    adjust_cameras: bool = False
    """Bundle-adjust cameras that come with the observations of sparse points (COLMAP's): poses,
    focal length, principal point and k1. Kept only where observations held back agree."""
    near: float | None = None
    """Nearest sampled depth in the normalised frame; unset takes it from the data."""
    far: float | None = None
    """Farthest sampled depth in the normalised frame; unset takes it from the data."""
    mask_as: Literal["auto", "ignore", "alpha", "none"] = "auto"
    """What a mask file means: pixels to ignore, the object's alpha, or nothing."""
    cache_gb: float = 2.0
    """Memory for decoded images, in GB; larger data sets stream through it."""


@dataclass(frozen=True)
class RayDataConfig(DataConfig):
    """The data set, drawn as batches of random pixels with their rays."""

    target: ClassVar[str] = "diorama.data.ray_manager:RayDataManager"

    rays: int = 1024
    """Rays in a training batch (the first batch, where a method adapts it)."""
    sampling: Literal["all-images", "per-image"] = "all-images"
    """Draw a batch's pixels from all training images, or from one random image per step."""
    detail: float = 0.0
    """This share of a batch looks for detail: of four random pixels the one with the most contrast
    around it is taken. 0: all pixels are equally likely."""
    patches: float | None = 0.0
    """This share of a batch, as far as detail leaves room, are patches of 4 x 4 pixels that are
    two pixels apart, for losses on neighbours. None: an eighth, and none of objects."""
    precrop_steps: int = 0
    """For this many first steps only the centre of the images is used."""
    precrop_fraction: float = 0.5
    """The side of that centre crop, as a fraction of the image."""


@dataclass(frozen=True)
class ImageDataConfig(DataConfig):
    """The data set, drawn as whole images without distortion, each once per round."""

    target: ClassVar[str] = "diorama.data.image_manager:ImageDataManager"
