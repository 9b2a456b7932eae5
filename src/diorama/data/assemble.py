# SPDX-License-Identifier: Apache-2.0
"""From a parser's draft to a Scene: sort, split, normalise, size and bound."""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from diorama.cameras import CameraModel, Cameras, Similarity
from diorama.config.data import DataConfig
from diorama.data.bounds import scene_bounds
from diorama.data.draft import Draft, DraftFrame, check_shape
from diorama.data.image_folders import Sized, sized_images, within_side
from diorama.data.images import image_size, read_image
from diorama.data.normalize import from_cameras, from_points, upright
from diorama.data.render_path import render_path
from diorama.data.scene import Frame, Kind, PointCloud, Scene, SceneBounds
from diorama.data.splits import make_splits
from diorama.errors import UserError

WIDEST_TANGENT = math.tan(math.radians(80))


@dataclass(frozen=True)
class _Placed:
    """A draft's frames in the normalised frame."""

    poses: Tensor
    scene_from_user: Similarity
    xyz: Tensor | None
    is_own: bool
    """Whether the frame is the one that the format defines."""
    zoom: float
    """Length in this frame of what has the length 1 in the format's own frame."""


def assemble(draft: Draft, config: DataConfig) -> Scene:
    """The Scene of a draft; the draft's frames may come in any order."""
    _check(config)
    notes = list(draft.notes)
    draft, order = _sorted(draft)
    splits, split_notes = make_splits(len(draft.frames), _moved(draft.splits, order), config)
    placed = _place(draft, config)
    used = sorted({i for indices in splits.values() for i in indices})
    if len(used) < len(draft.frames):
        notes.append(f"{len(draft.frames) - len(used)} images are in no split and are left out.")
    frames = [draft.frames[i] for i in used]
    position = {old: new for new, old in enumerate(used)}
    splits = {name: tuple(position[i] for i in indices) for name, indices in splits.items()}
    sized, size_notes = sized_images(frames, draft.root, float(config.downscale))
    sized, side_notes = within_side(sized, config.max_side)
    cameras = _cameras(frames, sized, placed.poses[used])
    has_alpha = _has_alpha(draft, frames, sized, config)
    kind = draft.kind or ("object" if has_alpha else "unbounded")
    bounds = _bounds(draft, placed, cameras, kind, config)
    if kind == "forward-facing" and not placed.is_own:
        kind = "unbounded"
        notes.append("Forward-facing, but not in the frame of NDC (--data.normalize auto is).")
    path = None
    if placed.is_own and draft.path_hint is not None:
        path = render_path(draft.path_hint, placed.poses, cameras, bounds, splits["test"])
    scale = placed.scene_from_user.scale / _scale(draft.user_frame)
    return Scene(
        name=draft.root.resolve().name or "scene",
        format=draft.format,
        root=draft.root,
        frames=tuple(
            _frame(frame, size, scale, draft, config)
            for frame, size in zip(frames, sized, strict=True)
        ),
        cameras=cameras,
        splits=splits,
        scene_from_user=placed.scene_from_user,
        bounds=bounds,
        points=_point_cloud(
            placed.xyz, draft, [position.get(order[i], -1) for i in range(len(order))]
        ),
        kind=kind,
        has_alpha=has_alpha,
        background=draft.background,
        render_path=path,
        notes=tuple(notes + split_notes + size_notes + side_notes),
    )


def _check(config: DataConfig) -> None:
    if not (math.isfinite(config.downscale) and config.downscale >= 1):
        raise UserError(f"--data.downscale must be at least 1, got {config.downscale:g}.")
    if config.max_side is not None and config.max_side < 1:
        raise UserError(f"--data.max-side must be at least 1, got {config.max_side}.")
    for name, value in (("near", config.near), ("far", config.far)):
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise UserError(f"--data.{name} must be a finite distance, got {value:g}.")


def _sorted(draft: Draft) -> tuple[Draft, dict[int, int]]:
    """The frames by name, and where each one went."""
    if not draft.frames:
        raise UserError(f"{draft.root}: the data set ({draft.format}) has no image that exists.")
    order = sorted(range(len(draft.frames)), key=lambda i: draft.frames[i].name)
    frames = [draft.frames[i] for i in order]
    for first, second in pairwise(frames):
        if first.name == second.name:
            raise UserError(f"{draft.root}: the image {first.name!r} is listed twice; keep one.")
    return replace(draft, frames=frames), {old: new for new, old in enumerate(order)}


def _moved(
    splits: dict[str, list[int]] | None, order: dict[int, int]
) -> dict[str, list[int]] | None:
    if splits is None:
        return None
    return {name: [order[i] for i in indices] for name, indices in splits.items()}


