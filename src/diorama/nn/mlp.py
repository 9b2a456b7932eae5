# SPDX-License-Identifier: Apache-2.0
"""A small multilayer perceptron as a module: parameters, their initialisation, the fused kernel."""

import itertools

import torch
from jaxtyping import Float
from torch import Tensor, nn

from diorama.ops.fused_mlp import Activation, Head, fused_mlp, fused_mlp_reference


class FusedMLP(nn.Module):
    """`hidden_layers` layers of `width` values each, then one of `output_size`.

    Formulas, activations and heads are those of `diorama.ops.fused_mlp`. With no hidden layers it
    is one linear map and the head.
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        width: int = 64,
        hidden_layers: int = 1,
        activation: Activation = "relu",
        head: Head = "none",
        bias: bool = False,
        beta: float = 1.0,
    ) -> None:
        super().__init__()
        sizes = [input_size, *[width] * hidden_layers, output_size]
        if hidden_layers < 0 or min(sizes) < 1:
            raise ValueError(f"layer sizes must be at least 1, got {sizes}")
        self.activation: Activation = activation
        self.head: Head = head
        self.beta = beta
        self.weights = nn.ParameterList(
            nn.Parameter(torch.empty(outputs, inputs))
            for inputs, outputs in itertools.pairwise(sizes)
        )
        self.biases = nn.ParameterList(nn.Parameter(torch.empty(n)) for n in sizes[1:] if bias)
        self.initialize(torch.Generator().manual_seed(0))

    @torch.no_grad()
    def initialize(self, generator: torch.Generator) -> None:
        """Draw the weights anew and zero the biases.

        Uniform in [-a, a]: with ReLU a = sqrt(6 / inputs) (He et al. 2015), otherwise
        a = sqrt(6 / (inputs + outputs)) (Glorot and Bengio 2010).
        """
        for weight in self.weights:
            outputs, inputs = weight.shape
            fan = inputs if self.activation == "relu" else inputs + outputs
            bound = (6 / fan) ** 0.5
            weight.uniform_(-bound, bound, generator=generator)
        for bias in self.biases:
            bias.zero_()

    def forward(self, x: Float[Tensor, "N I"], create_graph: bool = False) -> Float[Tensor, "N O"]:
        """Evaluate the network at N points.

        The kernel is differentiable once. With `create_graph` the torch reference serves instead,
        which is slower but lets gradients of the result be differentiated again, as eikonal losses
        and analytic normals need.
        """
        evaluate = fused_mlp_reference if create_graph else fused_mlp
        biases = list(self.biases) or None
        return evaluate(x, list(self.weights), biases, self.activation, self.head, self.beta)
