# SPDX-License-Identifier: Apache-2.0
"""The colour that each of N Gaussians shows to a camera: spherical harmonics of the view direction.

    d = normalize(mean - camera_center),   raw = Y_0 sh_dc + sum_{k>0} Y_k(d) sh_rest_{k-1}
    "shifted": colour = max(0, raw + 1/2),   "sigmoid": colour = 1 / (1 + exp(-raw))

Signs and order of the harmonics Y are those of `spherical_harmonics`. The coefficients come in two
tensors because they are two parameters, taught at two rates: putting them together would cost a
copy of nearly all that is known of a Gaussian.
"""

from typing import Any, Literal, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diorama import native
from diorama.ops.once import once_differentiable
from diorama.ops.project_gaussians import SplatGradients
from diorama.ops.spherical_harmonics import spherical_harmonics_reference

ColorActivation = Literal["shifted", "sigmoid"]
MAX_DEGREE = 3


def sh_colors_reference(
    sh_dc: Float[Tensor, "N 1 3"],
    sh_rest: Float[Tensor, "N rest 3"],
    means: Float[Tensor, "N 3"],
    camera_center: Float[Tensor, " 3"],
    degree: int,
    activation: ColorActivation,
    visible: Bool[Tensor, " N"],
    gradients: SplatGradients = "exact",
) -> Float[Tensor, "N 3"]:
    """The module's formulas in torch, differentiable any number of times."""
    offsets = (means - camera_center)[visible]
    if gradients == "faithful":
        offsets = offsets.detach()
    directions = torch.nn.functional.normalize(offsets, dim=-1)
    harmonics = spherical_harmonics_reference(directions, degree + 1)
    sh = torch.cat((sh_dc[visible], sh_rest[visible]), dim=1)
    raw = (harmonics[:, :, None] * sh[:, : harmonics.shape[1]]).sum(1)
    colors = raw.sigmoid() if activation == "sigmoid" else (raw + 0.5).relu()
    return sh.new_zeros(len(means), 3).index_put((visible,), colors)


def sh_colors(
    sh_dc: Float[Tensor, "N 1 3"],
    sh_rest: Float[Tensor, "N rest 3"],
    means: Float[Tensor, "N 3"],
    camera_center: Float[Tensor, " 3"],
    degree: int,
    activation: ColorActivation,
    visible: Bool[Tensor, " N"],
    gradients: SplatGradients = "exact",
) -> Float[Tensor, "N 3"]:
    """Colours by the harmonics up to `degree`; once differentiable in all floating-point tensors.

    `faithful` gradients, those of the taichi system, reach the coefficients only. Those of higher
    degrees are ignored. Gaussians that are not visible are black, and nothing of theirs has a
    gradient.

    >>> dc, rest, visible = torch.zeros(2, 1, 3), torch.zeros(2, 15, 3), torch.tensor([True, False])
    >>> sh_colors(dc, rest, torch.ones(2, 3), torch.zeros(3), 3, "shifted", visible)
    tensor([[0.5000, 0.5000, 0.5000],
            [0.0000, 0.0000, 0.0000]])
    """
    _check(sh_dc, sh_rest, means, camera_center, visible)
    _check_choices(1 + sh_rest.shape[1], degree, activation, gradients)
    floats = sh_dc, sh_rest, means, camera_center
    if not native.serves(*floats) or visible.device.type != "cpu":
        return sh_colors_reference(*floats, degree, activation, visible, gradients)
    # A constant does not depend on the direction.
    choices = degree, activation == "sigmoid", gradients == "exact" and degree > 0
    return _ShColors.apply(*floats, visible, choices)


def _check(
    sh_dc: Tensor, sh_rest: Tensor, means: Tensor, camera_center: Tensor, visible: Tensor
) -> None:
    count = len(sh_dc)
    sizes = [(degree + 1) ** 2 - 1 for degree in range(MAX_DEGREE + 1)]
    if sh_rest.ndim != 3 or sh_rest.shape[::2] != (count, 3) or sh_rest.shape[1] not in sizes:
        got = tuple(sh_rest.shape)
        raise ValueError(f"sh_rest must have the shape ({count}, 0 or 3 or 8 or 15, 3), got {got}")
    for name, tensor, shape in (
        ("sh_dc", sh_dc, (count, 1, 3)),
        ("means", means, (count, 3)),
        ("camera_center", camera_center, (3,)),
        ("visible", visible, (count,)),
    ):
        if tensor.shape != shape:
            raise ValueError(f"{name} must have the shape {shape}, got {tuple(tensor.shape)}")


def _check_choices(num_stored: int, degree: int, activation: str, gradients: str) -> None:
    if degree < 0 or (degree + 1) ** 2 > num_stored:
        raise ValueError(f"degree must be 0 to that of {num_stored} coefficients, got {degree}")
    for name, value, options in (
        ("activation", activation, ColorActivation),
        ("gradients", gradients, SplatGradients),
    ):
        if value not in get_args(options):
            raise ValueError(f"{name} must be {' or '.join(get_args(options))}, got {value}")


class _ShColors(torch.autograd.Function):
    """The native kernel; the colours it gave are enough to know the activation's slope."""

    @staticmethod
    def forward(
        ctx: Any,
        sh_dc: Tensor,
        sh_rest: Tensor,
        means: Tensor,
        camera_center: Tensor,
        visible: Tensor,
        choices: tuple[int, bool, bool],
    ) -> Tensor:
        dc, rest, means, camera_center = (
            t.detach().contiguous() for t in (sh_dc, sh_rest, means, camera_center)
        )
        visible = visible.contiguous()
        degree, ctx.is_sigmoid, ctx.with_directions = choices
        ctx.num_bands = degree + 1
        colors = torch.empty_like(means)
        native.module.sh_colors_forward(
            dc,
            rest,
            means,
            camera_center,
            visible,
            ctx.num_bands,
            ctx.is_sigmoid,
            colors,
            native.num_threads(),
        )
        ctx.save_for_backward(dc, rest, means, camera_center, visible, colors)
        return colors

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_colors: Tensor) -> tuple[Tensor | None, ...]:
        dc, rest, means, camera_center, visible, colors = ctx.saved_tensors
        is_wanted = ctx.needs_input_grad
        grad_dc = torch.empty_like(dc) if is_wanted[0] else None
        grad_rest = torch.empty_like(rest) if is_wanted[1] else None
        grad_means = torch.empty_like(means) if is_wanted[2] and ctx.with_directions else None
        grad_center = (
            torch.empty_like(camera_center) if is_wanted[3] and ctx.with_directions else None
        )
        native.module.sh_colors_backward(
            dc,
            rest,
            means,
            camera_center,
            visible,
            ctx.num_bands,
            ctx.is_sigmoid,
            colors,
            grad_colors.contiguous(),
            grad_dc,
            grad_rest,
            grad_means,
            grad_center,
            native.num_threads(),
        )
        return grad_dc, grad_rest, grad_means, grad_center, None, None