def _place(draft: Draft, config: DataConfig) -> _Placed:
    """Apply the normalisation that flags, file and format ask for."""
    poses = torch.from_numpy(np.stack([frame.pose for frame in draft.frames]))
    xyz = None if draft.xyz is None else torch.from_numpy(draft.xyz)
    is_own = config.normalize == "auto" and draft.own_frame is not None
    orientation = config.orientation
    if orientation == "auto":
        keeps = is_own or config.normalize == "none"
        orientation = "none" if keeps else draft.orientation or "up"
    turn = upright(poses) if orientation == "up" else Similarity.identity()
    poses = turn.apply_to_poses(poses)
    xyz = None if xyz is None else turn.apply(xyz)
    if is_own:
        # The turn comes last here: a format's own frame is about the file's coordinates.
        assert draft.own_frame is not None
        shift = turn.compose(draft.own_frame).compose(turn.inverse())
    elif config.normalize == "points":
        if xyz is None or not len(xyz):
            raise UserError("--data.normalize points: this data set has no points; use cameras.")
        shift = from_points(xyz)
    elif config.normalize == "none":
        shift = Similarity.identity()
    else:
        shift = from_cameras(poses)
    total = shift.compose(turn)
    if draft.user_frame is not None:
        total = total.compose(draft.user_frame)
    return _Placed(
        shift.apply_to_poses(poses),
        total,
        None if xyz is None else shift.apply(xyz),
        is_own and orientation == "none",
        shift.scale / _scale(draft.own_frame),
    )


def _cameras(frames: list[DraftFrame], sized: list[Sized], poses: Tensor) -> Cameras:
    """Intrinsics fitted to the image files, then to the size that training uses."""
    intrinsics = []
    for frame, size in zip(frames, sized, strict=True):
        fitted = frame.lens.fit(*size.full, str(frame.image_path))
        ratios = [size.target[k % 2] / size.full[k % 2] for k in range(4)]
        intrinsics.append([value * ratio for value, ratio in zip(fitted, ratios, strict=True)])
    return Cameras(
        world_from_camera=poses.float(),
        intrinsics=torch.tensor(intrinsics, dtype=torch.float64).float(),
        size=torch.tensor([size.target for size in sized], dtype=torch.int64),
        model=torch.tensor([int(frame.lens.model) for frame in frames], dtype=torch.int64),
        distortion=torch.tensor([frame.lens.distortion for frame in frames]).float(),
    )


def _frame(frame: DraftFrame, size: Sized, scale: float, draft: Draft, config: DataConfig) -> Frame:
    is_alpha = draft.masks_are_alpha if config.mask_as == "auto" else config.mask_as == "alpha"
    mask_path = None if config.mask_as == "none" else frame.mask_path
    if mask_path is not None:
        check_shape(size.full, image_size(mask_path), str(mask_path), "the mask", "its image")
    return Frame(
        name=frame.name,
        image_path=size.path,
        mask_path=mask_path,
        depth_path=frame.depth_path,
        depth_unit=frame.depth_unit * scale,
        time=frame.time,
        mask_is_alpha=is_alpha,
        raw_size=size.raw,
        crop_radius=_share_of_width(frame, size),
    )


def _share_of_width(frame: DraftFrame, size: Sized) -> float | None:
    """The crop radius relative to the width that the file's pixels refer to."""
    if frame.crop_radius is None:
        return None
    return frame.crop_radius / (frame.lens.width or size.full[0])


def _has_alpha(
    draft: Draft, frames: list[DraftFrame], sized: list[Sized], config: DataConfig
) -> bool:
    """Whether masks serve as alpha, or the first image has pixels that are not opaque."""
    is_alpha = draft.masks_are_alpha if config.mask_as == "auto" else config.mask_as == "alpha"
    if is_alpha and any(frame.mask_path for frame in frames):
        return True
    from PIL import Image

    with Image.open(sized[0].path) as header:
        if not header.has_transparency_data:
            return False
    return bool((read_image(sized[0].path)[..., 3:] < 255).any())


def _bounds(
    draft: Draft, placed: _Placed, cameras: Cameras, kind: Kind, config: DataConfig
) -> SceneBounds:
    tangents = _tangents(cameras)
    box = draft.box if placed.is_own else None
    depths = draft.near_far
    if depths is not None:
        depths = (depths[0] * placed.zoom, depths[1] * placed.zoom)
    bounds = scene_bounds(
        cameras.world_from_camera.double(), tangents, placed.xyz, kind, box, depths
    )
    near = bounds.near if config.near is None else config.near
    far = bounds.far if config.far is None else config.far
    if not near < far:
        raise UserError(f"--data.near {near:g} must be less than --data.far {far:g}.")
    return replace(bounds, near=near, far=far)


def _tangents(cameras: Cameras) -> Tensor:
    """Tangents of the half angles of view; fisheye angles are size / focal, panoramas are wide."""
    half = cameras.size.double() / 2 / cameras.intrinsics[:, :2].double()
    is_round = (cameras.model != int(CameraModel.PERSPECTIVE)).unsqueeze(-1)
    tangents = torch.where(is_round, torch.tan(half.clamp(max=math.radians(80))), half)
    return tangents.clamp(max=WIDEST_TANGENT)


def _point_cloud(xyz: Tensor | None, draft: Draft, index_of: list[int]) -> PointCloud | None:
    """The points; `index_of` gives the scene's index of a frame of the file, -1 if it is unused."""
    if xyz is None or draft.rgb is None or not len(xyz):
        return None
    sightings = None
    if draft.sightings is not None:
        frames = torch.tensor(index_of)[torch.from_numpy(draft.sightings[:, 0])]
        pairs = torch.stack((frames, torch.from_numpy(draft.sightings[:, 1])), dim=1)
        sightings = pairs[frames >= 0]
    return PointCloud(xyz.float(), torch.from_numpy(np.ascontiguousarray(draft.rgb)), sightings)


def _scale(similarity: Similarity | None) -> float:
    return 1.0 if similarity is None else similarity.scale
