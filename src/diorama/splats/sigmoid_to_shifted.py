# SPDX-License-Identifier: Apache-2.0
"""Turns sigmoid(SH) colours into max(0, SH + 0.5) colours, or back, by fitting new harmonics.

Neither form can express the other exactly: the colour of every splat is evaluated in directions all
over the sphere and new coefficients are fitted by least squares. A splat of one colour is exact.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.splats.sh_basis import sh_basis, sphere_directions
from diorama.splats.splats import Color, Splats

_NUM_DIRECTIONS = 128
_ROWS_AT_ONCE = 8192
# A sigmoid never reaches 0 or 1; half a step of an 8-bit image is as near as anyone can see.
_MARGIN = 0.5 / 255

_ACTIVATIONS: dict[Color, Callable[[Tensor], Tensor]] = {
    "sigmoid": torch.sigmoid,
    "shifted": lambda values: (values + 0.5).clamp(min=0),
}
_INVERSES: dict[Color, Callable[[Tensor], Tensor]] = {
    "sigmoid": lambda colors: torch.logit(colors, _MARGIN),
    "shifted": lambda colors: colors - 0.5,
}


def sigmoid_to_shifted(splats: Splats) -> tuple[Splats, float]:
    """The splats with colours max(0, SH + 0.5), and the largest error of a displayed colour."""
    return _refit(splats, "shifted")


def shifted_to_sigmoid(splats: Splats) -> tuple[Splats, float]:
    """The splats with colours sigmoid(SH), and the largest error of a displayed colour."""
    return _refit(splats, "sigmoid")


def _refit(splats: Splats, color: Color) -> tuple[Splats, float]:
    """New harmonics of degree 3, whatever the old degree: the curve bends degree 1 into others."""
    if splats.color == color:
        return splats, 0.0
    directions = sphere_directions(_NUM_DIRECTIONS)
    degree = 0 if splats.degree == 0 else 3
    old_basis = sh_basis(directions, splats.degree).to(splats.sh)
    new_basis = sh_basis(directions, degree).to(splats.sh)
    fit = torch.linalg.pinv(sh_basis(directions, degree)).to(splats.sh)
    new_sh, error = splats.sh.new_zeros(len(splats), (degree + 1) ** 2, 3), 0.0
    for start in range(0, len(splats), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        colors = _ACTIVATIONS[splats.color](_evaluate(old_basis, splats.sh[rows]))
        new_sh[rows] = _evaluate(fit, _INVERSES[color](colors))
        fitted = _ACTIVATIONS[color](_evaluate(new_basis, new_sh[rows]))
        error = max(error, float((fitted.clamp(0, 1) - colors.clamp(0, 1)).abs().max()))
    return replace(splats, sh=new_sh, color=color), error


def _evaluate(matrix: Tensor, values: Float[Tensor, "N K 3"]) -> Float[Tensor, "N D 3"]:
    """The same matrix applied to every splat's three channels."""
    return torch.einsum("dk,nkc->ndc", matrix, values)
