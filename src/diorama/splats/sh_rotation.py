# SPDX-License-Identifier: Apache-2.0
"""Rotates spherical harmonics: each degree mixes within itself by one fixed matrix."""

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.splats.sh_basis import sh_basis, sphere_directions

# Any spread of more than 7 directions determines the matrices; more of them condition well.
_NUM_DIRECTIONS = 48


def sh_rotation(rotation: Float[Tensor, "3 3"], degree: int) -> Float[Tensor, "K K"]:
    """The matrix A, in float64, with Y(R^T d) c = Y(d) A c for all directions d and coefficients c.

    So A c is seen along R d as c was along d. A is block diagonal with one orthogonal block per
    degree, found by least squares on fixed directions; the fit is exact because a rotated harmonic
    is a combination of the harmonics of its own degree.
    """
    directions = sphere_directions(_NUM_DIRECTIONS)
    before = sh_basis(directions, degree)
    after = sh_basis(directions @ rotation.to(directions), degree)
    blocks = []
    for band in range(degree + 1):
        rows = slice(band**2, (band + 1) ** 2)
        blocks.append(torch.linalg.pinv(before[:, rows]) @ after[:, rows])
    return torch.block_diag(*blocks)


def rotate_sh(sh: Float[Tensor, "N K 3"], rotation: Float[Tensor, "3 3"]) -> Float[Tensor, "N K 3"]:
    """Coefficients whose colour along R d is that of `sh` along d."""
    degree = {1: 0, 4: 1, 9: 2, 16: 3}[sh.shape[1]]
    rotated = [sh[:, :1]]
    matrix = sh_rotation(rotation, degree).to(sh)
    for band in range(1, degree + 1):
        rows = slice(band**2, (band + 1) ** 2)
        rotated.append(torch.einsum("jk,nkc->njc", matrix[rows, rows], sh[:, rows]))
    return torch.cat(rotated, dim=1)
