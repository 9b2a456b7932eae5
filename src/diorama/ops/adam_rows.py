# SPDX-License-Identifier: Apache-2.0
"""One step of Adam or AdamW on some rows of one tensor, in place, each row with a clock of its own.

The formula is that of `diorama.ops.adam` with t, the number of steps, counted for each row: a row
that is not chosen stays as it is with its moments, as if there had been no step. The bias is thus
corrected for the gradients that a row has really seen.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diorama import native
from diorama.ops.adam import AdamRule


@torch.no_grad()
def adam_rows_step_reference_(
    parameter: Float[Tensor, "N *row"],
    gradient: Float[Tensor, "N *row"],
    exp_avg: Float[Tensor, "N *row"],
    exp_avg_sq: Float[Tensor, "N *row"],
    row_steps: Float[Tensor, " N"],
    chosen: Bool[Tensor, " N"],
    rule: AdamRule,
) -> None:
    """The formula in torch, on a copy of the chosen rows."""
    rows = chosen.nonzero()[:, 0]
    p, g, m, v = (t[rows] for t in (parameter, gradient, exp_avg, exp_avg_sq))
    time = row_steps[rows] + 1
    if rule.is_decoupled:
        p *= 1 - rule.lr * rule.weight_decay
    else:
        g += rule.weight_decay * p
    m.lerp_(g, 1 - rule.beta1)
    v.mul_(rule.beta2).addcmul_(g, g, value=1 - rule.beta2)
    per_row = time.view(-1, *(1,) * (p.ndim - 1))
    correction1, correction2 = (_bias_correction(b, per_row) for b in (rule.beta1, rule.beta2))
    p -= rule.lr / correction1 * m / ((v / correction2).sqrt_() + rule.eps)
    for target, values in ((parameter, p), (exp_avg, m), (exp_avg_sq, v), (row_steps, time)):
        target.index_copy_(0, rows, values)


def adam_rows_step_(
    parameter: Float[Tensor, "N *row"],
    gradient: Float[Tensor, "N *row"],
    exp_avg: Float[Tensor, "N *row"],
    exp_avg_sq: Float[Tensor, "N *row"],
    row_steps: Float[Tensor, " N"],
    chosen: Bool[Tensor, " N"],
    rule: AdamRule,
) -> None:
    """Update the chosen rows of parameter and moments, and count that in `row_steps`.

    The counts are floating-point numbers, as torch's own count of steps is.

    >>> parameter, gradient = torch.zeros(2, 3), torch.ones(2, 3)
    >>> moments, row_steps = torch.zeros(2, 2, 3), torch.zeros(2)
    >>> chosen = torch.tensor([True, False])
    >>> adam_rows_step_(parameter, gradient, *moments, row_steps, chosen, AdamRule(lr=0.5))
    >>> parameter
    tensor([[-0.5000, -0.5000, -0.5000],
            [ 0.0000,  0.0000,  0.0000]])
    """
    _check(parameter, gradient, exp_avg, exp_avg_sq, row_steps, chosen)
    in_place = (parameter, exp_avg, exp_avg_sq, row_steps)
    if (
        not native.serves(gradient, *in_place)
        or chosen.device.type != "cpu"
        or not all(t.is_contiguous() for t in in_place)
    ):
        adam_rows_step_reference_(parameter, gradient, exp_avg, exp_avg_sq, row_steps, chosen, rule)
        return
    flat = (len(parameter), math.prod(parameter.shape[1:]))
    native.module.adam_rows_step(
        parameter.detach().view(flat),
        gradient.detach().contiguous().view(flat),
        exp_avg.detach().view(flat),
        exp_avg_sq.detach().view(flat),
        row_steps.detach(),
        chosen.contiguous(),
        rule.lr,
        rule.beta1,
        rule.beta2,
        rule.eps,
        rule.weight_decay,
        rule.is_decoupled,
        native.num_threads(),
    )
    torch.autograd.graph.increment_version(parameter)


def _bias_correction(beta: float, time: Tensor) -> Tensor:
    """1 - beta^time, without cancellation."""
    return -torch.expm1(time * (math.log(beta) if beta > 0 else -math.inf))


def _check(
    parameter: Tensor,
    gradient: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    row_steps: Tensor,
    chosen: Tensor,
) -> None:
    for name, tensor, shape in (
        ("gradient", gradient, parameter.shape),
        ("exp_avg", exp_avg, parameter.shape),
        ("exp_avg_sq", exp_avg_sq, parameter.shape),
        ("row_steps", row_steps, parameter.shape[:1]),
        ("chosen", chosen, parameter.shape[:1]),
    ):
        if tensor.shape != shape:
            raise ValueError(
                f"{name} must have the shape {tuple(shape)}, got {tuple(tensor.shape)}"
            )
