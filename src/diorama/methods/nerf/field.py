# SPDX-License-Identifier: Apache-2.0
"""The network of NeRF: position and direction in, raw colour and raw density out."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from diorama.methods.nerf.config import NerfConfig
from diorama.nn.frequency import frequency_encoding, frequency_width


class NerfField(nn.Module):
    """The paper's figure 7 as its code has it: one 128-wide view layer, features unactivated.

    The trunk is `depth` ReLU layers; after layer index `skip` the encoded position is put in
    front of the features, [gamma(x), h]. Density is read from the trunk, before the feature layer.
    """

    def __init__(self, config: NerfConfig):
        super().__init__()
        self.config = config
        width = config.width
        position = frequency_width(3, config.position_octaves)
        inputs = [position] + [
            width + position if layer == config.skip else width for layer in range(config.depth - 1)
        ]
        self.trunk = nn.ModuleList(nn.Linear(size, width) for size in inputs)
        if config.view_directions:
            direction = frequency_width(3, config.direction_octaves)
            self.density_head = nn.Linear(width, 1)
            self.feature_head = nn.Linear(width, width)
            self.view_layer = nn.Linear(width + direction, width // 2)
            self.color_head = nn.Linear(width // 2, 3)
        else:
            self.output_head = nn.Linear(width, 4)

    @torch.no_grad()
    def initialize(self, generator: torch.Generator) -> None:
        """Draw all weights anew from `generator` by the config's rule."""
        for layer in self.modules():
            if not isinstance(layer, nn.Linear):
                continue
            if self.config.init == "glorot":
                nn.init.xavier_uniform_(layer.weight, generator=generator)
                layer.bias.zero_()
            else:
                # PyTorch's default for linear layers: both uniform in +-1/sqrt(fan in).
                bound = layer.in_features**-0.5
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.uniform_(-bound, bound, generator=generator)

    def features(self, positions: Float[Tensor, "N 3"]) -> Float[Tensor, "N W"]:
        """The trunk's output."""
        encoded = frequency_encoding(positions, self.config.position_octaves)
        hidden = encoded
        for index, layer in enumerate(self.trunk):
            hidden = torch.relu(layer(hidden))
            if index == self.config.skip and index < len(self.trunk) - 1:
                hidden = torch.cat((encoded.to(hidden), hidden), dim=1)
        return hidden

    def raw_density(self, positions: Float[Tensor, "N 3"]) -> Float[Tensor, " N"]:
        """Density before its activation, without the cost of colour."""
        with self._autocast(positions):
            hidden = self.features(positions)
            if self.config.view_directions:
                return self.density_head(hidden)[:, 0].float()
            return self.output_head(hidden)[:, 3].float()

    def forward(
        self, positions: Float[Tensor, "N 3"], directions: Float[Tensor, "N 3"]
    ) -> tuple[Float[Tensor, "N 3"], Float[Tensor, " N"]]:
        """Raw colour (before the sigmoid) and raw density (before its activation)."""
        with self._autocast(positions):
            hidden = self.features(positions)
            if not self.config.view_directions:
                output = self.output_head(hidden).float()
                return output[:, :3], output[:, 3]
            density = self.density_head(hidden)[:, 0]
            encoded = frequency_encoding(directions, self.config.direction_octaves)
            features = self.feature_head(hidden)
            viewed = torch.relu(self.view_layer(torch.cat((features, encoded.to(features)), 1)))
            return self.color_head(viewed).float(), density.float()

    def _autocast(self, like: Tensor) -> torch.autocast:
        enabled = self.config.precision == "bfloat16"
        return torch.autocast(like.device.type, dtype=torch.bfloat16, enabled=enabled)
