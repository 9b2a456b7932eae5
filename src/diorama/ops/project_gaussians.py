# SPDX-License-Identifier: Apache-2.0
"""Projects N 3-D Gaussians to the ellipses that a camera sees (EWA splatting).

    p = W x + t,   Sigma = R(q) diag(exp(2 s)) R(q)^T,   Sigma' = J W Sigma W^T J^T,
    Sigma2D = Sigma' + blur I,   conic = Sigma2D^-1

with [W | t] = camera_from_world, q the normalised quaternion (w x y z), s the log-scales and J the
lens's Jacobian at p (`splat_lens`). An antialiased opacity is multiplied by
sqrt(det Sigma' / det Sigma2D), so that a Gaussian thinner than a pixel keeps its total light.

With U = J W R diag(exp s), of rows u and v, det Sigma' = |u x v|^2 and det Sigma2D = det Sigma' +
blur (|u|^2 + |v|^2) + blur^2: a difference of products would lose every digit of a needle.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from diorama import native
from diorama.ops import splat_lens
from diorama.ops.once import once_differentiable

SplatModel = Literal["pinhole", "fisheye"]
SplatGradients = Literal["exact", "faithful"]
FAINTEST = 1 / 255
"""A splat is not drawn where its alpha is below this."""


@dataclass(frozen=True)
class View:
    """The image that Gaussians are projected to, and how."""

    width: int
    height: int
    near: float = 0.01
    """Gaussians whose centre has a smaller depth are not seen."""
    far: float = 1e10
    """Nor are those beyond this depth."""
    model: SplatModel = "pinhole"
    """Fisheye is the ideal equidistant one, and its depth is the distance from the camera."""
    blur: float = 0.3
    """Variance in square pixels that is added to every ellipse."""
    antialiased: bool = False
    """Whether opacities make up for the blur."""
    gradients: SplatGradients = "exact"
    """`faithful` leaves out what the taichi system does: the compensation and the Jacobian are
    constants, and the quaternion is taken to be of unit length."""

    def __post_init__(self) -> None:
        if min(self.width, self.height) < 1:
            raise ValueError(f"view must have a pixel, got {self.width} x {self.height}")
        if not 0 < self.near < self.far:
            raise ValueError(f"view.near must be in (0, far), got {self.near} and far {self.far}")
        if not self.blur >= 0:
            raise ValueError(f"view.blur must not be negative, got {self.blur}")
        for name, options in (("model", SplatModel), ("gradients", SplatGradients)):
            if getattr(self, name) not in get_args(options):
                known = " or ".join(get_args(options))
                raise ValueError(f"view.{name} must be {known}, got {getattr(self, name)}")


@dataclass(frozen=True)
class ProjectedGaussians:
    """What the camera sees of each Gaussian; all zeros for one that it does not see."""

    centers: Float[Tensor, "N 2"]
    """Pixels; the first pixel's centre is at 0.5, 0.5."""
    conics: Float[Tensor, "N 3"]
    """a, b, c of exp(-(a dx^2 + c dy^2) / 2 - b dx dy)."""
    depths: Float[Tensor, " N"]
    opacities: Float[Tensor, " N"]
    half_extents: Float[Tensor, "N 2"]
    """Half the width and height of the box where alpha can reach 1/255; has no gradient."""


def project_gaussians_reference(
    means: Float[Tensor, "N 3"],
    quaternions: Float[Tensor, "N 4"],
    log_scales: Float[Tensor, "N 3"],
    opacity_logits: Float[Tensor, " N"],
    camera_from_world: Float[Tensor, "3 4"],
    intrinsics: Float[Tensor, " 4"],
    view: View,
) -> ProjectedGaussians:
    """The module's formulas in torch, differentiable any number of times."""
    shared = camera_from_world, intrinsics, view
    with torch.no_grad():
        of_all, extents = _project(means, quaternions, log_scales, opacity_logits, *shared)
        seen = _is_seen(of_all, extents, view).nonzero()[:, 0]
    # The others are left out altogether: their infinities would turn up in gradients as NaN.
    values, extents = _project(
        means[seen], quaternions[seen], log_scales[seen], opacity_logits[seen], *shared
    )
    return ProjectedGaussians(
        *(
            value.new_zeros(len(means), *value.shape[1:]).index_put((seen,), value)
            for value in (*values, extents.detach())
        )
    )


def project_gaussians(
    means: Float[Tensor, "N 3"],
    quaternions: Float[Tensor, "N 4"],
    log_scales: Float[Tensor, "N 3"],
    opacity_logits: Float[Tensor, " N"],
    camera_from_world: Float[Tensor, "3 4"],
    intrinsics: Float[Tensor, " 4"],
    view: View,
) -> ProjectedGaussians:
    """Project Gaussians; once differentiable in all six tensors, except through `half_extents`.

    A Gaussian is not seen, and has no gradient, when its depth is outside [near, far], its opacity
    not above 1/255, its box outside the image, or its ellipse flat or not finite.

    >>> view = View(width=100, height=100, blur=0.0)
    >>> one = torch.tensor([[0.0, 0.0, 2.0]]), torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    >>> intrinsics = torch.tensor([100.0, 100.0, 50.0, 50.0])
    >>> seen = project_gaussians(
    ...     *one, torch.full((1, 3), 0.1).log(), torch.zeros(1), torch.eye(3, 4), intrinsics, view
    ... )
    >>> seen.centers, 1 / seen.conics[:, 0].sqrt()  # A radius of 0.1 at depth 2: five pixels.
    (tensor([[50., 50.]]), tensor([5.]))
    """
    tensors = means, quaternions, log_scales, opacity_logits, camera_from_world, intrinsics
    _check(*tensors)
    if not native.serves(*tensors):
        return project_gaussians_reference(*tensors, view)
    return ProjectedGaussians(*_ProjectGaussians.apply(*tensors, view))


