# SPDX-License-Identifier: Apache-2.0
"""What may be wrong with a data set that reads without error: one sentence per suspicion."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from diorama.cameras import CameraModel
from diorama.data.scene import Scene
from diorama.data.survey import ImageFacts, evenly

_BLANK = 1e-3
"""Contrast of pictures that show nothing: a quarter of a grey level."""


def suspicions(scene: Scene, facts: Sequence[ImageFacts]) -> list[str]:
    """All that a careful user should look at, most serious first; empty is good news."""
    return [
        *_about_placement(scene),
        *_about_points(scene),
        *_about_lenses(scene),
        *_about_splits(scene, facts),
        *_about_pictures(scene, facts),
    ]


def _about_placement(scene: Scene) -> list[str]:
    poses = scene.cameras.world_from_camera.double()
    centers, forward, up = poses[:, :, 3], poses[:, :, 2], -poses[:, :, 1]
    spread = float((centers - centers.mean(0)).norm(dim=-1).max())
    found = []
    if len(centers) > 1 and spread < 1e-4 * max(scene.bounds.radius, 1e-9):
        return ["All cameras stand in one place: without parallax there is no depth to learn."]
    outward = (centers - centers.mean(0)) / spread if spread > 0 else centers * 0
    if len(centers) > 3 and float((outward * forward).sum(-1).mean()) > 0.35:
        found.append(
            "The cameras look away from each other; fine for a room seen from inside, otherwise"
            " the pose convention may be wrong."
        )
    to_middle = torch.tensor(scene.bounds.center).double() - centers
    num_away = int(((to_middle * forward).sum(-1) < 0).sum())
    if scene.kind == "object" and num_away > 0.2 * len(centers):
        found.append(f"{num_away} of {len(centers)} cameras look away from the scene's centre.")
    num_inside = int((to_middle.norm(dim=-1) < scene.bounds.radius).sum())
    if scene.kind == "object" and num_inside > 0:
        found.append(f"{num_inside} cameras stand inside the sphere of interest.")
    found += _about_up(scene, up.mean(0))
    return found


def _about_up(scene: Scene, up: Tensor) -> list[str]:
    length = float(up.norm())
    if length < 0.3:
        return ["The cameras do not agree which way is up; the scene may come out tilted."]
    tilt = math.degrees(math.acos(max(-1.0, min(1.0, float(up[2]) / length))))
    if scene.kind != "forward-facing" and tilt > 50:
        return [f"The cameras' mean up is {tilt:.0f}° from +z; --data.orientation up turns it."]
    return []


def _about_points(scene: Scene) -> list[str]:
    """Sparse points come from the same photographs, so cameras must see them."""
    if scene.points is None:
        return []
    if len(scene.points) < 100:
        return [f"There are only {len(scene.points)} sparse points."]
    chosen = evenly(len(scene.cameras), 20)
    cameras = scene.cameras[chosen]
    points = scene.points.xyz[:: max(1, len(scene.points) // 2000)].to(cameras.intrinsics)
    xy, _, is_valid = cameras.project(points.expand(len(chosen), -1, -1))
    is_seen = is_valid & (xy > 0).all(-1) & (xy < cameras.size[:, None]).all(-1)
    share = float(is_seen.double().mean())
    if share < 0.01:
        return [f"A camera sees {share:.1%} of the points on average: poses and points disagree."]
    return []


def _about_lenses(scene: Scene) -> list[str]:
    cameras = scene.cameras
    is_panorama = cameras.model == int(CameraModel.EQUIRECTANGULAR)
    if bool(is_panorama.all()):
        return []
    lens, size = cameras.intrinsics[~is_panorama].double(), cameras.size[~is_panorama].double()
    found = []
    shift = (lens[:, 2:] / size - 0.5).abs().amax(-1)
    if float(shift.max()) > 0.1:
        num = int((shift > 0.1).sum())
        found.append(
            f"The principal point of {num} images is up to {float(shift.max()):.0%} of the image"
            " away from the middle; were images cropped or resized after calibration?"
        )
    ratio = float((lens[:, 0] / lens[:, 1]).log().abs().max())
    if ratio > math.log(1.05):
        found.append(f"Pixels are not square: fx and fy differ by {math.exp(ratio) - 1:.0%}.")
    fov = 2 * torch.atan(size / 2 / lens[:, :2]) * (180 / math.pi)
    is_flat = cameras.model[~is_panorama] == int(CameraModel.PERSPECTIVE)
    if bool((fov[is_flat] > 120).any()) or bool((fov < 8).any()):
        found.append(
            f"Fields of view from {float(fov.min()):.0f}° to {float(fov.max()):.0f}° are extreme;"
            " does the focal length belong to this image size?"
        )
    if len(size.unique(dim=0)) > 1:
        found.append(f"Images have {len(size.unique(dim=0))} different sizes.")
    corners = torch.cat([size * 0, size]).to(cameras.intrinsics)
    index = (~is_panorama).nonzero().squeeze(-1).repeat(2)
    num_folded = int((~cameras.is_unprojectable(index, corners)).view(2, -1).any(0).sum())
    if num_folded:
        found.append(
            f"The lens model of {num_folded} images does not reach their corners; rays there are"
            " approximate, and the distortion may be wrong."
        )
    return found


def _about_splits(scene: Scene, facts: Sequence[ImageFacts]) -> list[str]:
    found = []
    train, test = scene.splits["train"], scene.splits["test"]
    if len(train) < 10:
        found.append(f"{len(train)} training images are very few.")
    if not test:
        found.append("No image is held out: there will be no measure of quality.")
    name_of: dict[bytes, str] = {}
    digest_of = {fact.index: fact.digest for fact in facts if fact.contrast >= _BLANK}
    for index in train:
        if index in digest_of:
            name_of.setdefault(digest_of[index], scene.frames[index].name)
    both = [i for i in test if i not in train and digest_of.get(i) in name_of]
    if both:
        name, twin = scene.frames[both[0]].name, name_of[digest_of[both[0]]]
        found.append(
            f"{len(both)} held-out images are also training images ({name} equals {twin}):"
            " their quality will flatter."
        )
    return found


def _about_pictures(scene: Scene, facts: Sequence[ImageFacts]) -> list[str]:
    found = []
    blank = [fact for fact in facts if fact.contrast < _BLANK or fact.coverage == 0]
    if blank:
        found.append(_counted(scene, blank, "one colour only"))
    if scene.has_alpha and all(fact.coverage == 1 for fact in facts):
        found.append("Images have an alpha channel that is opaque everywhere.")
    masked = [fact for fact in facts if fact.mask_coverage is not None]
    empty = [fact for fact in masked if fact.mask_coverage == 0]
    if empty:
        found.append(_counted(scene, empty, "masked out completely"))
    if masked and all(fact.mask_coverage == 1 for fact in masked):
        found.append("The masks keep every pixel.")
    light = torch.tensor([fact.brightness for fact in facts if fact.contrast >= _BLANK])
    if len(light) > 3 and float(light.std() / light.mean()) > 0.25:
        found.append(
            f"Brightness varies from {float(light.min()):.2f} to {float(light.max()):.2f} between"
            " images: exposure may have changed."
        )
    return found


def _counted(scene: Scene, facts: Sequence[ImageFacts], what: str) -> str:
    first = scene.frames[facts[0].index].name
    if len(facts) == 1:
        return f"{first} is {what}."
    return f"{len(facts)} images are {what}, the first is {first}."
