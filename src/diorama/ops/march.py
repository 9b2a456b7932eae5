# SPDX-License-Identifier: Apache-2.0
"""Samples of rays in the occupied cells of nested grids, on one fixed lattice per ray.

    t_0 = near + jitter dt(near),   dt(t) = max(step, cone t),   t_{k+1} = t_k + dt(t_k)

An interval [t_k, t_{k+1}], cut off at far, counts if its midpoint lies in an occupied cell. Level
g's box is that of level 0 scaled by 2^g about its centre; a point belongs to the finest level whose
box (without its upper faces) holds it, and outside of the coarsest there are no samples. The
lattice does not depend on boxes or cells: what lies in empty ones is left out, nothing is shifted.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn import functional

from diorama import native

Box = tuple[tuple[float, float, float], tuple[float, float, float]]
"""Lower and upper corner."""

MAX_LEVELS = 16  # of the kernel
NO_LIMIT = 1 << 62
COLUMNS = 64  # lattice intervals that the reference looks up at a time


@dataclass(frozen=True)
class Marched:
    """N samples of R rays, packed, front to back."""

    t: Float[Tensor, " N"]
    """Midpoint of the sample's interval."""
    delta: Float[Tensor, " N"]
    """Its length."""
    ray: Int64[Tensor, " N"]
    ray_offsets: Int64[Tensor, " R_plus_1"]
    t_next: Float[Tensor, " R"]
    """Where a ray's lattice goes on: as `near` of the next call, without jitter, it gives the
    samples that `max_samples` cut off. A finished ray has its far here."""


@dataclass(frozen=True)
class _Rays:
    """The arguments of `march`, checked."""

    origins: Float[Tensor, "R 3"]
    directions: Float[Tensor, "R 3"]
    is_occupied: Bool[Tensor, "levels r r r"]
    box: Box
    near: Float[Tensor, " R"]
    far: Float[Tensor, " R"]
    step: float
    cone: float
    jitter: Float[Tensor, " R"] | None
    max_samples: int

    def first_edge(self) -> Float[Tensor, " R"]:
        if self.jitter is None:
            return self.near
        return self.near + self.jitter * (self.cone * self.near).clamp(min=self.step)

    def end(self) -> Float[Tensor, " R"]:
        """Far, or where a ray leaves the coarsest box if that comes first.

        A ray without a direction never leaves and has no samples: it ends before it starts.
        """
        low, high = (self.near.new_tensor(corner) for corner in self.box)
        center, half = 0.5 * (low + high), 0.5 * (high - low) * 2 ** (len(self.is_occupied) - 1)
        one, other = ((center + s * half - self.origins) / self.directions for s in (-1, 1))
        leave = torch.maximum(one, other).nan_to_num(torch.inf, torch.inf).amin(dim=1)
        return torch.where(leave.isfinite(), torch.minimum(self.far, leave), -torch.inf)


@torch.no_grad()
def march_reference(
    origins: Float[Tensor, "R 3"],
    directions: Float[Tensor, "R 3"],
    is_occupied: Bool[Tensor, "levels r r r"],
    box: Box,
    near: Float[Tensor, " R"],
    far: Float[Tensor, " R"],
    step: float,
    cone: float = 0.0,
    jitter: Float[Tensor, " R"] | None = None,
    max_samples: int | None = None,
) -> Marched:
    """`march` in torch: every lattice point is looked up, a few columns of the table at a time."""
    rays = _checked(
        origins, directions, is_occupied, box, near, far, step, cone, jitter, max_samples
    )
    end = rays.end()
    samples = [_occupied_of(rays, end, edges) for edges in _lattice(rays, end)]
    num_rays = len(origins)
    if not samples:
        none = near.new_zeros(0)
        offsets = torch.zeros(num_rays + 1, dtype=torch.int64, device=near.device)
        return Marched(none, none, offsets[:0], offsets, far.clone())
    ray, start, next_start = (torch.cat(parts) for parts in zip(*samples, strict=True))
    ray, order = ray.sort(stable=True)
    start, next_start = start[order], next_start[order]
    counts = torch.bincount(ray, minlength=num_rays)
    rank = torch.arange(len(ray), device=ray.device) - (counts.cumsum(0) - counts)[ray]
    is_cut = (rank == rays.max_samples - 1) & (next_start < far[ray])
    t_next = far.index_put((ray[is_cut],), next_start[is_cut])
    is_kept = rank < rays.max_samples
    ray, start, next_start = ray[is_kept], start[is_kept], next_start[is_kept]
    delta = torch.minimum(next_start, far[ray]) - start
    offsets = functional.pad(counts.clamp(max=rays.max_samples).cumsum(0), (1, 0))
    return Marched(start + 0.5 * delta, delta, ray, offsets, t_next)


