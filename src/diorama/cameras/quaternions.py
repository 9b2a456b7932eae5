# SPDX-License-Identifier: Apache-2.0
"""Unit quaternions, ordered w x y z, and the two ways to interpolate them."""

import torch
from jaxtyping import Float
from torch import Tensor


def matrix_from_quaternion(wxyz: Float[Tensor, "*B 4"]) -> Float[Tensor, "*B 3 3"]:
    """Rotation matrices of quaternions of any non-zero length."""
    w, x, y, z = torch.nn.functional.normalize(wxyz, dim=-1).unbind(-1)
    rows = [
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ]  # fmt: skip
    return torch.stack(rows, dim=-1).unflatten(-1, (3, 3))


def quaternion_from_matrix(rotation: Float[Tensor, "*B 3 3"]) -> Float[Tensor, "*B 4"]:
    """Unit quaternions with w >= 0.

    Each row of 4 q q^T can be read off the matrix; the row with the largest diagonal entry is the
    one that loses no digits.
    """
    r = rotation
    xx, yy, zz = r[..., 0, 0], r[..., 1, 1], r[..., 2, 2]
    wx, wy, wz = (
        r[..., 2, 1] - r[..., 1, 2],
        r[..., 0, 2] - r[..., 2, 0],
        r[..., 1, 0] - r[..., 0, 1],
    )
    xy, xz, yz = (
        r[..., 0, 1] + r[..., 1, 0],
        r[..., 0, 2] + r[..., 2, 0],
        r[..., 1, 2] + r[..., 2, 1],
    )
    rows = torch.stack(
        [
            torch.stack([1 + xx + yy + zz, wx, wy, wz], dim=-1),
            torch.stack([wx, 1 + xx - yy - zz, xy, xz], dim=-1),
            torch.stack([wy, xy, 1 - xx + yy - zz, yz], dim=-1),
            torch.stack([wz, xz, yz, 1 - xx - yy + zz], dim=-1),
        ],
        dim=-2,
    )
    best = rows.diagonal(dim1=-2, dim2=-1).argmax(-1)
    index = best[..., None, None].expand(*best.shape, 1, 4)
    quaternion = torch.nn.functional.normalize(rows.gather(-2, index).squeeze(-2), dim=-1)
    return torch.where(quaternion[..., :1] < 0, -quaternion, quaternion)


def multiply(a: Float[Tensor, "*B 4"], b: Float[Tensor, "*B 4"]) -> Float[Tensor, "*B 4"]:
    """The Hamilton product: rotate by b, then by a."""
    w, v = a[..., :1], a[..., 1:]
    s, u = b[..., :1], b[..., 1:]
    scalar = w * s - (v * u).sum(-1, keepdim=True)
    return torch.cat([scalar, w * u + s * v + torch.linalg.cross(v, u)], dim=-1)


def _conjugate(q: Tensor) -> Tensor:
    return torch.cat([q[..., :1], -q[..., 1:]], dim=-1)


def _log(q: Tensor) -> Tensor:
    """Half the rotation vector of the shorter of the two rotations that q and -q stand for."""
    q = torch.where(q[..., :1] < 0, -q, q)
    sine = torch.linalg.vector_norm(q[..., 1:], dim=-1, keepdim=True)
    angle = torch.atan2(sine, q[..., :1])
    return q[..., 1:] * torch.where(
        sine > 1e-9, angle / sine.clamp(min=1e-9), torch.ones_like(sine)
    )


def _exp(half: Tensor) -> Tensor:
    angle = torch.linalg.vector_norm(half, dim=-1, keepdim=True)
    return torch.cat([torch.cos(angle), half * torch.sinc(angle / torch.pi)], dim=-1)


def _arc(a: Tensor, b: Tensor, t: Tensor) -> Tensor:
    """Great-circle interpolation that never swaps b for -b."""
    cosine = (a * b).sum(-1, keepdim=True).clamp(-1, 1)
    angle = torch.acos(cosine)
    sine = torch.sin(angle)
    t = t.unsqueeze(-1)
    # Nearly equal quaternions: the chord is the arc, and dividing by the sine would lose digits.
    is_short = sine < 1e-4
    safe = torch.where(is_short, torch.ones_like(sine), sine)
    from_a = torch.where(is_short, 1 - t, torch.sin((1 - t) * angle) / safe)
    from_b = torch.where(is_short, t, torch.sin(t * angle) / safe)
    return torch.nn.functional.normalize(from_a * a + from_b * b, dim=-1)


def slerp(
    a: Float[Tensor, "*B 4"], b: Float[Tensor, "*B 4"], t: Float[Tensor, "*B"]
) -> Float[Tensor, "*B 4"]:
    """Constant-speed rotation from a (t = 0) to b (t = 1) along the shorter way."""
    return _arc(a, torch.where((a * b).sum(-1, keepdim=True) < 0, -b, b), t)


def squad_tangents(
    before: Float[Tensor, "*B 4"], here: Float[Tensor, "*B 4"], after: Float[Tensor, "*B 4"]
) -> Float[Tensor, "*B 4"]:
    """Shoemake's inner control points: here * exp(-(log(here' after) + log(here' before)) / 4)."""
    inverse = _conjugate(here)
    bend = _log(multiply(inverse, after)) + _log(multiply(inverse, before))
    return multiply(here, _exp(-bend / 4))


def squad(
    ends: tuple[Float[Tensor, "*B 4"], Float[Tensor, "*B 4"]],
    tangents: tuple[Float[Tensor, "*B 4"], Float[Tensor, "*B 4"]],
    t: Float[Tensor, "*B"],
) -> Float[Tensor, "*B 4"]:
    """Spherical cubic: slerp(slerp(a, b, t), slerp(s_a, s_b, t), 2 t (1 - t)).

    Smooth through a sequence of keys when each segment uses `squad_tangents` at its ends.
    """
    a, b = ends
    is_far = (a * b).sum(-1, keepdim=True) < 0
    b = torch.where(is_far, -b, b)
    tangent_b = torch.where(is_far, -tangents[1], tangents[1])
    return _arc(_arc(a, b, t), _arc(tangents[0], tangent_b, t), 2 * t * (1 - t))
