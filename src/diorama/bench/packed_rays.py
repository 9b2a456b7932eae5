# SPDX-License-Identifier: Apache-2.0
"""Rays of unequal length for the benchmarks of ops on packed samples."""

import torch
from jaxtyping import Int64
from torch import Tensor

NUM_RAYS = 4096
MAX_SAMPLES = 128


def ray_offsets() -> Int64[Tensor, " R_plus_1"]:
    """Offsets of rays of 0 to MAX_SAMPLES - 1 samples, as a march through a grid gives them."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(MAX_SAMPLES, (NUM_RAYS,), generator=generator)
    return torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