def _lattice(rays: _Rays, end: Float[Tensor, " R"]) -> Iterator[Float[Tensor, "R E"]]:
    """The lattice's edges from near until all rays have ended, some columns at a time."""
    first, done = rays.first_edge(), 0
    edges = first[:, None]
    while bool((edges[:, -1] < end).any()):
        if rays.cone == 0:
            k = torch.arange(done, done + COLUMNS + 1, device=first.device, dtype=first.dtype)
            edges = first[:, None] + k * rays.step
        else:
            columns = [edges[:, -1]]
            for _ in range(COLUMNS):
                columns.append(columns[-1] + (rays.cone * columns[-1]).clamp(min=rays.step))
            edges = torch.stack(columns, dim=1)
        yield edges
        done += COLUMNS


def _occupied_of(
    rays: _Rays, end: Float[Tensor, " R"], edges: Float[Tensor, "R E"]
) -> tuple[Tensor, Tensor, Tensor]:
    """Ray, first and second edge of the intervals between these edges that count."""
    start, stop = edges[:, :-1], edges[:, 1:]
    midpoint = 0.5 * (start + torch.minimum(stop, rays.far[:, None]))
    positions = rays.origins[:, None] + midpoint[..., None] * rays.directions[:, None]
    low, high = (positions.new_tensor(corner) for corner in rays.box)
    resolution = rays.is_occupied.shape[1]
    centred = (positions - 0.5 * (low + high)) / (high - low)
    counts = torch.zeros_like(start, dtype=torch.bool)
    # From coarse to fine: a finer level has the last word on what its box holds.
    for level in reversed(range(len(rays.is_occupied))):
        unit = centred / 2**level + 0.5
        is_inside = ((unit >= 0) & (unit < 1)).all(dim=-1)
        x, y, z = (unit * resolution).nan_to_num().clamp(0, resolution - 1).long().unbind(-1)
        counts = torch.where(is_inside, rays.is_occupied[level][x, y, z], counts)
    ray, column = (counts & (start < end[:, None])).nonzero(as_tuple=True)
    return ray, start[ray, column], stop[ray, column]


@torch.no_grad()
def march(
    origins: Float[Tensor, "R 3"],
    directions: Float[Tensor, "R 3"],
    is_occupied: Bool[Tensor, "levels r r r"],
    box: Box,
    near: Float[Tensor, " R"],
    far: Float[Tensor, " R"],
    step: float,
    cone: float = 0.0,
    jitter: Float[Tensor, " R"] | None = None,
    max_samples: int | None = None,
) -> Marched:
    """The lattice's samples in occupied cells, at most the first `max_samples` of each ray.

    `jitter` in [0, 1) shifts each ray's lattice by that part of a step. far may be infinite.
    Positions are made by the caller, who knows which gradients they need. float32 rays are marched
    in double precision, and the samples rounded.

    >>> grid = torch.tensor([True, False]).expand(1, 2, 2, 2)  # the lower half along z
    >>> origin, down = torch.tensor([[0.5, 0.5, 2.0]]), torch.tensor([[0.0, 0.0, -1.0]])
    >>> unit_cube = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    >>> march(origin, down, grid, unit_cube, torch.zeros(1), torch.ones(1) * 9, step=0.25).t
    tensor([1.6250, 1.8750])
    """
    rays = _checked(
        origins, directions, is_occupied, box, near, far, step, cone, jitter, max_samples
    )
    floats = [x for x in (origins, directions, near, far, jitter) if x is not None]
    is_served = native.serves(*floats) and is_occupied.device.type == "cpu"
    if is_served and len(is_occupied) <= MAX_LEVELS:
        return _march_native(rays)
    return march_reference(
        origins, directions, is_occupied, box, near, far, step, cone, jitter, max_samples
    )


