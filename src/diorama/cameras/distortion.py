# SPDX-License-Identifier: Apache-2.0
"""Lens distortion on the normalised image plane, its Jacobian, and its inverse by Newton's method.

The nine coefficients are k1 k2 k3 k4 p1 p2 d1 d2 d3. With r^2 = x^2 + y^2,

    perspective  radial = (1 + k1 r^2 + k2 r^4 + k3 r^6 + k4 r^8) / (1 + d1 r^2 + d2 r^4 + d3 r^6)
                 x' = x radial + 2 p1 x y + p2 (r^2 + 2 x^2)
                 y' = y radial + p1 (r^2 + 2 y^2) + 2 p2 x y
    fisheye      theta' = theta (1 + k1 theta^2 + k2 theta^4 + k3 theta^6 + k4 theta^8)

Both stop growing at some radius when the fitted polynomial bends over: the fold. Beyond it the
formula still gives a number, but no lens does, so `fold_radius` bounds where the model is believed.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

_MAX_NEWTON_STEPS = 14
_FOLD_SAMPLES = 1024


class DistortedColumns(NamedTuple):
    """Distorted x and y, and the Jacobian [[a, b], [b, d]] of the distortion there."""

    x: Tensor
    y: Tensor
    a: Tensor
    b: Tensor
    d: Tensor


class Undistorted(NamedTuple):
    """Points before distortion, whether Newton got there, and the distortion's Jacobian there.

    The Jacobian is symmetric: its entries are xx, xy, yy. It carries no gradient.
    """

    xy: Float[Tensor, "R 2"]
    jacobian: Float[Tensor, "R 3"]
    is_valid: Bool[Tensor, " R"]


class UndistortedAngle(NamedTuple):
    """Fisheye angles before distortion, d theta'/d theta there, and whether Newton got there."""

    theta: Float[Tensor, " R"]
    slope: Float[Tensor, " R"]
    is_valid: Bool[Tensor, " R"]


