"""Diorama's native kernels: Python allocates, these functions fill."""

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
def adam_step(parameter: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')], gradient: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], exp_avg: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')], exp_avg_sq: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')], touched: Annotated[torch.Tensor, dict(dtype='bool', shape=(None,), order='C', device='cpu')], lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, bias_correction1: float, bias_correction2: float, is_decoupled: bool, num_threads: int) -> None: ...

@overload
def adam_step(parameter: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')], gradient: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], exp_avg: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')], exp_avg_sq: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')], touched: Annotated[torch.Tensor, dict(dtype='bool', shape=(None,), order='C', device='cpu')], lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, bias_correction1: float, bias_correction2: float, is_decoupled: bool, num_threads: int) -> None:
    """
    Update parameter, exp_avg, exp_avg_sq and touched in place; see diorama.ops.adam.
    """
