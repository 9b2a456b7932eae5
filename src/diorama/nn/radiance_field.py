# SPDX-License-Identifier: Apache-2.0
"""A hash-grid radiance field: density and colour at points of the unit cube."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from diorama.nn.hash_grid import HashGrid
from diorama.nn.mlp import FusedMLP
from diorama.nn.truncated_exp import truncated_exp
from diorama.ops.spherical_harmonics import spherical_harmonics

GEOMETRY = 16  # outputs of the density network; the first is the logarithm of the density


class RadianceField(nn.Module):
    """Instant-NGP's two networks behind one hash grid.

        features = grid(x);   g = density_net(features);   density = exp(g_0 + bias) / unit
        rgb = sigmoid(color_net(SH(direction), g, appearance))

    `unit` is the length in which the bias is meant, so that a scene's scale changes nothing.
    """

    def __init__(
        self,
        grid: HashGrid,
        width: int,
        color_layers: int,
        sh_bands: int,
        appearance_size: int = 0,
        density_bias: float = -1.0,
        unit: float = 1.0,
    ):
        super().__init__()
        self.grid = grid
        self.sh_bands = sh_bands
        self.density_bias, self.unit = density_bias, unit
        self.density_net = FusedMLP(grid.output_size, GEOMETRY, width, hidden_layers=1)
        color_inputs = sh_bands**2 + GEOMETRY + appearance_size
        self.color_net = FusedMLP(color_inputs, 3, width, color_layers, head="sigmoid")

    def initialize(self, generator: torch.Generator) -> None:
        """Fresh weights."""
        self.grid.initialize(generator)
        self.density_net.initialize(generator)
        self.color_net.initialize(generator)

    def geometry(
        self, unit_points: Float[Tensor, "N 3"], known: Float[Tensor, "N LF"] | None = None
    ) -> Float[Tensor, "N G"]:
        """Outputs of the density network; `known` are features of the same points, if at hand."""
        return self.density_net(self.grid(unit_points, known=known))

    def density(self, geometry: Float[Tensor, "N G"]) -> Float[Tensor, " N"]:
        """Density per length of the scene, from the density network's outputs."""
        return truncated_exp(geometry[:, 0] + self.density_bias) / self.unit

    def color(
        self,
        geometry: Float[Tensor, "N G"],
        directions: Float[Tensor, "N D"],
        appearance: Float[Tensor, "N A"] | None = None,
    ) -> Float[Tensor, "N 3"]:
        """Colours seen along directions that `encode` has encoded."""
        parts = (directions, geometry) if appearance is None else (directions, geometry, appearance)
        return self.color_net(torch.cat(parts, dim=1))

    def encode(self, directions: Float[Tensor, "N 3"]) -> Float[Tensor, "N D"]:
        """Spherical harmonics of unit directions."""
        return spherical_harmonics(directions, self.sh_bands)
