# SPDX-License-Identifier: Apache-2.0
"""The test that every kernel must pass: it agrees with its reference, whatever the threads."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def tensors_of(result: Any) -> tuple[Tensor, ...]:
    """The tensors of what an op returns: a tensor, a tuple or a dataclass of them."""
    if isinstance(result, Tensor):
        return (result,)
    if dataclasses.is_dataclass(result):
        return tuple(getattr(result, field.name) for field in dataclasses.fields(result))
    return tuple(result)


def values_and_gradients(
    op: Callable[..., Any], inputs: Sequence[Tensor], dtype: torch.dtype
) -> list[Tensor]:
    """All outputs, and the gradients of all floating inputs through all outputs at once.

    The outputs' cotangents are random, but the same for both dtypes.
    """
    inputs = [t.detach().to(dtype if t.is_floating_point() else t.dtype) for t in inputs]
    inputs = [t.clone().requires_grad_(t.is_floating_point()) for t in inputs]
    outputs = tensors_of(op(*inputs))
    generator = torch.Generator().manual_seed(1)
    cotangents = [torch.randn(t.shape, generator=generator).to(dtype) for t in outputs]
    wanted = [t for t in inputs if t.requires_grad]
    gradients = torch.autograd.grad(outputs, wanted, cotangents)
    return [*(t.detach() for t in outputs), *gradients]


def assert_parity(
    op: Callable[..., Any],
    reference: Callable[..., Any],
    *inputs: Tensor,
    rtol: float = 2e-5,
    atol: float = 2e-6,
) -> None:
    """The float32 op agrees with the float64 reference in values and every gradient, and gives
    the same bits on 1 and 2 threads. `atol` is relative to the largest number of each tensor."""
    expected = values_and_gradients(reference, inputs, torch.float64)
    torch.set_num_threads(1)
    on_one_thread = values_and_gradients(op, inputs, torch.float32)
    torch.set_num_threads(2)
    on_two_threads = values_and_gradients(op, inputs, torch.float32)
    for k, (one, two, exact) in enumerate(
        zip(on_one_thread, on_two_threads, expected, strict=True)
    ):
        assert one.dtype == torch.float32
        scale = exact.abs().max().item() if exact.numel() else 0.0
        torch.testing.assert_close(
            one.double(), exact, rtol=rtol, atol=atol * scale, msg=lambda m, k=k: f"result {k}: {m}"
        )
        assert torch.equal(one, two), f"result {k} differs between 1 and 2 threads"
