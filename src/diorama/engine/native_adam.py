# SPDX-License-Identifier: Apache-2.0
"""torch's Adam and AdamW, with the native kernel in place of torch's where it can serve.

They keep torch's state (`step`, `exp_avg`, `exp_avg_sq`), so checkpoints pass between them and
torch's own either way. What the kernel cannot take, torch's step does.
"""

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from diorama import native
from diorama.ops.adam import AdamRule, adam_step_, touched_blocks


@dataclass(frozen=True)
class _Blocks:
    """Which blocks of a parameter's moments are not zero, true of these tensors at this version.

    The kernel does not count as a change; anybody else's writing in place does.
    """

    touched: Tensor
    moments: tuple[weakref.ref[Tensor], weakref.ref[Tensor]]
    versions: tuple[int, int]

    @staticmethod
    def of(exp_avg: Tensor, exp_avg_sq: Tensor) -> "_Blocks":
        return _Blocks(
            touched_blocks(exp_avg, exp_avg_sq),
            (weakref.ref(exp_avg), weakref.ref(exp_avg_sq)),
            (exp_avg._version, exp_avg_sq._version),
        )

    def describes(self, exp_avg: Tensor, exp_avg_sq: Tensor) -> bool:
        return (
            self.moments[0]() is exp_avg
            and self.moments[1]() is exp_avg_sq
            and self.versions == (exp_avg._version, exp_avg_sq._version)
        )


class _NativeStep(torch.optim.Optimizer):
    """The step of both optimisers; torch's class comes after it in their bases."""

    _is_decoupled: bool
    # Replaced as a whole at every step, so parameters that leave take their blocks with them.
    _blocks: Mapping[int, _Blocks] = MappingProxyType({})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Update every parameter that has a gradient."""
        if closure is not None or not all(self._is_served(group) for group in self.param_groups):
            return super().step(closure)  # pyright: ignore[reportArgumentType]
        blocks: dict[int, _Blocks] = {}
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    blocks[id(parameter)] = self._update(parameter, group)
                elif id(parameter) in self._blocks:  # for steps in which it has a gradient again
                    blocks[id(parameter)] = self._blocks[id(parameter)]
        self._blocks = blocks
        return None

    def _is_served(self, group: dict[str, Any]) -> bool:
        unusual = ("amsgrad", "maximize", "capturable", "differentiable")
        return not any(group[name] for name in unusual) and all(
            p.grad.layout == torch.strided
            and native.serves(p, p.grad, *self._moments(p))
            and all(t.is_contiguous() for t in (p, *self._moments(p)))
            for p in group["params"]
            if p.grad is not None
        )

    def _moments(self, parameter: Tensor) -> list[Tensor]:
        state = self.state.get(parameter, {})
        return [state[name] for name in ("exp_avg", "exp_avg_sq") if name in state]

    def _update(self, parameter: Tensor, group: dict[str, Any]) -> _Blocks:
        state = self.state[parameter]
        if not state:  # as torch makes it
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        state["step"] += 1
        moments = state["exp_avg"], state["exp_avg_sq"]
        blocks = self._blocks.get(id(parameter))
        if blocks is None or not blocks.describes(*moments):
            blocks = _Blocks.of(*moments)
        rule = AdamRule.of(group, self._is_decoupled)
        assert parameter.grad is not None, "only parameters with gradients are updated"
        adam_step_(parameter, parameter.grad, *moments, int(state["step"]), rule, blocks.touched)
        return blocks


class NativeAdam(_NativeStep, torch.optim.Adam):
    """`torch.optim.Adam`."""

    _is_decoupled = False


class NativeAdamW(_NativeStep, torch.optim.AdamW):
    """`torch.optim.AdamW`."""

    _is_decoupled = True
