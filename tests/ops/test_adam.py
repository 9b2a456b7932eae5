# SPDX-License-Identifier: Apache-2.0
"""The Adam kernel against its reference, torch's optimisers and Adam's closed form."""

import math
import platform

import pytest
import torch
from torch import Tensor

from diorama import native
from diorama.ops.adam import BLOCK, AdamRule, adam_step_, adam_step_reference_, touched_blocks

RULES = [
    AdamRule(lr=0.01),
    AdamRule(lr=0.01, beta1=0.8, beta2=0.99, eps=1e-15),
    AdamRule(lr=0.1, weight_decay=0.1),
    AdamRule(lr=0.1, weight_decay=0.1, is_decoupled=True),
]


def random_state(count: int, share: float = 1.0) -> list[Tensor]:
    """Parameter, gradient and moments; moments and gradient live in a share of the blocks."""
    generator = torch.Generator().manual_seed(count)
    parameter, gradient, first, second = torch.randn(4, count, generator=generator)
    is_alive = torch.rand(count // BLOCK + 1, generator=generator) < share
    alive = is_alive.repeat_interleave(BLOCK)[:count]
    gradient_alive = alive & (torch.rand(count, generator=generator) < 0.5)
    zero = torch.zeros(())
    moments = [torch.where(alive, t, zero) for t in (first, second.square())]
    return [parameter, torch.where(gradient_alive, gradient, zero), *moments]


@pytest.mark.usefixtures("build")
class TestKernel:
    @pytest.mark.parametrize("rule", RULES, ids=str)
    @pytest.mark.parametrize("count", [0, 1, 33, BLOCK, 5 * BLOCK + 7, 50_003])
    def test_matches_reference(self, count: int, rule: AdamRule):
        state = random_state(count)
        exact = [t.double() for t in state]
        adam_step_(*state, 3, rule)
        adam_step_reference_(*exact, 3, rule)
        for got, expected in zip(state, exact, strict=True):
            torch.testing.assert_close(got.double(), expected, rtol=2e-6, atol=1e-6)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    @pytest.mark.parametrize("rule", RULES, ids=str)
    def test_skipping_changes_no_bit_on_any_number_of_threads(
        self, rule: AdamRule, dtype: torch.dtype
    ):
        state = [t.to(dtype) for t in random_state(300 * BLOCK + 5, share=0.3)]
        state[0][::3] = -0.0
        state[1][::5] *= -0.0
        integer = torch.int32 if dtype == torch.float32 else torch.int64
        dense = [t.clone() for t in state]
        adam_step_(*dense, 2, rule)
        for num_threads in (1, 2, 3):
            torch.set_num_threads(num_threads)
            skipped = [t.clone() for t in state]
            touched = touched_blocks(*skipped[2:])
            assert 0 < touched.sum() < len(touched)
            adam_step_(*skipped, 2, rule, touched)
            for got, expected in zip(skipped, dense, strict=True):
                assert torch.equal(got.view(integer), expected.view(integer))
            assert (touched | ~touched_blocks(*skipped[2:])).all()

    def test_untouched_blocks_are_not_written(self):
        """Nor are their moments read: a NaN that the map denies has no effect."""
        parameter, gradient, first, second = torch.zeros(4, 3 * BLOCK)
        gradient[BLOCK + 3] = 1.0
        first[0] = second[0] = math.nan
        touched = torch.zeros(3, dtype=torch.bool)
        adam_step_(parameter, gradient, first, second, 1, AdamRule(lr=0.5), touched)
        assert touched.tolist() == [False, True, False]
        assert parameter.nonzero().tolist() == [[BLOCK + 3]]

    def test_weight_decay_reaches_everything(self):
        parameter = torch.ones(2 * BLOCK)
        state = [torch.zeros(2 * BLOCK) for _ in range(3)]
        touched = torch.zeros(2, dtype=torch.bool)
        rule = AdamRule(lr=0.5, weight_decay=0.1, is_decoupled=True)
        adam_step_(parameter, *state, 1, rule, touched)
        torch.testing.assert_close(parameter, torch.full((2 * BLOCK,), 0.95))

    @pytest.mark.skipif(
        platform.machine().lower() not in {"x86_64", "amd64"}, reason="others flush nothing"
    )
    def test_shrinking_moments_become_zero_and_torch_keeps_its_mode(self):
        """A gradient met once leaves moments that would stay denormal for thousands of steps."""
        state = [torch.zeros(BLOCK), torch.zeros(BLOCK), *torch.full((2, BLOCK), 1e-39)]
        adam_step_(*state, 1000, AdamRule(lr=0.1), torch.ones(1, dtype=torch.bool))
        assert not state[2].any()
        assert not state[3].any()
        assert torch.tensor(1e-30) * 1e-10 > 0

    def test_nan_is_not_hidden(self):
        state = [torch.zeros(BLOCK) for _ in range(4)]
        state[1][7] = math.nan
        adam_step_(*state, 1, AdamRule(lr=0.1), torch.zeros(1, dtype=torch.bool))
        assert state[0].isnan().nonzero().tolist() == [[7]]


@pytest.mark.parametrize("step", [adam_step_, adam_step_reference_])
def test_constant_gradient_moves_by_the_rate(step):
    """With a constant gradient both corrected moments are exact: each step has length lr."""
    parameter, gradient = torch.zeros(300), torch.full((300,), 0.3)
    first, second = torch.zeros(2, 300)
    for count in range(1, 11):
        step(parameter, gradient, first, second, count, AdamRule(lr=0.01))
    torch.testing.assert_close(parameter, torch.full((300,), -0.1))


def test_strided_tensors_are_taken():
    state = [t.view(-1, 2).T for t in random_state(600)]
    copies = [t.double() for t in state]
    adam_step_(*state, 1, RULES[0])
    adam_step_reference_(*copies, 1, RULES[0])
    torch.testing.assert_close(state[0].double(), copies[0], rtol=2e-6, atol=1e-6)


def test_change_is_seen_by_autograd():
    parameter = torch.ones(3, requires_grad=True)
    loss = (parameter**2).sum()
    adam_step_(parameter, torch.ones(3), torch.zeros(3), torch.zeros(3), 1, RULES[0])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.skipif(native.module is None, reason="the native kernels are not built")
def test_wrong_number_of_blocks_is_named():
    state = random_state(BLOCK + 1)
    with pytest.raises(ValueError, match="touched must have size 2 on axis 0, got 1"):
        adam_step_(*state, 1, RULES[0], torch.zeros(1, dtype=torch.bool))
