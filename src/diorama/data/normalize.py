# SPDX-License-Identifier: Apache-2.0
"""The one similarity transform from the user's coordinates to the normalised frame."""

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.cameras import Similarity
from diorama.cameras.poses import nearest_point_to_axes, recentre

PARALLEL = 0.87
"""Mean view directions at least this long (cos 30 degrees) make a forward-facing capture."""
WIDEST = 0.7
"""... in which no camera looks farther than acos of this from the mean."""


def looks_forward(poses: Float[Tensor, "N 3 4"]) -> bool:
    """Whether all cameras look the same way, as in a forward-facing capture."""
    forward = poses[:, :, 2]
    mean = forward.mean(0)
    length = float(mean.norm())
    return len(poses) > 1 and length > PARALLEL and float((forward @ mean).min() / length) > WIDEST


def upright(poses: Float[Tensor, "N 3 4"]) -> Similarity:
    """The rotation that turns the cameras' mean up axis to +z; nothing when they cancel out."""
    up = -poses[:, :, 1].mean(0)
    if float(up.norm()) < 0.1:
        return Similarity.identity()
    up = up / up.norm()
    target = up.new_tensor([0.0, 0.0, 1.0])
    axis, cosine = torch.linalg.cross(up, target), float(up @ target)
    if cosine < -0.999999:
        rotation = torch.diag(up.new_tensor([1.0, -1.0, -1.0]))
    else:
        # Rodrigues' formula for the shortest turn from up to target.
        x, y, z = axis.tolist()
        skew = up.new_tensor([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        rotation = torch.eye(3, dtype=up.dtype) + skew + skew @ skew / (1 + cosine)
    return Similarity(1.0, rotation, torch.zeros(3, dtype=up.dtype))


def focus_point(poses: Float[Tensor, "N 3 4"]) -> Float[Tensor, " 3"]:
    """What the cameras look at: the point nearest to their axes, in front of most of them.

    Cameras that turn their back to it are dropped and the point is found again; when that does not
    settle (cameras that look outwards or all the same way) the mean camera centre serves.
    """
    mean = poses[:, :, 3].mean(0)
    if len(poses) < 2 or looks_forward(poses):
        return mean
    chosen, point = poses, nearest_point_to_axes(poses)
    for _ in range(5):
        is_front = ((point - chosen[:, :, 3]) * chosen[:, :, 2]).sum(-1) > 0
        if bool(is_front.all()):
            break
        chosen = chosen[is_front]
        if len(chosen) < max(2, len(poses) // 2):
            return mean
        point = nearest_point_to_axes(chosen)
    return point


def from_cameras(poses: Float[Tensor, "N 3 4"]) -> Similarity:
    """Centre on what the cameras look at and bring the cameras into the cube of half side 1.

    One camera far away from all others does not shrink the scene: beyond twice the 90th
    percentile, coordinates do not count.
    """
    center = focus_point(poses)
    extent = (poses[:, :, 3] - center).abs().amax(-1)
    size = min(float(extent.max()), 2 * float(torch.quantile(extent, 0.9)))
    return _centred(center, size)


def from_points(xyz: Float[Tensor, "N 3"]) -> Similarity:
    """Centre on the points' median and bring 95 % of them into the unit sphere."""
    center = xyz.median(0).values
    return _centred(center, float(torch.quantile(thinned(xyz - center).norm(dim=-1), 0.95)))


def forward_frame(poses: Float[Tensor, "N 3 4"], nearest: float) -> Similarity:
    """LLFF's frame: the average camera is the identity and the nearest depth becomes 4/3."""
    rigid, _ = recentre(poses)
    scale = 1 / (0.75 * nearest)
    return Similarity(scale, rigid.rotation, rigid.translation * scale)


def thinned(rows: Tensor, most: int = 1_000_000) -> Tensor:
    """At most `most` rows, evenly picked: quantiles of more are slow and no better."""
    return rows[:: max(1, -(-len(rows) // most))]


def _centred(center: Float[Tensor, " 3"], size: float) -> Similarity:
    scale = 1 / size if size > 1e-9 else 1.0
    return Similarity(scale, torch.eye(3, dtype=center.dtype), -center * scale)
