# SPDX-License-Identifier: Apache-2.0
"""One step of Adam or AdamW on one tensor, in place, skipping what no gradient has ever reached.

    g <- g + weight_decay p   (Adam)     or     p <- p - lr weight_decay p   (AdamW)
    m <- m + (1 - beta1) (g - m),   v <- beta2 v + (1 - beta2) g^2
    p <- p - lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)

This is torch's formula. Kernel and torch agree to float32's rounding, not to the bit, because
they multiply and divide in another order; the difference is at most about 3e-7 of a step's length.
Moments too small for normal numbers become zero in the kernel (on x86) instead of lingering.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diorama import native

BLOCK = 256
"""Consecutive items that are skipped together; `kAdamBlock` of the kernel."""


@dataclass(frozen=True)
class AdamRule:
    """The numbers of the formula that are not state."""

    lr: float
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0
    is_decoupled: bool = False
    """Weight decay as in AdamW."""

    @staticmethod
    def of(group: Mapping[str, Any], is_decoupled: bool) -> "AdamRule":
        """The rule of a parameter group of torch's optimisers."""
        beta1, beta2 = group["betas"]
        return AdamRule(
            lr=float(group["lr"]),
            beta1=beta1,
            beta2=beta2,
            eps=float(group["eps"]),
            weight_decay=float(group["weight_decay"]),
            is_decoupled=is_decoupled,
        )


def touched_blocks(
    exp_avg: Float[Tensor, "*shape"], exp_avg_sq: Float[Tensor, "*shape"]
) -> Bool[Tensor, " blocks"]:
    """For each block of the flattened tensors, whether a moment has any bit set."""
    integer = {4: torch.int32, 8: torch.int64}[exp_avg.element_size()]
    bits = [t.contiguous().view(-1).view(integer) for t in (exp_avg, exp_avg_sq)]
    is_set = bits[0].bitwise_or(bits[1]).ne(0)
    whole = len(is_set) // BLOCK * BLOCK
    blocks = is_set[:whole].view(-1, BLOCK).any(dim=1)
    return torch.cat([blocks, is_set[whole:].any()[None]]) if whole < len(is_set) else blocks


@torch.no_grad()
def adam_step_reference_(
    parameter: Float[Tensor, "*shape"],
    gradient: Float[Tensor, "*shape"],
    exp_avg: Float[Tensor, "*shape"],
    exp_avg_sq: Float[Tensor, "*shape"],
    step: int,
    rule: AdamRule,
    touched: Bool[Tensor, " blocks"] | None = None,
) -> None:
    """The module's formula in torch."""
    if rule.is_decoupled:
        parameter.mul_(1 - rule.lr * rule.weight_decay)
    else:
        gradient = gradient + rule.weight_decay * parameter
    exp_avg.lerp_(gradient, 1 - rule.beta1)
    exp_avg_sq.mul_(rule.beta2).addcmul_(gradient, gradient, value=1 - rule.beta2)
    root = (exp_avg_sq / (1 - rule.beta2**step)).sqrt_().add_(rule.eps)
    parameter.addcdiv_(exp_avg, root, value=-rule.lr / (1 - rule.beta1**step))
    if touched is not None:
        touched.fill_(True)


@torch.no_grad()
def adam_step_(
    parameter: Float[Tensor, "*shape"],
    gradient: Float[Tensor, "*shape"],
    exp_avg: Float[Tensor, "*shape"],
    exp_avg_sq: Float[Tensor, "*shape"],
    step: int,
    rule: AdamRule,
    touched: Bool[Tensor, " blocks"] | None = None,
) -> None:
    """Update parameter and moments; `step` counts from 1.

    `touched` starts as `touched_blocks` of the moments and is kept up to date. A block outside it
    whose gradient is zero is not written, which changes no bit, because without weight decay the
    formula would write what is there. Without `touched`, every item is written.
    """
    for name, tensor in (
        ("gradient", gradient), ("exp_avg", exp_avg), ("exp_avg_sq", exp_avg_sq)
    ):  # fmt: skip
        if tensor.shape != parameter.shape:
            expected, got = tuple(parameter.shape), tuple(tensor.shape)
            raise ValueError(f"{name} must have the shape of parameter {expected}, got {got}")
    in_place = (parameter, exp_avg, exp_avg_sq)
    if not native.serves(parameter, gradient, exp_avg, exp_avg_sq) or not all(
        t.is_contiguous() for t in in_place
    ):
        adam_step_reference_(parameter, gradient, exp_avg, exp_avg_sq, step, rule, touched)
        return
    if touched is None:
        touched = torch.ones(-(-parameter.numel() // BLOCK), dtype=torch.bool)
    native.module.adam_step(
        parameter.detach().view(-1),
        gradient.detach().contiguous().view(-1),
        exp_avg.detach().view(-1),
        exp_avg_sq.detach().view(-1),
        touched,
        rule.lr,
        rule.beta1,
        rule.beta2,
        rule.eps,
        rule.weight_decay,
        1 - rule.beta1**step,
        1 - rule.beta2**step,
        rule.is_decoupled,
        native.num_threads(),
    )
    torch.autograd.graph.increment_version(parameter)
