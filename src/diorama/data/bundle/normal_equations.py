# SPDX-License-Identifier: Apache-2.0
"""One step of Levenberg and Marquardt, with the points eliminated.

With the Jacobians A by views (poses and lenses) and B by points, both weighted, and errors e,

    [A^T A   A^T B] [views ]     [A^T e]
    [B^T A   B^T B] [points] = - [B^T e]

V = B^T B has a 3 x 3 block per point, so A^T (1 - B V^-1 B^T) A views = -A^T (1 - B V^-1 B^T) e is
left. That matrix is never formed: conjugate gradients only multiply with it. The preconditioner is
its part that ties no two observations together, which has a block per image.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.sparse.linalg import splu

from diorama.data.bundle.model import LENS, POSE, Bundle, Observations
from diorama.data.bundle.projection import (
    Projection,
    slopes_by_place,
    slopes_by_point,
    slopes_by_view,
)

MAX_ITERATIONS = 300
TOLERANCE = 0.03
"""Conjugate gradients end when the preconditioned error has fallen to this share: the next step
starts elsewhere anyway, and ten times less takes twice as long to the same cameras."""
FLOOR = 1e-12
"""Added to diagonals, relative to their mean, so that what nothing ties stays where it is."""


@dataclass
class NormalEquations:
    """The weighted Jacobians and errors at one bundle, and the lenses' prior."""

    by_view: sparse.csr_array
    by_point: sparse.csr_array
    point_of: Int[np.ndarray, " M"]
    point_rows: Float[np.ndarray, "M 2 3"]
    num_points: int
    error: Float[np.ndarray, " E"]
    prior: Float[np.ndarray, " N"]
    """Curvature that the prior adds to the diagonal."""
    prior_slope: Float[np.ndarray, " N"]

    @staticmethod
    def of(
        bundle: Bundle,
        seen: Observations,
        found: Projection,
        weight: Float[np.ndarray, " M"],
        prior: tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"]],
    ) -> "NormalEquations":
        """From what was projected where, the weight of each observation, and the prior."""
        by_place = slopes_by_place(bundle, seen, found)
        root = np.sqrt(weight)[:, None]
        pose = POSE * seen.image[:, None] + np.arange(POSE)
        first_lens = POSE * len(bundle.rotation)
        lens = first_lens + LENS * bundle.camera_of[seen.image][:, None] + np.arange(LENS)
        columns = np.concatenate((pose, lens), axis=1)
        point_columns = 3 * seen.point[:, None] + np.arange(3)
        by_view = slopes_by_view(bundle, seen, found, by_place)
        point_rows = slopes_by_point(bundle, seen, by_place) * root[:, None]
        return NormalEquations(
            _sparse(by_view * root[:, None], columns, bundle.num_unknowns),
            _sparse(point_rows, point_columns, 3 * len(bundle.xyz)),
            seen.point,
            point_rows,
            len(bundle.xyz),
            (found.error * root).reshape(-1),
            *prior,
        )

    def step(self, damping: float) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, "P 3"]]:
        """The step in views and in points."""
        inverse = inverse_of_points(self.point_rows, self.point_of, self.num_points, damping)
        diagonal = self.by_view.power(2).sum(axis=0) + self.prior
        extra = self.prior + damping * diagonal + FLOOR * diagonal.mean()

        def without_points(error: np.ndarray) -> np.ndarray:
            return error - self.by_point @ _times(inverse, self.by_point.T @ error)

        def times(views: np.ndarray) -> np.ndarray:
            return self.by_view.T @ without_points(self.by_view @ views) + extra * views

        side = -(self.by_view.T @ without_points(self.error) + self.prior_slope)
        views = _conjugate_gradients(times, side, self._preconditioner(inverse, extra))
        moved = self.by_point.T @ (self.error + self.by_view @ views)
        return views, -_times(inverse, moved).reshape(-1, 3)

    def _preconditioner(
        self, inverse: Float[np.ndarray, "P 3 3"], extra: Float[np.ndarray, " N"]
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Solves with A^T (1 - D) A, where D is the part of B V^-1 B^T within each observation."""
        rows = self.point_rows
        kept = np.eye(2) - np.einsum("mri,mij,msj->mrs", rows, inverse[self.point_of], rows)
        pairs = np.arange(2 * len(rows)).reshape(-1, 2)
        middle = _sparse(kept, pairs, 2 * len(rows))
        blocks = self.by_view.T @ (middle @ self.by_view) + sparse.diags_array(extra)
        return splu(blocks.tocsc()).solve


def inverse_of_points(
    rows: Float[np.ndarray, "M 2 3"],
    point_of: Int[np.ndarray, " M"],
    num_points: int,
    damping: float | Float[np.ndarray, "P 1"],
) -> Float[np.ndarray, "P 3 3"]:
    """The inverse of each point's block of B^T B, its diagonal raised by `damping` of itself."""
    products = np.einsum("mri,mrj->mij", rows, rows).reshape(-1, 9)
    summed = [np.bincount(point_of, column, num_points) for column in products.T]
    blocks = np.stack(summed, axis=1).reshape(-1, 3, 3)
    axis = np.arange(3)
    blocks[:, axis, axis] *= 1 + damping
    blocks[:, axis, axis] += FLOOR * blocks[:, axis, axis].mean()
    return np.linalg.inv(blocks)


def _sparse(
    rows: Float[np.ndarray, "M 2 K"], columns: Int[np.ndarray, "M K"], width: int
) -> sparse.csr_array:
    """The matrix whose rows 2 m and 2 m + 1 hold `rows[m]` in `columns[m]`."""
    num, _, size = rows.shape
    starts = np.arange(0, 2 * num * size + 1, size)
    return sparse.csr_array(
        (rows.reshape(-1), np.repeat(columns, 2, axis=0).reshape(-1), starts),
        shape=(2 * num, width),
    )


def _times(blocks: Float[np.ndarray, "P 3 3"], values: np.ndarray) -> np.ndarray:
    return np.einsum("pij,pj->pi", blocks, values.reshape(-1, 3)).reshape(-1)


def _conjugate_gradients(
    times: Callable[[np.ndarray], np.ndarray],
    side: np.ndarray,
    precondition: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Solve times(x) = side from x = 0."""
    x, rest = np.zeros_like(side), side
    direction = precondition(rest)
    first = length = float(rest @ direction)
    for _ in range(MAX_ITERATIONS):
        if length <= TOLERANCE**2 * first:
            break
        image = times(direction)
        stride = length / float(direction @ image)
        x, rest = x + stride * direction, rest - stride * image
        better = precondition(rest)
        longer = float(rest @ better)
        direction, length = better + longer / length * direction, longer
    return x
