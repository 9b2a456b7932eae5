# SPDX-License-Identifier: Apache-2.0
"""Small density fields that cost little to ask, and tell where the large one matters."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from diorama.methods.nerfacto.config import NerfactoConfig
from diorama.methods.nerfacto.settings import NerfactoSettings
from diorama.nn.hash_grid import HashGrid
from diorama.nn.mlp import FusedMLP
from diorama.nn.truncated_exp import truncated_exp

FEATURES = 2


class ProposalNet(nn.Module):
    """density = exp(mlp(grid(x)) + bias) / unit, with one narrow hidden layer."""

    def __init__(self, config: NerfactoConfig, settings: NerfactoSettings, max_resolution: int):
        super().__init__()
        self.grid = HashGrid(
            config.proposal_levels, FEATURES, config.proposal_log2_table,
            config.base_resolution, max_resolution,
        )  # fmt: skip
        self.net = FusedMLP(self.grid.output_size, 1, config.proposal_width, hidden_layers=1)
        self.bias, self.unit = math.log(settings.initial_density), settings.frame.half_side

    def initialize(self, generator: torch.Generator) -> None:
        """Fresh weights."""
        self.grid.initialize(generator)
        self.net.initialize(generator)

    def forward(self, unit_points: Float[Tensor, "N 3"]) -> Float[Tensor, " N"]:
        """Density per length of the scene."""
        return truncated_exp(self.net(self.grid(unit_points))[:, 0] + self.bias) / self.unit
