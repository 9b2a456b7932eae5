# SPDX-License-Identifier: Apache-2.0
"""Multiresolution hash grid: features of N points, interpolated on L grids in one table.

On each level (see `hash_grid_layout`) a point x of the unit cube lies at p = scale x + 1/2, in the
cell c = floor(p) with fraction t = p - c, and has the features

    f(x) = sum over corners k in {0, 1}^3 of  w_k table[index(c + k)],
    w_k = prod over axes a of  (h(t_a) if k_a else 1 - h(t_a)),

with h(t) = t (linear) or t^2 (3 - 2 t) (smoothstep). A vertex (x, y, z) of a dense level has the
index x + y r + z r^2, of a hashed one x xor 2654435761 y xor 805459861 z, each modulo the level's
length. Points outside of the cube are moved to its border, and their gradient is zero.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from diorama import native
from diorama.ops.hash_grid_layout import HashGridLayout

Interpolation = Literal["linear", "smoothstep"]


def hash_grid_reference(
    positions: Float[Tensor, "N 3"],
    table: Float[Tensor, "T F"],
    layout: HashGridLayout,
    interpolation: Interpolation = "linear",
    active_levels: int | None = None,
) -> Float[Tensor, "N LF"]:
    """The module's formulas in torch, differentiable any number of times."""
    num_active = layout.num_levels if active_levels is None else active_levels

    def of_levels(numbers: tuple) -> Tensor:
        return torch.tensor(numbers, device=table.device)[:num_active]

    scales = of_levels(layout.scales).to(table.dtype)
    scaled = positions.clamp(0, 1)[:, None] * scales[:, None] + 0.5
    cell = scaled.detach().floor()
    upper = scaled - cell
    if interpolation == "smoothstep":
        upper = upper * upper * (3 - 2 * upper)

    corner = torch.tensor([[c & 1, c >> 1 & 1, c >> 2] for c in range(8)], device=table.device)
    factors = torch.where(corner == 1, upper[:, :, None], 1 - upper[:, :, None])
    weights = factors[..., 0] * factors[..., 1] * factors[..., 2]

    # A NaN stays in the weights; the index must be a valid one.
    x, y, z = (cell.nan_to_num().long()[:, :, None] + corner).unbind(-1)
    resolution, length, offset, is_dense = (
        of_levels(numbers)[:, None]
        for numbers in (
            layout.resolutions,
            tuple(b - a for a, b in pairwise(layout.offsets)),
            layout.offsets[:-1],
            layout.is_dense,
        )
    )
    dense_index = x + resolution * (y + resolution * z)
    hashed_index = x ^ (y * 2654435761) ^ (z * 805459861)
    index = torch.where(is_dense, dense_index, hashed_index) % length + offset

    features = (weights[..., None] * table[index]).sum(2).flatten(1)
    num_inactive = layout.output_size - features.shape[1]
    return torch.nn.functional.pad(features, (0, num_inactive))


def hash_grid(
    positions: Float[Tensor, "N 3"],
    table: Float[Tensor, "T F"],
    layout: HashGridLayout,
    interpolation: Interpolation = "linear",
    active_levels: int | None = None,
    known: Float[Tensor, "N LF"] | None = None,
) -> Float[Tensor, "N LF"]:
    """Features of points of the unit cube; twice differentiable in positions and table.

    Levels from `active_levels` on give zeros and get no gradient. `known` are the features that
    an earlier call without gradients gave for these very arguments: they become the result, now
    with gradients, and are not computed again.

    >>> layout = HashGridLayout.of(1, 1, 3, base_resolution=2, max_resolution=2)
    >>> hash_grid(torch.tensor([[0.0, 0.5, 0.5]]), torch.arange(8.0)[:, None], layout)
    tensor([[3.5000]])
    """
    expected = (layout.num_entries, layout.num_features)
    if table.shape != expected:
        raise ValueError(f"table must have the layout's shape {expected}, got {tuple(table.shape)}")
    num_active = layout.num_levels if active_levels is None else active_levels
    if not 0 <= num_active <= layout.num_levels:
        raise ValueError(f"active_levels must be 0 to {layout.num_levels}, got {num_active}")
    if interpolation not in ("linear", "smoothstep"):
        raise ValueError(f"interpolation must be linear or smoothstep, got {interpolation!r}")
    if not native.serves(positions, table):
        return hash_grid_reference(positions, table, layout, interpolation, num_active)
    return _HashGrid.apply(positions, table, _Grid(layout, interpolation, num_active), known)


