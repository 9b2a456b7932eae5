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
