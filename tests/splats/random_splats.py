# SPDX-License-Identifier: Apache-2.0
"""Random splats within the ranges that every format can hold, and what a splat looks like."""

import torch
from torch import Tensor

from diorama.cameras import matrix_from_quaternion
from diorama.splats import Color, Splats
from diorama.splats.sh_basis import sh_basis


def random_splats(
    count: int, degree: int = 3, seed: int = 0, color: Color = "shifted", antialiased: bool = False
) -> Splats:
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape: int, low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(*shape, generator=generator)

    sh = uniform(count, (degree + 1) ** 2, 3, low=-0.9, high=0.9)
    sh[:, 0] = uniform(count, 3, low=-1.7, high=1.7)
    return Splats(
        means=uniform(count, 3, low=-20, high=20),
        quaternions=torch.randn(count, 4, generator=generator),
        log_scales=uniform(count, 3, low=-7, high=1),
        opacity_logits=uniform(count, low=-5, high=5),
        sh=sh,
        color=color,
        antialiased=antialiased,
    )


def random_rotation(seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return matrix_from_quaternion(torch.randn(4, generator=generator, dtype=torch.float64))


def random_directions(count: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randn(count, 3, generator=generator, dtype=torch.float64)
    return torch.nn.functional.normalize(directions, dim=-1)


def colors_seen(splats: Splats, directions: Tensor) -> Tensor:
    """Colours (N D 3) along directions (D 3), in float64."""
    basis = sh_basis(directions, splats.degree)
    raw = torch.einsum("dk,nkc->ndc", basis, splats.sh.double())
    return raw.sigmoid() if splats.color == "sigmoid" else (raw + 0.5).clamp(min=0)


def covariances(splats: Splats) -> Tensor:
    """R S S R^T (N 3 3) in float64."""
    axes = matrix_from_quaternion(splats.quaternions.double())
    axes = axes * splats.log_scales.double().exp()[:, None]
    return axes @ axes.transpose(1, 2)


def rotation_angles(a: Splats, b: Splats) -> Tensor:
    """The angle in radians between the orientations of each pair of splats."""
    qa = torch.nn.functional.normalize(a.quaternions.double(), dim=-1)
    qb = torch.nn.functional.normalize(b.quaternions.double(), dim=-1)
    # Through the chord: the arc cosine has no digits left at small angles.
    chord = torch.minimum((qa - qb).norm(dim=-1), (qa + qb).norm(dim=-1))
    return 4 * torch.asin(chord / 2)