@dataclass(frozen=True)
class _Grid:
    """The native kernels of one grid; with `directions` they take the features' derivative along
    them, one for each point, in place of the features."""

    layout: HashGridLayout
    interpolation: Interpolation
    num_active: int

    @property
    def _arguments(self) -> dict[str, Any]:
        return {
            "scales": self.layout.scales,
            "resolutions": self.layout.resolutions,
            "offsets": self.layout.offsets,
            "is_smooth": self.interpolation == "smoothstep",
            "active_levels": self.num_active,
            "num_threads": native.num_threads(),
        }

    def features(self, positions: Tensor, table: Tensor, directions: Tensor | None) -> Tensor:
        features = table.new_empty(len(positions), self.layout.output_size)
        native.module.hash_grid_forward(
            positions=_plain(positions),
            directions=_plain(directions),
            table=_plain(table),
            features=features,
            **self._arguments,
        )
        return features

    def grad_table(self, positions: Tensor, grad: Tensor, directions: Tensor | None) -> Tensor:
        grad_table = grad.new_empty(self.layout.num_entries, self.layout.num_features)
        native.module.hash_grid_backward_table(
            positions=_plain(positions),
            directions=_plain(directions),
            grad_features=_plain(grad),
            grad_table=grad_table,
            **self._arguments,
        )
        return grad_table

    def grad_positions(
        self, positions: Tensor, table: Tensor, grad: Tensor, directions: Tensor | None
    ) -> Tensor:
        grad_positions = torch.empty_like(positions, memory_format=torch.contiguous_format)
        native.module.hash_grid_backward_positions(
            positions=_plain(positions),
            directions=_plain(directions),
            table=_plain(table),
            grad_features=_plain(grad),
            grad_positions=grad_positions,
            **self._arguments,
        )
        return grad_positions


def _plain(tensor: Tensor | None) -> Any:
    return None if tensor is None else tensor.detach().contiguous()


class _HashGrid(torch.autograd.Function):
    """(x, table) -> f."""

    @staticmethod
    def forward(
        ctx: Any, positions: Tensor, table: Tensor, grid: _Grid, known: Tensor | None
    ) -> Tensor:
        ctx.save_for_backward(positions, table)
        ctx.grid = grid
        return grid.features(positions, table, None) if known is None else known.clone()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Tensor | None, ...]:
        positions, table = ctx.saved_tensors
        wanted = ctx.needs_input_grad[:2]
        gradients = _HashGridBackward.apply(*grad_outputs, positions, table, ctx.grid, wanted)
        return *gradients, None, None


class _HashGridBackward(torch.autograd.Function):
    """(g, x, table) -> gradients of g . f(x, table) with respect to x and table."""

    @staticmethod
    def forward(
        ctx: Any,
        grad: Tensor,
        positions: Tensor,
        table: Tensor,
        grid: _Grid,
        wanted: tuple[bool, bool],
    ) -> tuple[Tensor | None, Tensor | None]:
        ctx.save_for_backward(grad, positions, table)
        ctx.grid = grid
        ctx.set_materialize_grads(False)
        return (
            grid.grad_positions(positions, table, grad, None) if wanted[0] else None,
            grid.grad_table(positions, grad, None) if wanted[1] else None,
        )

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Tensor | None, ...]:
        """Gradients of g . f'(x, table) v + g . f(x, u), for v = `along` and u = `like_table`."""
        along, like_table = grad_outputs
        if torch.is_grad_enabled():
            raise RuntimeError(
                "The native hash grid is differentiable twice; call hash_grid_reference where a "
                "third derivative is needed."
            )
        grad, positions, table = ctx.saved_tensors
        grid: _Grid = ctx.grid
        for_grad, for_positions, for_table = None, None, None
        if along is not None:
            if ctx.needs_input_grad[0]:
                for_grad = grid.features(positions, table, along)
            if ctx.needs_input_grad[1]:
                for_positions = grid.grad_positions(positions, table, grad, along)
            if ctx.needs_input_grad[2]:
                for_table = grid.grad_table(positions, grad, along)
        if like_table is not None:
            if ctx.needs_input_grad[0]:
                for_grad = _sum(for_grad, grid.features(positions, like_table, None))
            if ctx.needs_input_grad[1]:
                from_table = grid.grad_positions(positions, like_table, grad, None)
                for_positions = _sum(for_positions, from_table)
        return for_grad, for_positions, for_table, None, None


def _sum(a: Tensor | None, b: Tensor) -> Tensor:
    return b if a is None else a + b