def _radial(r2: Tensor, coefficients: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """The rational radial factor and its derivative by r^2."""
    k1, k2, k3, k4, _, _, d1, d2, d3 = coefficients
    above = 1 + r2 * (k1 + r2 * (k2 + r2 * (k3 + r2 * k4)))
    below = 1 + r2 * (d1 + r2 * (d2 + r2 * d3))
    above_slope = k1 + r2 * (2 * k2 + r2 * (3 * k3 + r2 * (4 * k4)))
    below_slope = d1 + r2 * (2 * d2 + r2 * (3 * d3))
    radial = above / below
    return radial, (above_slope - radial * below_slope) / below


def distort_columns(x: Tensor, y: Tensor, coefficients: tuple[Tensor, ...]) -> DistortedColumns:
    """`distort` on separate contiguous columns, which torch's kernels vectorise, and its slopes."""
    p1, p2 = coefficients[4], coefficients[5]
    xx, yy, two_xy = x * x, y * y, 2 * x * y
    r2 = xx + yy
    radial, slope = _radial(r2, coefficients)
    return DistortedColumns(
        x=x * radial + p1 * two_xy + p2 * (r2 + 2 * xx),
        y=y * radial + p1 * (r2 + 2 * yy) + p2 * two_xy,
        a=radial + 2 * xx * slope + 2 * p1 * y + 6 * p2 * x,
        b=two_xy * slope + 2 * (p1 * x + p2 * y),
        d=radial + 2 * yy * slope + 6 * p1 * y + 2 * p2 * x,
    )


def distort(xy: Float[Tensor, "R 2"], distortion: Float[Tensor, "R 9"]) -> Float[Tensor, "R 2"]:
    """Perspective distortion of points on the plane z = 1, one set of coefficients per point."""
    x, y = _columns(xy)
    columns = distort_columns(x, y, _columns(distortion))
    return torch.stack([columns.x, columns.y], dim=-1)


def _columns(rows: Tensor) -> tuple[Tensor, ...]:
    return rows.T.contiguous().unbind(0)


def _newton_step(
    x: Tensor, y: Tensor, here: DistortedColumns, target: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """(x, y) - J^-1 (distort(x, y) - target)."""
    ex, ey = here.x - target[0], here.y - target[1]
    det = here.a * here.d - here.b * here.b
    # A vanishing determinant means a fold; a bounded step from there is as good as any other.
    det = torch.where(det.abs() < 1e-6, torch.full_like(det, 1e-6), det)
    return x - (here.d * ex - here.b * ey) / det, y - (here.a * ey - here.b * ex) / det


def _within(x: Tensor, y: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
    """Points pulled back along their ray from the centre to at most `radius`."""
    shrink = (radius / (x * x + y * y).sqrt().clamp(min=1e-12)).clamp(max=1)
    return x * shrink, y * shrink


def _tolerance(target: Tensor) -> Tensor:
    """Residual below which one more Newton step reaches the rounding error of the data type."""
    return 64 * torch.finfo(target.dtype).eps * (1 + target.abs())


def undistort(
    xy: Float[Tensor, "R 2"], distortion: Float[Tensor, "R 9"], fold: Float[Tensor, " R"]
) -> Undistorted:
    """The inverse of `distort`, within the fold radius.

    Where Newton's method does not converge the point is the best found so far (always finite for
    finite input) and `is_valid` is False. The last step alone is recorded by autograd, which by the
    implicit function theorem gives the exact first derivatives by `xy` and `distortion`.
    """
    x_target, y_target = _columns(xy)
    target = (x_target, y_target)
    coefficients = _columns(distortion)
    with torch.no_grad():
        tolerance = _tolerance(x_target.abs() + y_target.abs())
        x, y = _within(x_target, y_target, fold)
        is_close = torch.zeros_like(fold, dtype=torch.bool)
        for _ in range(_MAX_NEWTON_STEPS):
            here = distort_columns(x, y, coefficients)
            error = torch.maximum((here.x - x_target).abs(), (here.y - y_target).abs())
            is_close = error <= tolerance
            if bool(is_close.all()):
                break
            x, y = _within(*_newton_step(x, y, here, target), fold)
    here = distort_columns(x, y, coefficients)
    here = here._replace(a=here.a.detach(), b=here.b.detach(), d=here.d.detach())
    x_better, y_better = _newton_step(x, y, here, target)
    x, y = torch.where(is_close, x_better, x), torch.where(is_close, y_better, y)
    # The last step moved by less than the tolerance: the Jacobian before it is as good.
    is_valid = is_close & (here.a * here.d > here.b * here.b)
    return Undistorted(
        torch.stack([x, y], dim=-1), torch.stack([here.a, here.b, here.d], dim=-1), is_valid
    )


def distort_angle(
    theta: Float[Tensor, " R"], distortion: Float[Tensor, "R 9"]
) -> tuple[Float[Tensor, " R"], Float[Tensor, " R"]]:
    """Fisheye image radius theta' of the angle theta, and d theta'/d theta."""
    return _distort_angle(theta, _columns(distortion))


def _distort_angle(theta: Tensor, coefficients: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    k1, k2, k3, k4 = coefficients[:4]
    t2 = theta * theta
    value = theta * (1 + t2 * (k1 + t2 * (k2 + t2 * (k3 + t2 * k4))))
    slope = 1 + t2 * (3 * k1 + t2 * (5 * k2 + t2 * (7 * k3 + t2 * (9 * k4))))
    return value, slope


def undistort_angle(
    radius: Float[Tensor, " R"], distortion: Float[Tensor, "R 9"], fold: Float[Tensor, " R"]
) -> UndistortedAngle:
    """The inverse of `distort_angle` on [0, fold]; see `undistort` for validity and gradients."""
    coefficients = _columns(distortion)
    with torch.no_grad():
        tolerance = _tolerance(radius)
        theta = torch.minimum(radius, fold)
        is_close = torch.zeros_like(radius, dtype=torch.bool)
        for _ in range(_MAX_NEWTON_STEPS):
            value, slope = _distort_angle(theta, coefficients)
            is_close = (value - radius).abs() <= tolerance
            if bool(is_close.all()):
                break
            step = (value - radius) / slope.clamp(min=1e-6)
            theta = torch.minimum((theta - step).clamp(min=0), fold)
    value, slope = _distort_angle(theta, coefficients)
    solution = theta - (value - radius) / slope.detach().clamp(min=1e-6)
    solution = torch.where(is_close, solution, theta)
    slope = _distort_angle(solution, coefficients)[1]
    return UndistortedAngle(solution, slope, is_close & (slope > 0))


def fold_radius(
    distortion: Float[Tensor, "N 9"], is_fisheye: Bool[Tensor, " N"]
) -> Float[Tensor, " N"]:
    """The radius (perspective: on z = 1; fisheye: angle) up to which distortion grows outwards.

    Without a fold it is infinite for perspective cameras and pi for fisheye ones. Found by sampling
    the derivative every 0.09 degrees (0.18 for fisheye) and therefore up to one sample too small.
    """
    fraction = torch.linspace(0, 1, _FOLD_SAMPLES, dtype=distortion.dtype, device=distortion.device)
    radii = torch.tan(fraction * math.radians(89))
    table = distortion.unsqueeze(1)
    radial, slope = _radial(radii**2, table.unbind(-1))
    _, _, _, _, _, _, d1, d2, d3 = table.unbind(-1)
    below = 1 + radii**2 * (d1 + radii**2 * (d2 + radii**2 * d3))
    grows = (radial + 2 * radii**2 * slope > 0) & (below > 0)
    perspective = _last_before_failure(radii, grows, math.inf)

    t2 = (fraction * math.pi) ** 2
    k1, k2, k3, k4 = table.unbind(-1)[:4]
    angle_slope = 1 + t2 * (3 * k1 + t2 * (5 * k2 + t2 * (7 * k3 + t2 * (9 * k4))))
    fisheye = _last_before_failure(fraction * math.pi, angle_slope > 0, math.pi)
    return torch.where(is_fisheye, fisheye, perspective)


def _last_before_failure(
    samples: Float[Tensor, " S"], holds: Bool[Tensor, "N S"], otherwise: float
) -> Float[Tensor, " N"]:
    """The last sample up to which `holds` is unbroken, or `otherwise` where it never breaks."""
    first_failure = holds.to(torch.int64).cumprod(-1).sum(-1)
    last = samples[(first_failure - 1).clamp(min=0)]
    return torch.where(holds.all(-1), torch.full_like(last, otherwise), last)
