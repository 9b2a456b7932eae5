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

@overload
def hash_grid_forward(positions: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], directions: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)] | None, table: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], scales: Sequence[float], resolutions: Sequence[int], offsets: Sequence[int], is_smooth: bool, active_levels: int, features: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu')], num_threads: int) -> None: ...

@overload
def hash_grid_forward(positions: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], directions: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)] | None, table: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], scales: Sequence[float], resolutions: Sequence[int], offsets: Sequence[int], is_smooth: bool, active_levels: int, features: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu')], num_threads: int) -> None:
    """Fill features, or with directions their directional derivative."""

@overload
def hash_grid_backward_table(positions: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], directions: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)] | None, grad_features: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], scales: Sequence[float], resolutions: Sequence[int], offsets: Sequence[int], is_smooth: bool, active_levels: int, grad_table: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu')], num_threads: int) -> None: ...

@overload
def hash_grid_backward_table(positions: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], directions: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)] | None, grad_features: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], scales: Sequence[float], resolutions: Sequence[int], offsets: Sequence[int], is_smooth: bool, active_levels: int, grad_table: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu')], num_threads: int) -> None:
    """
    Fill grad_table, the gradient of the features or of their directional derivative.
    """

@overload
def hash_grid_backward_positions(positions: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], directions: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)] | None, table: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], grad_features: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], scales: Sequence[float], resolutions: Sequence[int], offsets: Sequence[int], is_smooth: bool, active_levels: int, grad_positions: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu')], num_threads: int) -> None: ...

@overload
def hash_grid_backward_positions(positions: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], directions: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)] | None, table: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], grad_features: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], scales: Sequence[float], resolutions: Sequence[int], offsets: Sequence[int], is_smooth: bool, active_levels: int, grad_positions: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu')], num_threads: int) -> None:
    """
    Fill grad_positions, the gradient of the features or of their directional derivative.
    """

@overload
def cull_count(sigma: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], delta: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], ray_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu', writable=False)], max_depth: float, min_tau: float, new_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu')], num_threads: int) -> None: ...

@overload
def cull_count(sigma: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], delta: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], ray_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu', writable=False)], max_depth: float, min_tau: float, new_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu')], num_threads: int) -> None:
    """First pass: fill new_offsets."""

@overload
def cull_write(sigma: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], delta: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], ray_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu', writable=False)], max_depth: float, min_tau: float, new_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu', writable=False)], kept: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu')], num_threads: int) -> None: ...

@overload
def cull_write(sigma: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], delta: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], ray_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu', writable=False)], max_depth: float, min_tau: float, new_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu', writable=False)], kept: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu')], num_threads: int) -> None:
    """
    Second pass: fill kept with the indices of the samples that can be seen.
    """

@overload
def distortion_forward(weights: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], t: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], delta: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], ray_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu', writable=False)], loss: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')], num_threads: int) -> None: ...

@overload
def distortion_forward(weights: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], t: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], delta: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], ray_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu', writable=False)], loss: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')], num_threads: int) -> None:
    """Fill loss, one number per ray; see diorama.ops.distortion."""

@overload
def distortion_backward(weights: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], t: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], delta: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], ray_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu', writable=False)], grad_loss: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], grad_weights: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')] | None, grad_t: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')] | None, grad_delta: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')] | None, num_threads: int) -> None: ...

@overload
def distortion_backward(weights: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], t: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], delta: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], ray_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu', writable=False)], grad_loss: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], grad_weights: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')] | None, grad_t: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')] | None, grad_delta: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')] | None, num_threads: int) -> None:
    """Fill those of grad_weights, grad_t and grad_delta that are not None."""

MARCH_RUNS: int = 8

def march_num_words(num_levels: int, resolution: int) -> int:
    """Size of the array that march_pack fills."""

def march_pack(is_occupied: Annotated[torch.Tensor, dict(dtype='bool', shape=(None, None, None, None), order='C', device='cpu', writable=False)], words: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu')], num_threads: int) -> None:
    """
    Fill words with the bits of the cells, as the two passes below want them.
    """

@overload
def march_count(origins: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], directions: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], near: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], far: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], jitter: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)] | None, words: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu')], num_levels: int, resolution: int, low: Sequence[float], high: Sequence[float], step: float, cone: float, max_samples: int, runs: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None, None), order='C', device='cpu')], ray_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu')], t_next: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')], num_threads: int) -> None: ...

@overload
def march_count(origins: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], directions: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], near: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], far: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], jitter: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)] | None, words: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu')], num_levels: int, resolution: int, low: Sequence[float], high: Sequence[float], step: float, cone: float, max_samples: int, runs: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None, None), order='C', device='cpu')], ray_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu')], t_next: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')], num_threads: int) -> None:
    """First pass: fill runs, ray_offsets and t_next."""

@overload
def march_write(origins: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], directions: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], near: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], far: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], jitter: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)] | None, words: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu')], num_levels: int, resolution: int, low: Sequence[float], high: Sequence[float], step: float, cone: float, runs: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None, None), order='C', device='cpu')], ray_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu', writable=False)], t: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')], delta: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')], ray: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu')], num_threads: int) -> None: ...

