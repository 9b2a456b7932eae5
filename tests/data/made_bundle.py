# SPDX-License-Identifier: Apache-2.0
"""A capture whose cameras are known, and what a mapper that holds principal points makes of it."""

from dataclasses import replace

import numpy as np

from diorama.data.bundle.adjust import LensPrior, adjust
from diorama.data.bundle.model import Bundle, Observations
from diorama.data.bundle.projection import project
from tests.data import tiny_sets as tiny

SIDE = 800.0
WHOLE = (600.0, 600.0, 400.0, 300.0)
CROPPED = (580.0, 580.0, 352.0, 300.0)
"""fx fy cx cy of the photographs, and of those that were cropped."""


def true_bundle(num_images: int = 16, num_points: int = 300) -> Bundle:
    """Cameras around points in a ball; every third photograph was cropped."""
    poses = tiny.rig(num_images).poses
    rotation = poses[:, :, :3].transpose(0, 2, 1)
    intrinsics = np.array([CROPPED if i % 3 == 0 else WHOLE for i in range(num_images)])
    distortion = np.zeros((num_images, 9))
    distortion[:, 0] = np.where(intrinsics[:, 2] == WHOLE[2], -0.02, 0.0)
    points = np.random.default_rng(0).normal(size=(num_points, 3)) * 0.6
    return Bundle(
        rotation,
        -np.einsum("nij,nj->ni", rotation, poses[:, :, 3]),
        np.arange(num_images),
        intrinsics,
        distortion,
        np.full(num_images, SIDE),
        points,
    )


def observed(truth: Bundle, noise: float = 0.3, wrong: float = 0.03) -> Observations:
    """What each image shows of the points, some of it mistaken."""
    rng = np.random.default_rng(1)
    images, points = np.indices((len(truth.rotation), len(truth.xyz))).reshape(2, -1)
    is_seen = rng.random(len(images)) < 0.4
    images, points = images[is_seen], points[is_seen]
    exact = project(truth, Observations(images, points, np.zeros((len(images), 2)))).error
    is_wrong = rng.random((len(images), 1)) < wrong
    offset = np.where(is_wrong, rng.normal(size=exact.shape) * 15, 0)
    return Observations(images, points, exact + rng.normal(size=exact.shape) * noise + offset)


def as_mapped(truth: Bundle, seen: Observations) -> Bundle:
    """The best cameras whose principal points are in the middle and whose lenses are straight."""
    middle = np.array([600.0, 600.0, SIDE / 2, 300.0])
    start = replace(
        truth,
        intrinsics=np.tile(middle, (len(truth.rotation), 1)),
        distortion=np.zeros_like(truth.distortion),
    )
    held = LensPrior(start.lenses, np.array([0.1, 1e-6, 1e-6, 1e-6]))
    return adjust(start, seen, held)
