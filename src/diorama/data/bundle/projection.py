# SPDX-License-Identifier: Apache-2.0
"""Where a bundle's images show its points, and how that changes with each unknown."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float

from diorama.cameras.distortion import DistortedColumns, distort_columns
from diorama.data.bundle.model import LENS, POSE, Bundle, Observations

NEAREST = 1e-6
"""Depth below which a point counts as behind the camera."""
BEHIND = 1e4
"""The error, in pixels, of a point that is: large enough to be avoided and to carry no weight."""


class Projection(NamedTuple):
    """What each observation was projected from and to."""

    error: Float[np.ndarray, "M 2"]
    """Projected minus observed pixel."""
    is_in_front: Bool[np.ndarray, " M"]
    rotated: Float[np.ndarray, "M 3"]
    """The point in the camera's axes, from the world's origin."""
    xy: Float[np.ndarray, "M 2"]
    """The point on the plane z = 1, before the lens bends it."""
    inverse_depth: Float[np.ndarray, " M"]
    bent: DistortedColumns


def project(bundle: Bundle, seen: Observations) -> Projection:
    """u = fx D(X / Z, Y / Z) + c for (X, Y, Z) = R x + t, with D of `cameras.distortion`."""
    rotated = np.einsum("mij,mj->mi", bundle.rotation[seen.image], bundle.xyz[seen.point])
    at = rotated + bundle.translation[seen.image]
    is_in_front = at[:, 2] > NEAREST
    inverse_depth = 1 / np.where(is_in_front, at[:, 2], 1.0)
    xy = at[:, :2] * inverse_depth[:, None]
    camera = bundle.camera_of[seen.image]
    bent = _bent(xy, bundle.distortion[camera])
    lens = bundle.intrinsics[camera]
    pixel = lens[:, :2] * np.stack((bent.x, bent.y), axis=1) + lens[:, 2:]
    error = np.where(is_in_front[:, None], pixel - seen.xy, BEHIND)
    return Projection(error, is_in_front, rotated, xy, inverse_depth, bent)


def slopes_by_place(
    bundle: Bundle, seen: Observations, found: Projection
) -> Float[np.ndarray, "M 2 3"]:
    """Derivatives of `found.error` by the point's place in the camera's frame."""
    bent, by_place = found.bent, np.empty((len(seen), 2, 3))
    focal = bundle.intrinsics[bundle.camera_of[seen.image], :2] * found.inverse_depth[:, None]
    for row, by_x, by_y in ((0, bent.a, bent.b), (1, bent.b, bent.d)):
        by_xy = np.stack((by_x, by_y), axis=1) * focal[:, row, None]
        by_place[:, row, :2] = by_xy
        by_place[:, row, 2] = -(by_xy * found.xy).sum(1)
    return by_place


def slopes_by_view(
    bundle: Bundle, seen: Observations, found: Projection, by_place: Float[np.ndarray, "M 2 3"]
) -> Float[np.ndarray, "M 2 V"]:
    """Derivatives by the image's pose and its camera's lens, as `Bundle.moved` has them."""
    camera = bundle.camera_of[seen.image]
    focal, bent = bundle.intrinsics[camera, :2], found.bent
    by_view = np.zeros((len(seen), 2, POSE + LENS))
    # A turn moves x by turn cross x, so a row g of by_place becomes x cross g.
    by_view[:, :, :3] = np.cross(found.rotated[:, None], by_place)
    by_view[:, :, 3:6] = by_place
    by_view[:, :, 6] = focal * np.stack((bent.x, bent.y), axis=1)
    by_view[:, 0, 7] = by_view[:, 1, 8] = bundle.side[camera]
    by_view[:, :, 9] = focal * _by_k1(bundle.distortion[camera], found)
    return by_view


def slopes_by_point(
    bundle: Bundle, seen: Observations, by_place: Float[np.ndarray, "M 2 3"]
) -> Float[np.ndarray, "M 2 3"]:
    """Derivatives by the point's place in the world."""
    return np.einsum("mrj,mjk->mrk", by_place, bundle.rotation[seen.image])


def _by_k1(distortion: Float[np.ndarray, "M 9"], found: Projection) -> Float[np.ndarray, "M 2"]:
    """How k1 bends a point; distortion is linear in it, so one more of it tells."""
    more = distortion.copy()
    more[:, 0] += 1
    bent = _bent(found.xy, more)
    return np.stack((bent.x - found.bent.x, bent.y - found.bent.y), axis=1)


def _bent(xy: Float[np.ndarray, "M 2"], distortion: Float[np.ndarray, "M 9"]) -> DistortedColumns:
    x, y = torch.from_numpy(xy).T.contiguous().unbind(0)
    return distort_columns(x, y, torch.from_numpy(distortion).T.contiguous().unbind(0))
