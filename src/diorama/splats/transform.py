# SPDX-License-Identifier: Apache-2.0
"""Moves splats to another frame: positions, shapes and the colours seen from each side."""

import math
from dataclasses import replace

import torch

from diorama.cameras import Similarity, quaternion_from_matrix
from diorama.cameras.quaternions import multiply
from diorama.splats.sh_rotation import rotate_sh, sh_rotation
from diorama.splats.splats import Splats


def transform_splats(similarity: Similarity, splats: Splats) -> Splats:
    """The splats in the frame that the similarity leads to; they look the same from there."""
    turn = quaternion_from_matrix(similarity.rotation.to(splats.means.device, torch.float64))
    quaternions = multiply(turn.expand(len(splats), 4), splats.quaternions.double())
    return replace(
        splats,
        means=similarity.apply(splats.means.double()).float(),
        quaternions=quaternions.float(),
        log_scales=splats.log_scales + math.log(similarity.scale),
        sh=rotate_sh(splats.sh, similarity.rotation),
    )


def flip_axes(splats: Splats, signs: tuple[int, int, int]) -> Splats:
    """The splats in a frame with two axes reversed: exact, and its own inverse.

    `(1, -1, -1)` leads from right-down-forward (.ply) to right-up-back (.spz) or back. Two
    reversed axes are half a turn about the third, so this is `transform_splats` up to the choice
    of quaternions: (w, v) becomes (w, signs * v), which turns the Gaussian's own axes too and so
    describes the same ellipsoid. One or three reversed axes would be a mirror, which is refused.
    """
    if math.prod(signs) != 1 or any(abs(sign) != 1 for sign in signs):
        raise ValueError(f"signs must be 1 or -1 with an even number of -1, got {signs}")
    flip = splats.means.new_tensor([float(sign) for sign in signs])
    # Half a turn about an axis changes no harmonic but for its sign.
    sh_signs = sh_rotation(torch.diag(flip.cpu().double()), splats.degree).diagonal().round()
    return replace(
        splats,
        means=splats.means * flip,
        quaternions=splats.quaternions * torch.cat([flip.new_ones(1), flip]),
        sh=splats.sh * sh_signs.to(splats.sh)[:, None],
    )