def _march_native(rays: _Rays) -> Marched:
    num_levels, resolution = rays.is_occupied.shape[:2]
    module, threads = native.module, native.num_threads()
    words = torch.empty(module.march_num_words(num_levels, resolution), dtype=torch.int64)
    module.march_pack(rays.is_occupied.contiguous(), words, threads)
    lines = [x.contiguous() for x in (rays.origins, rays.directions, rays.near, rays.far)]
    jitter = None if rays.jitter is None else rays.jitter.contiguous()
    low, high = ([float(x) for x in corner] for corner in rays.box)
    common = (*lines, jitter, words, num_levels, resolution, low, high, rays.step, rays.cone)

    num_rays = len(rays.origins)
    runs = torch.empty(num_rays, module.MARCH_RUNS, 2, dtype=torch.float64)
    ray_offsets = torch.empty(num_rays + 1, dtype=torch.int64)
    t_next = torch.empty_like(lines[2])
    module.march_count(*common, rays.max_samples, runs, ray_offsets, t_next, threads)
    t = lines[2].new_empty(int(ray_offsets[-1]))
    delta, ray = torch.empty_like(t), torch.empty(len(t), dtype=torch.int64)
    module.march_write(*common, runs, ray_offsets, t, delta, ray, threads)
    return Marched(t, delta, ray, ray_offsets, t_next)


def _checked(
    origins: Tensor,
    directions: Tensor,
    is_occupied: Tensor,
    box: Box,
    near: Tensor,
    far: Tensor,
    step: float,
    cone: float,
    jitter: Tensor | None,
    max_samples: int | None,
) -> _Rays:
    vectors, numbers = (len(origins), 3), (len(origins),)
    for name, tensor, expected in (
        ("origins", origins, vectors),
        ("directions", directions, vectors),
        ("near", near, numbers),
        ("far", far, numbers),
        ("jitter", jitter, numbers),
    ):
        if tensor is not None and tensor.shape != expected:
            raise ValueError(f"{name} must have the shape {expected}, got {tuple(tensor.shape)}")
    sides = is_occupied.shape[1:]
    if is_occupied.ndim != 4 or len(set(sides)) != 1 or is_occupied.numel() == 0:
        raise ValueError(
            f"is_occupied must have the shape (levels, r, r, r), got {tuple(is_occupied.shape)}"
        )
    if is_occupied.dtype != torch.bool:
        raise ValueError(f"is_occupied must be of dtype bool, got {is_occupied.dtype}")
    if not all(low < high for low, high in zip(*box, strict=True)):
        raise ValueError(f"box must have its lower corner first, got {box}")
    if not step > 0:
        raise ValueError(f"step must be positive, got {step}")
    if not cone >= 0:
        raise ValueError(f"cone must not be negative, got {cone}")
    if max_samples is not None and max_samples < 1:
        raise ValueError(f"max_samples must be positive or None, got {max_samples}")
    return _Rays(
        origins,
        directions,
        is_occupied,
        box,
        near,
        far,
        float(step),
        float(cone),
        jitter,
        NO_LIMIT if max_samples is None else max_samples,
    )
