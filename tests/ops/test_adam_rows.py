# SPDX-License-Identifier: Apache-2.0
"""Adam of some rows against its reference and against an optimiser of torch's for each row."""

import math

import jaxtyping
import pytest
import torch
from torch import Tensor

from diorama import native
from diorama.ops.adam import AdamRule, adam_step_
from diorama.ops.adam_rows import adam_rows_step_, adam_rows_step_reference_

RULES = [
    AdamRule(lr=0.01),
    AdamRule(lr=0.01, beta1=0.0, beta2=0.99, eps=1e-15),
    AdamRule(lr=0.1, weight_decay=0.1),
    AdamRule(lr=0.1, weight_decay=0.1, is_decoupled=True),
]
SHAPES = [(0, 3), (1,), (7, 1), (33, 4), (1025, 3), (40, 15, 3), (70, 16), (3000, 2, 3), (5, 0, 3)]


def random_state(shape: tuple[int, ...], share: float = 0.6) -> list[Tensor]:
    """Parameter, gradient, moments, counts up to some thousands, and who is chosen."""
    generator = torch.Generator().manual_seed(sum(shape))
    parameter, gradient, first, second = torch.randn(4, *shape, generator=generator)
    row_steps = (10 ** (4.5 * torch.rand(shape[0], generator=generator)) - 1).floor()
    chosen = torch.rand(shape[0], generator=generator) < share
    return [parameter, gradient, first, second.square(), row_steps, chosen]


def double(state: list[Tensor]) -> list[Tensor]:
    return [t.double() if t.is_floating_point() else t for t in state]


@pytest.mark.usefixtures("build")
class TestKernel:
    @pytest.mark.parametrize("rule", RULES, ids=str)
    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    def test_matches_reference(self, shape: tuple[int, ...], rule: AdamRule):
        state = random_state(shape)
        exact = double(state)
        adam_rows_step_(*state, rule)
        adam_rows_step_reference_(*exact, rule)
        for got, expected in zip(double(state), exact, strict=True):
            torch.testing.assert_close(got, expected, rtol=2e-6, atol=1e-6)

    @pytest.mark.parametrize("shape", [(5000, 3), (3000, 15, 3), (4001,)], ids=str)
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_same_bits_on_any_number_of_threads(self, shape: tuple[int, ...], dtype: torch.dtype):
        state = [t.to(dtype) if t.is_floating_point() else t for t in random_state(shape)]
        results = []
        for num_threads in (1, 2, 3):
            torch.set_num_threads(num_threads)
            results.append([t.clone() for t in state])
            adam_rows_step_(*results[-1], RULES[0])
        for result in results[1:]:
            assert all(map(torch.equal, result, results[0]))

    @pytest.mark.parametrize("shape", [(100, 3), (100, 45)], ids=str)
    def test_other_rows_are_not_written(self, shape: tuple[int, ...]):
        state = random_state(shape)
        state[1][~state[5]] = math.nan
        before = [t.clone() for t in state]
        adam_rows_step_(*state, RULES[3])
        others = ~state[5]
        for got, old in zip(state, before, strict=True):
            assert torch.equal(got[others].nan_to_num(), old[others].nan_to_num())
        assert torch.equal(state[4], before[4] + state[5])

    def test_counts_that_cannot_be_lead_nowhere(self):
        state = random_state((6, 2), share=1.1)
        state[4][:] = torch.tensor([-5.0, math.nan, math.inf, 1e30, -math.inf, 0.5])
        adam_rows_step_(*state, RULES[0])
        assert state[0].isfinite().all()


@pytest.mark.parametrize("step", [adam_rows_step_, adam_rows_step_reference_])
@pytest.mark.parametrize("width", [3, 45])
@pytest.mark.parametrize("rule", [RULES[0], RULES[3]], ids=str)
def test_each_row_follows_an_optimizer_of_its_own(rule: AdamRule, width: int, step):
    """Torch's Adam on a row alone, with only the gradients that the row has seen."""
    generator = torch.Generator().manual_seed(width)
    start = torch.randn(6, width, generator=generator, dtype=torch.float64)
    kind = torch.optim.AdamW if rule.is_decoupled else torch.optim.Adam
    alone = [torch.nn.Parameter(row.clone()) for row in start]
    options = {"betas": (rule.beta1, rule.beta2), "weight_decay": rule.weight_decay}
    optimizers = [kind([row], lr=rule.lr, eps=rule.eps, **options) for row in alone]
    parameter, row_steps = start.clone(), torch.zeros(6, dtype=torch.float64)
    moments = torch.zeros(2, 6, width, dtype=torch.float64)
    for _ in range(40):
        gradient = torch.randn(6, width, generator=generator, dtype=torch.float64)
        chosen = torch.rand(6, generator=generator) < torch.linspace(0, 1.1, 6)
        step(parameter, gradient, *moments, row_steps, chosen, rule)
        for row in chosen.nonzero()[:, 0].tolist():
            alone[row].grad = gradient[row]
            optimizers[row].step()
    assert row_steps[0] == 0 and row_steps[5] == 40
    torch.testing.assert_close(parameter, torch.stack([row.detach() for row in alone]))


def test_all_rows_chosen_is_plain_adam():
    state = random_state((300, 3), share=1.1)
    state[4][:] = 6
    plain = [t.clone() for t in state[:4]]
    adam_rows_step_(*state, RULES[0])
    adam_step_(*plain, 7, RULES[0])
    for got, expected in zip(state, plain, strict=False):
        torch.testing.assert_close(got, expected, rtol=2e-6, atol=1e-7)


def test_strided_tensors_are_taken():
    state = random_state((60, 4))
    strided = [t.T.contiguous().T if t.ndim == 2 else t.clone() for t in state]
    adam_rows_step_(*state, RULES[0])
    adam_rows_step_(*strided, RULES[0])
    torch.testing.assert_close(strided[0], state[0], rtol=2e-6, atol=1e-6)


def test_change_is_seen_by_autograd():
    state = random_state((3, 2))
    state[0].requires_grad_()
    loss = (state[0] ** 2).sum()
    adam_rows_step_(*state, RULES[0])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_mistakes_are_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    state = random_state((3, 2))
    with pytest.raises(ValueError, match=r"chosen must have the shape \(3,\), got \(2,\)"):
        adam_rows_step_(*state[:5], state[5][:2], RULES[0])
    with pytest.raises(ValueError, match=r"exp_avg must have the shape \(3, 2\), got \(3, 1\)"):
        adam_rows_step_(*state[:2], state[2][:, :1], *state[3:], RULES[0])


@pytest.mark.skipif(native.module is None, reason="the native kernels are not built")
def test_binding_checks_sizes():
    state = random_state((3, 2))
    with pytest.raises(ValueError, match="row_steps must have size 3 on axis 0, got 2"):
        native.module.adam_rows_step(
            *state[:4], state[4][:2], state[5], 0.1, 0.9, 0.99, 1e-8, 0.0, False, 1
        )
