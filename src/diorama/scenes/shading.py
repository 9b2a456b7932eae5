# SPDX-License-Identifier: Apache-2.0
"""Soft shading that no camera position changes: a warm key light, a sky, light from the ground."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.scenes.grid import CandidateGrid
from diorama.scenes.tracing import Hits, ambient_occlusion, soft_shadow

Colors = Float[Tensor, "N 3"]


@dataclass(frozen=True)
class Lighting:
    """Lights in linear units, directions towards the light."""

    key_direction: tuple[float, float, float] = (-0.48, -0.52, 0.71)
    key_color: tuple[float, float, float] = (1.62, 1.42, 1.14)
    fill_direction: tuple[float, float, float] = (0.70, 0.55, 0.45)
    fill_color: tuple[float, float, float] = (0.20, 0.24, 0.32)
    sky_color: tuple[float, float, float] = (0.62, 0.70, 0.84)
    ground_color: tuple[float, float, float] = (0.36, 0.31, 0.24)
    key_sharpness: float = 9.0


DEFAULT_LIGHTING = Lighting()


def shade(grid: CandidateGrid, hits: Hits, lighting: Lighting = DEFAULT_LIGHTING) -> Colors:
    """Display colour of each hit. It does not depend on where the camera is."""
    scene = grid.scene
    normals = scene.normal(hits.points, hits.owner)
    albedo = scene.albedo(hits.points, hits.owner)
    key = _unit(normals, lighting.key_direction)
    fill = _unit(normals, lighting.fill_direction)
    lit = (normals * key).sum(-1).clamp_min(0)
    facing = (lit > 0).nonzero().squeeze(-1)
    shadow = torch.zeros_like(lit)
    shadow[facing] = soft_shadow(
        grid, hits.points[facing], normals[facing], key, lighting.key_sharpness
    )
    openness = ambient_occlusion(grid, hits.points, normals)
    up = (0.5 + 0.5 * normals[:, 2])[:, None]
    sky, ground = normals.new_tensor(lighting.sky_color), normals.new_tensor(lighting.ground_color)
    # Light that bounces between nearby surfaces takes on their colour: pale things darken less.
    ambient_visibility = openness[:, None] ** (1.5 - 0.9 * albedo)
    irradiance = (sky * up + ground * (1 - up)) * ambient_visibility
    irradiance = irradiance + (lit * shadow)[:, None] * normals.new_tensor(lighting.key_color)
    soft_fill = (0.5 + 0.5 * (normals * fill).sum(-1)) ** 2 * openness
    irradiance = irradiance + soft_fill[:, None] * normals.new_tensor(lighting.fill_color)
    return display(albedo * irradiance)


def display(linear: Colors) -> Colors:
    """Linear light to sRGB in [0, 1], with a shoulder above 0.6 instead of a hard clip."""
    knee = 0.6
    over = (linear - knee).clamp_min(0)
    linear = torch.minimum(linear, linear.new_tensor(knee)) + (1 - knee) * (
        1 - torch.exp(-over / (1 - knee))
    )
    return encode_srgb(linear)


def encode_srgb(linear: Colors) -> Colors:
    """The sRGB transfer curve, clipped to [0, 1]."""
    low = linear * 12.92
    high = 1.055 * linear.clamp_min(1e-6) ** (1 / 2.4) - 0.055
    return torch.where(linear <= 0.0031308, low, high).clamp(0, 1)


def _unit(like: Tensor, direction: tuple[float, float, float]) -> Float[Tensor, " 3"]:
    vector = like.new_tensor(direction)
    return vector / vector.norm()
