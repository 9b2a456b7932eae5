# SPDX-License-Identifier: Apache-2.0
"""Visibility culling of packed rays."""

import torch

from diorama.bench.case import Case
from diorama.bench.packed_rays import NUM_RAYS, ray_offsets
from diorama.ops.cull import cull, cull_reference


def cases() -> list[Case]:
    """By transmittance alone, and by alpha too."""
    offsets = ray_offsets()
    num_samples = int(offsets[-1])
    sigma, delta = 8 * torch.rand(num_samples), 0.1 * torch.rand(num_samples)
    return [
        Case(
            "cull",
            f"{NUM_RAYS} rays, {what}",
            lambda alpha=alpha: cull(sigma, delta, offsets, 1e-4, alpha),
            lambda alpha=alpha: cull_reference(sigma, delta, offsets, 1e-4, alpha),
            num_samples,
            "samples",
            # Two numbers in, at most one index out.
            num_bytes=4 * 2 * num_samples + 8 * len(cull(sigma, delta, offsets, 1e-4, alpha)[0]),
        )
        for what, alpha in (("T >= 1e-4", 0.0), ("T >= 1e-4, alpha >= 0.01", 0.01))
    ]
