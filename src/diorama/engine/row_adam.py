# SPDX-License-Identifier: Apache-2.0
"""Adam and AdamW that update some rows of a parameter and leave the others out of the step."""

from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from diorama.ops.adam import AdamRule
from diorama.ops.adam_rows import adam_rows_step_


class RowAdam(torch.optim.Optimizer):
    """The chosen rows of every parameter, each with its own number of steps.

    State: `exp_avg` and `exp_avg_sq` as torch has them, and `row_steps` in place of `step`. It is
    a floating-point tensor, because torch gives loaded state the parameter's dtype.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        is_decoupled: bool = False,
    ):
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(parameters, defaults)
        self.is_decoupled = is_decoupled
        self._chosen: dict[int, Tensor] = {}

    def touch_only(self, parameter: nn.Parameter, rows: Bool[Tensor, " N"]) -> None:
        """Choose the rows of the next step; without a choice it takes all."""
        self._chosen[id(parameter)] = rows

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Update the chosen rows of every parameter that has a gradient, and forget the choice."""
        assert closure is None, "nothing in Diorama evaluates a loss twice in a step"
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)
        self._chosen = {}

    def _update(self, parameter: nn.Parameter, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
            state["row_steps"] = parameter.new_zeros(len(parameter))
        rows = self._chosen.get(id(parameter))
        if rows is None:
            rows = torch.ones(len(parameter), dtype=torch.bool, device=parameter.device)
        rule = AdamRule.of(group, self.is_decoupled)
        assert parameter.grad is not None, "only parameters with gradients are updated"
        adam_rows_step_(
            parameter, parameter.grad, state["exp_avg"], state["exp_avg_sq"], state["row_steps"],
            rows, rule,
        )  # fmt: skip
