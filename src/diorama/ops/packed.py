# SPDX-License-Identifier: Apache-2.0
"""Packed rays as a table: how references meet samples that lie one ray after the other."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor


@dataclass(frozen=True)
class Slots:
    """Row (its ray) and column (its place in the ray) of each packed sample in a table."""

    ray: Int64[Tensor, " N"]
    place: Int64[Tensor, " N"]
    num_rays: int
    width: int
    """Samples of the longest ray."""

    @staticmethod
    def of(ray_offsets: Int64[Tensor, " R_plus_1"], num_samples: int) -> "Slots":
        """Where the samples of rays with these offsets belong."""
        lengths = ray_offsets.diff()
        num_rays, device = len(lengths), ray_offsets.device
        ray = torch.arange(num_rays, device=device).repeat_interleave(
            lengths, output_size=num_samples
        )
        place = torch.arange(num_samples, device=device) - ray_offsets[ray]
        return Slots(ray, place, num_rays, int(lengths.max()) if num_rays else 0)

    def table(self, packed: Float[Tensor, " N"]) -> Float[Tensor, "R S"]:
        """One row per ray, zeros behind its samples; differentiable."""
        empty = packed.new_zeros((self.num_rays, self.width))
        return empty.index_put((self.ray, self.place), packed)


def in_front(table: Float[Tensor, "R S"]) -> Float[Tensor, "R S"]:
    """Sum over the columns in front of each; subtracting it from an inclusive sum would cancel."""
    return torch.cat([torch.zeros_like(table[:, :1]), table[:, :-1].cumsum(-1)], dim=-1)