def _check(means: Tensor, *others: Tensor) -> None:
    names = "quaternions", "log_scales", "opacity_logits", "camera_from_world", "intrinsics"
    count = len(means)
    shapes = (count, 4), (count, 3), (count,), (3, 4), (4,)
    for name, tensor, shape in zip(
        ("means", *names), (means, *others), ((count, 3), *shapes), strict=True
    ):
        if tensor.shape != shape:
            raise ValueError(f"{name} must have the shape {shape}, got {tuple(tensor.shape)}")


def _project(
    means: Tensor,
    quaternions: Tensor,
    log_scales: Tensor,
    opacity_logits: Tensor,
    camera_from_world: Tensor,
    intrinsics: Tensor,
    view: View,
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Centers, conics, depths and opacities, and the half extents, of Gaussians seen or not."""
    is_exact = view.gradients == "exact"
    rotation = camera_from_world[:, :3]
    points = means @ rotation.T + camera_from_world[:, 3]
    if view.model == "pinhole":
        landing = splat_lens.pinhole(points, intrinsics, (view.width, view.height))
    else:
        landing = splat_lens.fisheye(points, intrinsics)
    jacobians = landing.jacobians if is_exact else landing.jacobians.detach()
    u, v = (
        jacobians @ rotation @ _rotations(quaternions, is_exact) * log_scales.exp()[:, None]
    ).unbind(1)
    sharp = torch.linalg.cross(u, v).square().sum(-1)
    xx, xy, yy = (u * u).sum(-1), (u * v).sum(-1), (v * v).sum(-1)
    determinant = sharp + view.blur * (xx + yy) + view.blur**2
    xx, yy = xx + view.blur, yy + view.blur
    conics = torch.stack([yy, -xy, xx], dim=-1) / determinant[:, None]
    opacities = opacity_logits.sigmoid()
    if view.antialiased:
        compensation = (sharp / determinant).sqrt()
        opacities = opacities * (compensation if is_exact else compensation.detach())
    reach = (2 * (opacities / FAINTEST).log()).clamp(min=0)
    extents = (reach[:, None] * torch.stack([xx, yy], dim=-1)).sqrt()
    return (landing.centers, conics, landing.depths, opacities), extents


def _rotations(quaternions: Tensor, is_exact: bool) -> Tensor:
    unit = quaternions / torch.linalg.vector_norm(quaternions, dim=-1, keepdim=True)
    if not is_exact:
        unit = quaternions + (unit - quaternions).detach()
    w, x, y, z = unit.unbind(-1)
    rows = [
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ]  # fmt: skip
    return torch.stack(rows, dim=-1).unflatten(-1, (3, 3))


def _is_seen(values: tuple[Tensor, ...], extents: Tensor, view: View) -> Tensor:
    centers, conics, depths, _ = values
    size = centers.new_tensor([view.width, view.height])
    is_on_image = (centers + extents > 0) & (centers - extents < size) & (extents > 0)
    is_finite = conics.isfinite().all(-1) & extents.isfinite().all(-1)
    return is_on_image.all(-1) & is_finite & (depths >= view.near) & (depths <= view.far)


class _ProjectGaussians(torch.autograd.Function):
    """The native kernel; the way back computes everything again from the inputs."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[Tensor, ...]:
        *tensors, view = args
        inputs = [tensor.detach().contiguous() for tensor in tensors]
        means = inputs[0]
        outputs = [means.new_empty(len(means), *shape) for shape in ((2,), (3,), (), (), (2,))]
        arguments: list[Any] = [*inputs, *_numbers(view), *outputs, native.num_threads()]
        native.module.project_gaussians_forward(*arguments)
        half_extents = outputs[-1]
        ctx.save_for_backward(*inputs, half_extents)
        ctx.view = view
        ctx.mark_non_differentiable(half_extents)
        ctx.set_materialize_grads(False)
        return tuple(outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        *inputs, half_extents = ctx.saved_tensors
        wanted = [
            torch.empty_like(tensor) if is_needed else None
            for tensor, is_needed in zip(inputs, ctx.needs_input_grad[:-1], strict=True)
        ]
        arguments: list[Any] = [
            *inputs,
            *_numbers(ctx.view),
            ctx.view.gradients == "exact",
            half_extents,
            *(None if g is None else g.contiguous() for g in gradients[:-1]),
            *wanted,
            native.num_threads(),
        ]
        native.module.project_gaussians_backward(*arguments)
        return *wanted, None


def _numbers(view: View) -> tuple[float | bool, ...]:
    """The view as the kernel takes it."""
    numbers = view.width, view.height, view.near, view.far, view.blur
    return *(float(n) for n in numbers), view.model == "fisheye", view.antialiased
