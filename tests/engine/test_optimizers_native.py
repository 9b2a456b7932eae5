# SPDX-License-Identifier: Apache-2.0
"""The native Adam and AdamW follow torch's, share their state, and step aside where they must."""

import copy

import pytest
import torch
from torch import Tensor, nn

from diorama import native
from diorama.engine.native_adam import NativeAdam, NativeAdamW

PAIRS = [(NativeAdam, torch.optim.Adam), (NativeAdamW, torch.optim.AdamW)]


def gradient(step: int) -> Tensor:
    """Reaches one more stretch of the table at every step."""
    generator = torch.Generator().manual_seed(step)
    values = torch.randn(2000, generator=generator)
    values[300 * (step + 1) :] = 0
    return values.view(500, 4)


def run(optimizer: torch.optim.Optimizer, steps: range) -> Tensor:
    (parameter,) = optimizer.param_groups[0]["params"]
    for step in steps:
        parameter.grad = gradient(step).to(parameter.dtype)
        optimizer.step()
    return parameter.detach()


def table() -> nn.Parameter:
    return nn.Parameter(torch.linspace(-1, 1, 2000).view(500, 4).clone())


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize(("ours", "torchs"), PAIRS)
def test_follows_torch(ours, torchs, weight_decay: float):
    options = {"lr": 0.01, "betas": (0.9, 0.99), "weight_decay": weight_decay}
    got = run(ours([table()], **options), range(8))
    for is_fused in (False, True):
        expected = run(torchs([table()], fused=is_fused, **options), range(8))
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("ours", "torchs"), PAIRS)
def test_state_passes_to_torch_and_back(ours, torchs):
    expected = run(ours([table()], lr=0.01), range(8))
    parameter = table()
    for kind, steps in ((ours, range(3)), (torchs, range(3, 5)), (ours, range(5, 8))):
        optimizer = kind([parameter], lr=0.01, fused=True)
        if steps.start:
            optimizer.load_state_dict(state)
        run(optimizer, steps)
        state = copy.deepcopy(optimizer.state_dict())
        assert {k: v.dtype for k, v in state["state"][0].items()} == {
            "step": torch.float32, "exp_avg": torch.float32, "exp_avg_sq": torch.float32
        }  # fmt: skip
    torch.testing.assert_close(parameter.detach(), expected, rtol=1e-5, atol=1e-6)


def test_restored_state_goes_on_with_the_same_bits():
    whole = run(NativeAdam([table()], lr=0.01), range(8))
    parameter = table()
    first = NativeAdam([parameter], lr=0.01)
    run(first, range(4))
    second = NativeAdam([parameter], lr=0.01)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    assert torch.equal(run(second, range(4, 8)), whole)


def test_moments_written_by_others_are_noticed():
    """Also where no gradient has been: the block must not be taken for untouched any more."""
    parameter = table()
    optimizer = NativeAdam([parameter], lr=0.01)
    run(optimizer, range(1))
    before = parameter[-1].detach().clone()
    optimizer.state[parameter]["exp_avg"][-1] = 1.0
    run(optimizer, range(1, 2))
    assert (parameter[-1] != before).all()


def test_a_copied_optimizer_steps():
    optimizer = NativeAdam([table()], lr=0.01)
    run(optimizer, range(2))
    assert torch.equal(run(copy.deepcopy(optimizer), range(2, 4)), run(optimizer, range(2, 4)))


@pytest.mark.parametrize(("ours", "torchs"), PAIRS)
def test_torch_serves_without_the_kernels(ours, torchs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(native, "module", None)
    got = run(ours([table()], lr=0.01, fused=True), range(3))
    assert torch.equal(got, run(torchs([table()], lr=0.01, fused=True), range(3)))


@pytest.mark.parametrize("options", [{"amsgrad": True}, {"maximize": True}])
def test_torch_serves_what_the_kernel_cannot(options: dict[str, bool]):
    got = run(NativeAdam([table()], lr=0.01, **options), range(3))
    assert torch.equal(got, run(torch.optim.Adam([table()], lr=0.01, **options), range(3)))


def test_half_precision_is_served_by_torch():
    rows = [nn.Parameter(table().detach().bfloat16()) for _ in range(2)]
    got = run(NativeAdam([rows[0]], lr=0.01), range(3))
    assert torch.equal(got, run(torch.optim.Adam([rows[1]], lr=0.01), range(3)))


def test_parameters_without_a_gradient_are_left_alone():
    used, unused = table(), table()
    used.grad = gradient(0)
    NativeAdam([used, unused], lr=0.01).step()
    assert torch.equal(unused, table())
    assert not torch.equal(used, table())
