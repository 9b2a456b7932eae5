# SPDX-License-Identifier: Apache-2.0
"""N Gaussians as named tensors that grow and shrink together, their optimiser state with them."""

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from diorama.model import OptimizerState
from diorama.splats import Splats

NAMES = ("means", "quaternions", "log_scales", "opacity_logits", "sh_dc", "sh_rest")
"""The parameters, one optimiser group each."""
COUNTS = ("row_steps",)
"""Optimiser state that moves with its row and outlives the moments, as Adam's one count of steps
does. Counted anew, the first steps of a fresh row would be three times shorter, which cost MCMC's
relocation 1.3 dB."""


class Gaussians(nn.Module):
    """Parameters of N Gaussians; row i of every tensor belongs to Gaussian i.

    Every change of N goes through `take`, which changes the parameters' data in place of the
    parameters: the optimisers keep knowing them.
    """

    means: nn.Parameter
    quaternions: nn.Parameter
    log_scales: nn.Parameter
    opacity_logits: nn.Parameter
    sh_dc: nn.Parameter
    sh_rest: nn.Parameter
    object_ids: Tensor

    def __init__(self, splats: Splats, object_ids: Int[Tensor, " N"] | None = None):
        super().__init__()
        values = (
            splats.means, splats.quaternions, splats.log_scales, splats.opacity_logits,
            splats.sh[:, :1], splats.sh[:, 1:],
        )  # fmt: skip
        for name, value in zip(NAMES, values, strict=True):
            self.register_parameter(name, nn.Parameter(value.detach().clone().contiguous()))
        ids = torch.zeros(len(splats), dtype=torch.int64) if object_ids is None else object_ids
        self.register_buffer("object_ids", ids.clone())

    def __len__(self) -> int:
        return len(self.means)

    @property
    def sh(self) -> Float[Tensor, "N K 3"]:
        """All coefficients of the harmonics."""
        return torch.cat((self.sh_dc, self.sh_rest), dim=1)

    @property
    def opacities(self) -> Float[Tensor, " N"]:
        """Opacities in 0..1."""
        return torch.sigmoid(self.opacity_logits)

    @property
    def scales(self) -> Float[Tensor, "N 3"]:
        """Standard deviations along the axes, in scene units."""
        return torch.exp(self.log_scales)

    def named_tensors(self) -> dict[str, nn.Parameter]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in NAMES}

    @torch.no_grad()
    def take(
        self,
        source: Int[Tensor, " M"],
        is_fresh: Bool[Tensor, " M"],
        optimizers: OptimizerState | None,
    ) -> None:
        """Become M Gaussians: row i is a copy of row source[i], its moments zero if fresh."""
        for parameter in self.named_tensors().values():
            state = {} if optimizers is None else optimizers.state_of(parameter)
            parameter.data = parameter.data[source]
            parameter.grad = None
            for key, moment in state.items():
                if moment.ndim > 0:
                    state[key] = moment[source]
                    if key not in COUNTS:
                        state[key][is_fresh] = 0
        self.object_ids = self.object_ids[source]

    def touch_only(self, rows: Bool[Tensor, " N"], optimizers: OptimizerState | None) -> None:
        """Tell the optimisers which Gaussians take part in their next step."""
        if optimizers is not None:
            for parameter in self.named_tensors().values():
                if parameter.numel() > 0:
                    optimizers.touch_only(parameter, rows)

    @torch.no_grad()
    def forget_moments(
        self, name: str, rows: Bool[Tensor, " N"], optimizers: OptimizerState | None
    ) -> None:
        """Set the moments of some rows of one parameter to zero."""
        state = {} if optimizers is None else optimizers.state_of(self.named_tensors()[name])
        for key, moment in state.items():
            if moment.ndim > 0 and key not in COUNTS:
                moment[rows] = 0

    def resize_like(self, state: Mapping[str, Tensor]) -> None:
        """Take over the row counts of tensors of the same names, values unspecified."""
        for name, parameter in self.named_tensors().items():
            if name in state and state[name].shape[1:] == parameter.shape[1:]:
                parameter.data = parameter.data.new_zeros(state[name].shape)
                parameter.grad = None
        if "object_ids" in state:
            self.object_ids = self.object_ids.new_zeros(state["object_ids"].shape)
