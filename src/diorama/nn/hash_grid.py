# SPDX-License-Identifier: Apache-2.0
"""The multiresolution hash encoding of Instant-NGP as a module: a table, and how it is read."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from diorama.ops.hash_grid import Interpolation, hash_grid
from diorama.ops.hash_grid_layout import HashGridLayout


class HashGrid(nn.Module):
    """Maps points of the unit cube to `output_size` = L F features, coarse levels first."""

    table: Float[Tensor, "T F"]

    def __init__(
        self,
        num_levels: int = 16,
        num_features: int = 2,
        log2_table_size: int = 19,
        base_resolution: int = 16,
        max_resolution: int = 2048,
        interpolation: Interpolation = "linear",
        init_range: float = 1e-4,
    ):
        super().__init__()
        self.layout = HashGridLayout.of(
            num_levels, num_features, log2_table_size, base_resolution, max_resolution
        )
        self.interpolation: Interpolation = interpolation
        self.init_range = init_range
        self.table = nn.Parameter(torch.zeros(self.layout.num_entries, num_features))

    @property
    def output_size(self) -> int:
        """Numbers that one point gets."""
        return self.layout.output_size

    def initialize(self, generator: torch.Generator) -> None:
        """Draw the table anew, uniform in +-init_range; until then it is zero."""
        with torch.no_grad():
            self.table.uniform_(-self.init_range, self.init_range, generator=generator)

    def forward(
        self,
        positions: Float[Tensor, "N 3"],
        active_levels: int | None = None,
        known: Float[Tensor, "N LF"] | None = None,
    ) -> Float[Tensor, "N LF"]:
        """Features of the points; those of levels from `active_levels` on are zero.

        `known` is what an earlier call without gradients gave for the same points.
        """
        return hash_grid(
            positions, self.table, self.layout, self.interpolation, active_levels, known
        )
