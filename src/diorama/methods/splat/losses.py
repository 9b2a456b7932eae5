# SPDX-License-Identifier: Apache-2.0
"""What is minimised: differences of colour, structure, alpha and depth, and Gaussians' sizes."""

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.methods.splat.config import SplatConfig
from diorama.methods.splat.drawing import Drawn
from diorama.methods.splat.gaussians import Gaussians
from diorama.ops.ssim import ssim


def image_losses(
    rgb: Float[Tensor, "H W 3"],
    target: Float[Tensor, "H W 3"],
    weights: Float[Tensor, "H W"] | None,
    config: SplatConfig,
) -> dict[str, Tensor]:
    """(1 - s) |rgb - target| + s (1 - SSIM).

    Where a mask ignores pixels, the photograph is replaced by the drawing: both terms then have
    neither value nor gradient there, and the absolute difference is a mean over what counts.
    """
    share = 1.0
    if weights is not None:
        target = torch.lerp(rgb.detach(), target, weights[..., None])
        share = 1.0 / float(weights.mean().clamp(min=1e-6))
        rgb = torch.lerp(rgb.detach(), rgb, weights[..., None])
    losses = {"l1": (1 - config.ssim) * share * (rgb - target).abs().mean()}
    if config.ssim > 0:
        losses["ssim"] = config.ssim * (1 - ssim(rgb, target, config.ssim_padding))
    return losses


def size_losses(gaussians: Gaussians, config: SplatConfig) -> dict[str, Tensor]:
    """Regularisation of the Gaussians themselves, where the config gives it a weight."""
    losses = {}
    if config.scale_loss > 0:
        losses["scale"] = config.scale_loss * gaussians.scales.norm(dim=1).mean()
    if config.opacity_loss > 0:
        losses["opacity"] = config.opacity_loss * gaussians.opacities.mean()
    return losses


def truth_losses(
    drawn: Drawn,
    alpha: Float[Tensor, "H W"],
    depth: Float[Tensor, "H W"] | None,
    weights: Float[Tensor, "H W"] | None,
    config: SplatConfig,
) -> dict[str, Tensor]:
    """Absolute differences of alpha, and of depth where it is known and something is drawn."""
    losses = {}
    if config.alpha_loss > 0:
        error = (drawn.alpha - alpha).abs()
        losses["alpha"] = config.alpha_loss * (error if weights is None else error * weights).mean()
    if config.depth_loss > 0 and depth is not None and drawn.depth is not None:
        is_known = (depth > 0) & (drawn.alpha.detach() > 0.5)
        error = (drawn.depth - depth).abs() * is_known
        if weights is not None:
            error = error * weights
        losses["depth"] = config.depth_loss * error.sum() / is_known.sum().clamp(min=1)
    return losses
