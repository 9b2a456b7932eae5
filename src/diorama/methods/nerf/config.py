# SPDX-License-Identifier: Apache-2.0
"""Settings of the NeRF model; the defaults are the paper's."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from diorama.config import ModelConfig


@dataclass(frozen=True)
class NerfConfig(ModelConfig):
    """A NeRF: networks, samplers, background."""

    target: ClassVar[str] = "diorama.methods.nerf.model:NerfModel"

    depth: int = 8
    """Layers of the density trunk."""
    width: int = 256
    """Units of each trunk layer."""
    skip: int = 4
    """The encoded position enters again after this layer (negative: nowhere)."""
    position_octaves: int = 10
    """Octaves of the position's encoding."""
    direction_octaves: int = 4
    """Octaves of the view direction's encoding."""
    view_directions: bool = True
    """Whether colour depends on the viewing direction."""
    density: Literal["relu", "softplus"] = "relu"
    """What makes a density of the raw output; softplus (shifted by -1) cannot start dead."""
    init: Literal["torch", "glorot"] = "torch"
    """Initial weights: PyTorch's defaults, or Glorot-uniform with zero bias (the original)."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Arithmetic of the matrix products; bfloat16 is faster where the CPU has it, and coarser."""
    sampler: Literal["paper", "occupancy"] = "paper"
    """paper: coarse + fine networks; occupancy: one network, samples only in occupied cells."""
    samples: int = 64
    """Coarse samples per ray."""
    importance: int = 128
    """Additional fine samples per ray, drawn from the coarse weights (0: no fine network)."""
    perturb: bool = True
    """Jitter the samples while training."""
    lindisp: bool | None = None
    """Space samples evenly in 1/depth instead of depth; unset: for unbounded scenes."""
    raw_noise_std: float = 0.0
    """Noise added to the raw density while training (the paper uses 1 for real scenes)."""
    ndc: bool | None = None
    """Normalised device coordinates; unset: for forward-facing scenes."""
    background: Literal["auto", "white", "black"] = "auto"
    """Colour behind the scene; auto is the data set's convention (white for cut-out objects)."""
    far_is_opaque: bool | None = None
    """Whether the last sample extends to infinity (the paper's 1e10); unset: not for cut-outs."""
    render_chunk: int = 4096
    """Rays rendered at once; bounds the memory of rendering, not the picture."""
    grid_resolution: int = 128
    """Occupancy sampler: cells per side."""
    grid_every: int = 16
    """Occupancy sampler: steps between grid updates."""
    grid_warmup: int = 256
    """Occupancy sampler: steps before the first cell may be skipped."""
    march_steps: int = 512
    """Occupancy sampler: lattice points per ray between near and far."""
    march_warmup_steps: int = 64
    """Occupancy sampler: lattice points per ray during the grid's warm-up."""
    sample_budget: int = 1 << 15
    """Occupancy sampler: samples per training step; the number of rays follows it."""
