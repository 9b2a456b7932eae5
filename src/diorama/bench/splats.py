# SPDX-License-Identifier: Apache-2.0
"""The Gaussians that the benchmarks of the splatting ops share."""

import torch
from torch import Tensor

NUM_GAUSSIANS = 100_000


def gaussians() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Means, quaternions, log-scales and opacity logits; nearly all before a camera at the origin
    that looks along z with a field of view of 40 degrees."""
    generator = torch.Generator().manual_seed(0)
    means = 2 * torch.rand(NUM_GAUSSIANS, 3, generator=generator) - 1
    means[:, 2] += 4
    quaternions = torch.randn(NUM_GAUSSIANS, 4, generator=generator)
    log_scales = 0.5 * torch.randn(NUM_GAUSSIANS, 3, generator=generator) - 4.5
    return means, quaternions, log_scales, torch.randn(NUM_GAUSSIANS, generator=generator)
