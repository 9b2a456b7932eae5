# SPDX-License-Identifier: Apache-2.0
"""Inverse-CDF sampling at the sizes of NeRF's fine samples and of nerfacto's two proposals."""

import torch

from diorama.bench.case import Case
from diorama.ops.sample_pdf import (
    resample_edges,
    resample_edges_reference,
    sample_pdf,
    sample_pdf_reference,
)

NUM_RAYS = 4096


def cases() -> list[Case]:
    """Random samples of NeRF, jittered edges of nerfacto; there is no backward pass."""
    return [_nerf(62, 128), _nerfacto(256, 96), _nerfacto(96, 48)]


def _nerf(num_bins: int, num_samples: int) -> Case:
    edges, weights = _histograms(num_bins)
    generator = torch.Generator().manual_seed(1)
    return Case(
        op="sample_pdf",
        what=f"{NUM_RAYS} rays, {num_bins} bins, {num_samples} samples, forward",
        kernel=lambda: sample_pdf(edges, weights, num_samples, generator),
        reference=lambda: sample_pdf_reference(edges, weights, num_samples, generator),
        num_items=NUM_RAYS * num_samples,
        unit="samples",
        num_bytes=4.0 * NUM_RAYS * (2 * num_bins + 1 + 2 * num_samples),
    )


def _nerfacto(num_bins: int, num_samples: int) -> Case:
    edges, weights = _histograms(num_bins)
    jitter = torch.rand(NUM_RAYS, generator=torch.Generator().manual_seed(1))
    compiled = torch.compile(resample_edges_reference)
    return Case(
        op="sample_pdf",
        what=f"edges of {NUM_RAYS} rays, {num_bins} bins, {num_samples} samples, forward",
        kernel=lambda: resample_edges(edges, weights, num_samples, jitter),
        reference=lambda: resample_edges_reference(edges, weights, num_samples, jitter),
        compiled=lambda: compiled(edges, weights, num_samples, jitter),
        num_items=NUM_RAYS * num_samples,
        unit="samples",
        num_bytes=4.0 * NUM_RAYS * (2 * num_bins + 2 + num_samples + 1),
    )


def _histograms(num_bins: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    edges = torch.rand(NUM_RAYS, num_bins + 1, generator=generator).cumsum(-1)
    return edges, torch.rand(NUM_RAYS, num_bins, generator=generator) ** 8
