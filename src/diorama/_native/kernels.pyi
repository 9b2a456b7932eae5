"""Diorama's native kernels: Python allocates, these functions fill."""

from collections.abc import Sequence
from typing import Annotated, overload

import torch


@overload
def composite_forward(sigma: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], delta: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], ray_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')], transmittance: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')], ray_values: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu')], opacity: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')], num_threads: int) -> None: ...

@overload
def composite_forward(sigma: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], delta: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], ray_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')], transmittance: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')], ray_values: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu')], opacity: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')], num_threads: int) -> None:
    """
    Fill weights, transmittance, ray_values and opacity; see diorama.ops.composite.
    """

@overload
def composite_backward(sigma: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], delta: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], ray_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], transmittance: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], grad_weights: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)] | None, grad_ray_values: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], grad_opacity: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], grad_sigma: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')] | None, grad_delta: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')] | None, grad_values: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu')] | None, num_threads: int) -> None: ...

@overload
def composite_backward(sigma: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], delta: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], ray_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], transmittance: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], grad_weights: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)] | None, grad_ray_values: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], grad_opacity: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], grad_sigma: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')] | None, grad_delta: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')] | None, grad_values: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu')] | None, num_threads: int) -> None:
    """
    Fill those of grad_sigma, grad_delta and grad_values that are not None.
    """

@overload
def fused_mlp_hidden_size(x: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], weights: Sequence[Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)]]) -> int: ...

@overload
def fused_mlp_hidden_size(x: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], weights: Sequence[Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)]]) -> int:
    """Size of the array `hidden` of forward and backward."""

@overload
def fused_mlp_forward(x: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], weights: Sequence[Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)]], biases: Sequence[Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)]], activation: str, head: str, beta: float, out: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu')], hidden: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')] | None, num_threads: int) -> None: ...

@overload
def fused_mlp_forward(x: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], weights: Sequence[Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)]], biases: Sequence[Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)]], activation: str, head: str, beta: float, out: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu')], hidden: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')] | None, num_threads: int) -> None:
    """
    Fill out, and hidden unless it is None. biases is empty or has one entry per layer.
    """

@overload
def fused_mlp_backward(x: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], weights: Sequence[Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)]], biases: Sequence[Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)]], activation: str, head: str, beta: float, out: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], hidden: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)] | None, grad_out: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], grad_x: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu')] | None, grad_weights: Sequence[Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu')]], grad_biases: Sequence[Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')]], num_threads: int) -> None: ...

@overload
def fused_mlp_backward(x: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], weights: Sequence[Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)]], biases: Sequence[Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)]], activation: str, head: str, beta: float, out: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], hidden: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)] | None, grad_out: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], grad_x: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu')] | None, grad_weights: Sequence[Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu')]], grad_biases: Sequence[Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')]], num_threads: int) -> None:
    """
    Fill grad_x unless it is None, and grad_weights and grad_biases unless they are empty.
    """
