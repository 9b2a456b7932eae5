# SPDX-License-Identifier: Apache-2.0
"""COLMAP models whose cameras are bundle-adjusted, principal points included.

Mappers hold principal points still, and often draw one lens for images that do not share one.
Where photographs were cropped, poses take up the error and near and far things no longer agree.
"""

from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from diorama.cameras import CameraModel
from diorama.data.bundle.families import adjust_in_families
from diorama.data.bundle.model import Bundle, Observations
from diorama.data.bundle.projection import project
from diorama.data.bundle.settle import settled
from diorama.data.bundle.thin import believable, held_back, thinned
from diorama.data.draft import Lens
from diorama.data.parsers.colmap_model import ColmapImage, ColmapModel, world_from_camera
from diorama.data.pose_check import sane_points

LEAST_GAIN = 0.05
"""Adjusted cameras are kept if the median error of held-back observations falls by this share."""
EXACT = 0.05
"""A median error below this many pixels leaves nothing to gain."""
FEWEST_PER_IMAGE = 20
"""Observations that an image must have on average."""
LEFT = "The cameras were left as they are"


def adjusted(model: ColmapModel, where: str) -> tuple[ColmapModel, str]:
    """The model with better cameras and points, or as it was, and a sentence about it."""
    used = {image.camera_id for image in model.images}
    lenses = {number: lens for number, lens in model.lenses.items() if number in used}
    if any(lens.model is not CameraModel.PERSPECTIVE for lens in lenses.values()):
        return model, f"{LEFT}: only perspective ones can be adjusted."
    if used - set(lenses) or not all(_is_sane(lens) for lens in lenses.values()):
        return model, f"{LEFT}: one is missing, or no camera is like it."
    bundle, seen = _bundle(model, lenses, where)
    if len(seen) < FEWEST_PER_IMAGE * len(model.images):
        return model, f"{LEFT}: the model has too few observations of points to adjust them."
    chosen = thinned(seen, len(model.images))
    rows, place = np.unique(chosen.point, return_inverse=True)
    few, chosen = replace(bundle, xyz=bundle.xyz[rows]), replace(chosen, point=place)
    is_held = held_back(chosen)
    kept, held = chosen.where(~is_held), chosen.where(is_held)
    better = adjust_in_families(few, kept)
    # The file's points know the observations that are held back; they must forget them.
    before, after = (_median_error(b, held) for b in (settled(few, kept), better))
    if before < EXACT or not after < (1 - LEAST_GAIN) * before:
        return model, f"{LEFT}: adjusting them gains nothing (held-back error {before:.2f} px)."
    moved = np.abs(better.intrinsics - bundle.intrinsics)[:, 2:].max()
    note = (
        f"The cameras were adjusted: observations held back are missed by {after:.2f} px instead"
        f" of {before:.2f}, principal points moved by up to {moved:.0f} px."
    )
    xyz = bundle.xyz.copy()
    xyz[rows] = better.xyz
    return _written(settled(replace(better, xyz=xyz), seen), model, lenses), note


def _is_sane(lens: Lens) -> bool:
    """Whether numbers from a file can be those of a camera; comparisons with NaN are false."""
    side = _side(lens)
    focal = all(0.05 < (f or 0) / side < 100 for f in (lens.fx, lens.fy))
    center = all(abs(c or 0) < 10 * side for c in (lens.cx, lens.cy))
    return focal and center and all(abs(k) < 100 for k in lens.distortion)


def _side(lens: Lens) -> float:
    """The longer side of the images, in pixels."""
    return float(max(lens.width or 1, lens.height or 1))


def _bundle(model: ColmapModel, lenses: dict[int, Lens], where: str) -> tuple[Bundle, Observations]:
    """The model's numbers, and the observations that can be believed."""
    poses = np.stack([world_from_camera(image, where) for image in model.images])
    rotation = poses[:, :, :3].transpose(0, 2, 1)
    camera = {number: i for i, number in enumerate(lenses)}
    bundle = Bundle(
        rotation,
        -np.einsum("nij,nj->ni", rotation, poses[:, :, 3]),
        np.array([camera[image.camera_id] for image in model.images]),
        np.array([(lens.fx, lens.fy, lens.cx, lens.cy) for lens in lenses.values()], np.float64),
        np.array([lens.distortion for lens in lenses.values()], np.float64),
        np.array([_side(lens) for lens in lenses.values()]),
        model.points.xyz,
    )
    images, rows, is_known = model.points.places([image.point_ids for image in model.images])
    xy = np.concatenate([image.xy for image in model.images])
    is_known &= np.isfinite(xy).all(1)
    is_known[is_known] &= sane_points(model.points.xyz)[rows[is_known]]
    return bundle, believable(bundle, Observations(images, rows, xy).where(is_known))


def _median_error(bundle: Bundle, seen: Observations) -> float:
    if not len(seen):
        return 0.0
    return float(np.median(np.linalg.norm(project(bundle, seen).error, axis=1)))


def _written(bundle: Bundle, model: ColmapModel, lenses: dict[int, Lens]) -> ColmapModel:
    """The model with the bundle's numbers."""
    changed = {
        number: replace(
            lens, fx=fx, fy=fy, cx=cx, cy=cy, distortion=tuple(bundle.distortion[i].tolist())
        )
        for i, (number, lens) in enumerate(lenses.items())
        for fx, fy, cx, cy in [bundle.intrinsics[i].tolist()]
    }
    images = [_moved(image, bundle, i) for i, image in enumerate(model.images)]
    points = replace(model.points, xyz=bundle.xyz)
    return ColmapModel({**model.lenses, **changed}, images, points)


def _moved(image: ColmapImage, bundle: Bundle, i: int) -> ColmapImage:
    x, y, z, w = Rotation.from_matrix(bundle.rotation[i]).as_quat().tolist()
    tx, ty, tz = bundle.translation[i].tolist()
    return replace(image, quaternion=(w, x, y, z), translation=(tx, ty, tz))
