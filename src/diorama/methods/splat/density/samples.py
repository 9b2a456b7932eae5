# SPDX-License-Identifier: Apache-2.0
"""Points drawn from Gaussians."""

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.cameras import matrix_from_quaternion


def rotations(quaternions: Float[Tensor, "N 4"]) -> Float[Tensor, "N 3 3"]:
    """Rotation matrices; the columns are the Gaussians' axes."""
    return matrix_from_quaternion(torch.nn.functional.normalize(quaternions, dim=1))


def offsets(
    quaternions: Float[Tensor, "N 4"],
    scales: Float[Tensor, "N 3"],
    generator: torch.Generator,
) -> Float[Tensor, "N 3"]:
    """One draw per Gaussian, relative to its mean."""
    noise = torch.randn(scales.shape, generator=generator, device=scales.device).to(scales)
    return (rotations(quaternions) @ (noise * scales)[:, :, None])[:, :, 0]
