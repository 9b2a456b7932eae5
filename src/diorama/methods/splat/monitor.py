# SPDX-License-Identifier: Apache-2.0
"""What the taichi system writes to its log: image grids, histograms, problems, densification."""

from collections import deque
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diorama.methods.splat.config import SplatConfig
from diorama.methods.splat.density.adaptive import Plan
from diorama.methods.splat.drawing import Drawn
from diorama.methods.splat.gaussians import Gaussians
from diorama.model import Watch
from diorama.ops.rasterized import SplatSums

PROBLEM_WINDOW = 100
PROBLEM_FACTOR = 1.5
DEPTH_RAMP = ((0.0, 10.0), (10.0, 50.0), (60.0, 200.0))
"""Start and length of the depths over which red, green and blue fall from 1 to 0."""
RED, GREEN, BLUE = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Pictures:
    """The images of one step, for a grid."""

    rgb: Float[Tensor, "H W 3"]
    target: Float[Tensor, "H W 3"]
    drawn: Drawn
    sums: SplatSums | None


class Monitor:
    """Decides what is worth writing, and writes it to the run's logs once there are any."""

    def __init__(self, config: SplatConfig):
        self.config = config
        self.log: Watch | None = None
        self._losses: deque[float] = deque(maxlen=PROBLEM_WINDOW)
        self._last_problem = -10 * PROBLEM_WINDOW

    def wants_images(self, step: int) -> bool:
        """Whether a grid is due, for which the backward pass must also fill gradient maps."""
        every = self.config.image_every
        return self.log is not None and every > 0 and step % every == 0

    def is_problem(self, step: int, loss: float) -> bool:
        """1.5 times the mean of the last 100 losses, at most once in 100 steps."""
        self._losses.append(loss)
        is_full = len(self._losses) == PROBLEM_WINDOW
        if not is_full or step - self._last_problem <= PROBLEM_WINDOW:
            return False
        if loss <= PROBLEM_FACTOR * sum(self._losses) / PROBLEM_WINDOW:
            return False
        self._last_problem = step
        return True

    def note(self, step: int, loss: float, pictures: Pictures) -> None:
        """Write the grid of a step if it is due, and that of a problem always."""
        is_problem = self.is_problem(step, loss)
        if self.log is None:
            return
        if self.wants_images(step):
            self.log.image(step, "train/image", grid(pictures))
        if is_problem:
            self.log.image(step, "train/image_problematic", grid(pictures))
            self.log.scalars(step, "problem", {"loss": loss})

    def histograms(
        self, step: int, gaussians: Gaussians, drawn: Drawn, sums: SplatSums | None
    ) -> None:
        """Distributions of values and gradients, with the taichi system's names."""
        every = self.config.histogram_every
        if self.log is None or every <= 0 or step % every != 0:
            return
        for name, values in _distributions(gaussians, drawn, sums).items():
            self.log.histogram(step, name, values.detach().float().flatten())

    def densified(self, step: int, plan: Plan, drawn: Drawn) -> None:
        """The image with floaters in blue, split Gaussians in red and cloned ones in green."""
        every = self.config.adaptive.plot_every
        if self.log is None or every <= 0 or step % every != 0:
            return
        picture = drawn.rgb.detach().clamp(0, 1).clone()
        split = torch.zeros_like(plan.is_floater).index_fill_(0, plan.parents[plan.is_split], True)
        cloned = torch.zeros_like(split).index_fill_(0, plan.parents[~plan.is_split], True)
        for who, color in ((plan.is_floater, BLUE), (split, RED), (cloned, GREEN)):
            _dot(picture, plan.centers, who, color)
        self.log.image(step, "train/densify_points", picture)


def grid(pictures: Pictures) -> Float[Tensor, "H W 3"]:
    """Two columns: drawing and photograph, depth and contributors, gradient maps, difference."""
    drawn, rgb = pictures.drawn, pictures.rgb.detach().clamp(0, 1)
    cells = [rgb, pictures.target]
    if drawn.depth is not None:
        cells.append(depth_ramp(drawn.depth.detach()))
    cells.append(_grey(drawn.raster.count.float()))
    if pictures.sums is not None and pictures.sums.pixel_gradients is not None:
        cells += [_grey(part) for part in pictures.sums.pixel_gradients.unbind(dim=2)]
    cells.append((rgb - pictures.target).abs())
    if len(cells) % 2:
        cells.append(torch.zeros_like(rgb))
    rows = [torch.cat(cells[i : i + 2], dim=1) for i in range(0, len(cells), 2)]
    return torch.cat(rows, dim=0)


def depth_ramp(depth: Float[Tensor, "H W"]) -> Float[Tensor, "H W 3"]:
    """Red falls over the first 10 units, green over the next 50, blue over the next 200."""
    return torch.stack(
        [1 - (depth - start).clamp(0, span) / span for start, span in DEPTH_RAMP], -1
    )


def _distributions(gaussians: Gaussians, drawn: Drawn, sums: SplatSums | None) -> dict[str, Tensor]:
    is_visible = drawn.projected.half_extents[:, 0] > 0
    sh, means = gaussians.sh, gaussians.means
    values: dict[str, Tensor] = {
        "value/q": gaussians.quaternions,
        "value/s": gaussians.log_scales,
        "value/alpha": gaussians.opacity_logits,
        "value/sigmoid_alpha": gaussians.opacities,
        "value/r": sh[:, :, 0],
        "value/g": sh[:, :, 1],
        "value/b": sh[:, :, 2],
        "train/pixel_valid_point_count": drawn.raster.count,
        "value/num_overlap_tiles": drawn.tiles.splat_starts.diff()[is_visible],
    }
    if sums is not None:
        values["value/num_affected_pixels"] = sums.pixels[is_visible]
    gradients = {
        "grad/xyz_grad": means.grad,
        "grad/uv_grad": drawn.projected.centers.grad,
        "grad/q_grad": gaussians.quaternions.grad,
        "grad/s_grad": gaussians.log_scales.grad,
        "grad/alpha_grad": gaussians.opacity_logits.grad,
    }
    dc, rest = gaussians.sh_dc.grad, gaussians.sh_rest.grad
    if dc is not None and rest is not None:
        of_sh = torch.cat((dc, rest), dim=1)
        gradients |= {f"grad/{c}_grad": of_sh[:, :, i] for i, c in enumerate("rgb")}
    return values | {name: g[is_visible] for name, g in gradients.items() if g is not None}


def _grey(values: Float[Tensor, "H W"]) -> Float[Tensor, "H W 3"]:
    """Divided by the largest."""
    return (values / values.max().clamp(min=1e-12))[..., None].expand(*values.shape, 3)


def _dot(
    picture: Float[Tensor, "H W 3"],
    centers: Float[Tensor, "N 2"],
    who: Bool[Tensor, " N"],
    color: tuple[float, float, float],
) -> None:
    """Three pixels wide, where the centre lies in the picture."""
    height, width = picture.shape[:2]
    columns, rows = centers[who].long().unbind(dim=1)
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            x, y = columns + dx, rows + dy
            inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
            picture[y[inside], x[inside]] = picture.new_tensor(color)
