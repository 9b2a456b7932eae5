# SPDX-License-Identifier: Apache-2.0
"""The positional encoding of NeRF: the input itself, then a sine and a cosine per octave."""

import torch
from jaxtyping import Float
from torch import Tensor


def frequency_encoding(x: Float[Tensor, "N D"], num_octaves: int) -> Float[Tensor, "N E"]:
    """gamma(x) = (x, sin x, cos x, sin 2x, cos 2x, ..., sin 2^(L-1) x, cos 2^(L-1) x).

    No factor pi, and the raw input comes first: the order that published NeRF weights use
    (the paper's equation 4 has the pi, its code never had). E = D (1 + 2 L).
    """
    octaves = 2.0 ** torch.arange(num_octaves, dtype=x.dtype, device=x.device)
    angles = x[:, None, :] * octaves[:, None]
    waves = torch.stack((angles.sin(), angles.cos()), dim=2)
    return torch.cat((x, waves.flatten(1)), dim=1)


def frequency_width(num_inputs: int, num_octaves: int) -> int:
    """Number of values that `frequency_encoding` makes of `num_inputs`."""
    return num_inputs * (1 + 2 * num_octaves)