@overload
def march_write(origins: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], directions: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], near: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], far: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], jitter: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)] | None, words: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu')], num_levels: int, resolution: int, low: Sequence[float], high: Sequence[float], step: float, cone: float, runs: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None, None), order='C', device='cpu')], ray_offsets: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu', writable=False)], t: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')], delta: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')], ray: Annotated[torch.Tensor, dict(dtype='int64', shape=(None,), order='C', device='cpu')], num_threads: int) -> None:
    """Second pass: fill t, delta and ray from the first one's runs."""

@overload
def adam_step(parameter: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')], gradient: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)], exp_avg: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')], exp_avg_sq: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu')], touched: Annotated[torch.Tensor, dict(dtype='bool', shape=(None,), order='C', device='cpu')], lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, bias_correction1: float, bias_correction2: float, is_decoupled: bool, num_threads: int) -> None: ...

@overload
def adam_step(parameter: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')], gradient: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], exp_avg: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')], exp_avg_sq: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu')], touched: Annotated[torch.Tensor, dict(dtype='bool', shape=(None,), order='C', device='cpu')], lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, bias_correction1: float, bias_correction2: float, is_decoupled: bool, num_threads: int) -> None:
    """
    Update parameter, exp_avg, exp_avg_sq and touched in place; see diorama.ops.adam.
    """

@overload
def invert_cdf(edges: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], u: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)] | None, jitter: Annotated[torch.Tensor, dict(dtype='float32', shape=(None,), order='C', device='cpu', writable=False)] | None, padding: float, smallest_step: float, samples: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu')], num_threads: int) -> None: ...

@overload
def invert_cdf(edges: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], u: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)] | None, jitter: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)] | None, padding: float, smallest_step: float, samples: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu')], num_threads: int) -> None:
    """Fill samples; see diorama.ops.sample_pdf."""

@overload
def spherical_harmonics_forward(directions: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], num_bands: int, values: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu')], num_threads: int) -> None: ...

@overload
def spherical_harmonics_forward(directions: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], num_bands: int, values: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu')], num_threads: int) -> None:
    """Fill values; see diorama.ops.spherical_harmonics."""

@overload
def spherical_harmonics_backward(directions: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], grad_values: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu', writable=False)], num_bands: int, grad_directions: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None), order='C', device='cpu')], num_threads: int) -> None: ...

@overload
def spherical_harmonics_backward(directions: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], grad_values: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu', writable=False)], num_bands: int, grad_directions: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None), order='C', device='cpu')], num_threads: int) -> None:
    """Fill grad_directions."""

@overload
def ssim_forward(a: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None, None), order='C', device='cpu', writable=False)], b: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None, None), order='C', device='cpu', writable=False)], window: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], is_padded: bool, by_mean_a: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None, None), order='C', device='cpu')] | None, by_mean_b: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None, None), order='C', device='cpu')] | None, by_squares: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None, None), order='C', device='cpu')] | None, by_product: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None, None), order='C', device='cpu')] | None, num_threads: int) -> float: ...

@overload
def ssim_forward(a: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None, None), order='C', device='cpu', writable=False)], b: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None, None), order='C', device='cpu', writable=False)], window: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], is_padded: bool, by_mean_a: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None, None), order='C', device='cpu')] | None, by_mean_b: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None, None), order='C', device='cpu')] | None, by_squares: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None, None), order='C', device='cpu')] | None, by_product: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None, None), order='C', device='cpu')] | None, num_threads: int) -> float:
    """
    Return the mean similarity and fill those maps that are not None; see diorama.ops.ssim.
    """

@overload
def ssim_backward(a: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None, None), order='C', device='cpu', writable=False)], b: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None, None), order='C', device='cpu', writable=False)], window: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], is_padded: bool, by_mean_a: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None, None), order='C', device='cpu', writable=False)] | None, by_mean_b: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None, None), order='C', device='cpu', writable=False)] | None, by_squares: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None, None), order='C', device='cpu', writable=False)] | None, by_product: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None, None), order='C', device='cpu', writable=False)] | None, scale: float, grad_a: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None, None), order='C', device='cpu')] | None, grad_b: Annotated[torch.Tensor, dict(dtype='float32', shape=(None, None, None), order='C', device='cpu')] | None, num_threads: int) -> None: ...

@overload
def ssim_backward(a: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None, None), order='C', device='cpu', writable=False)], b: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None, None), order='C', device='cpu', writable=False)], window: Annotated[torch.Tensor, dict(dtype='float64', shape=(None,), order='C', device='cpu', writable=False)], is_padded: bool, by_mean_a: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None, None), order='C', device='cpu', writable=False)] | None, by_mean_b: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None, None), order='C', device='cpu', writable=False)] | None, by_squares: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None, None), order='C', device='cpu', writable=False)] | None, by_product: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None, None), order='C', device='cpu', writable=False)] | None, scale: float, grad_a: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None, None), order='C', device='cpu')] | None, grad_b: Annotated[torch.Tensor, dict(dtype='float64', shape=(None, None, None), order='C', device='cpu')] | None, num_threads: int) -> None:
    """Fill those of grad_a and grad_b that are not None."""
