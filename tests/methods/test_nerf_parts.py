# SPDX-License-Identifier: Apache-2.0
"""NeRF's network, samplers and quadrature against the paper's numbers and closed forms."""

import pytest
import torch

from diorama.cameras import Rays
from diorama.methods.nerf.config import NerfConfig
from diorama.methods.nerf.field import NerfField
from diorama.methods.nerf.rays import NdcFrame, PaperRays, z_depth_rays
from diorama.methods.nerf.sampling import depth_at, refined_depths, stratified_depths
from diorama.methods.nerf.volume import Samples, activate_density, render_samples


def rays_along(steps: torch.Tensor) -> PaperRays:
    origins = torch.zeros_like(steps)
    lengths = steps.norm(dim=1)
    return PaperRays(origins, steps, lengths, steps / lengths[:, None])


def test_the_papers_network_has_its_number_of_parameters():
    assert sum(p.numel() for p in NerfField(NerfConfig()).parameters()) == 595_844


def test_the_encoded_position_enters_in_front_after_layer_four():
    field = NerfField(NerfConfig())
    assert [layer.in_features for layer in field.trunk] == [63, 256, 256, 256, 256, 319, 256, 256]
    # Weights of layer 5's first 63 inputs see the position, not the features.
    with torch.no_grad():
        for layer in field.trunk[:5]:
            layer.weight.zero_()
            layer.bias.zero_()
        field.trunk[5].weight[:, 63:].zero_()
    near, far = field.features(torch.tensor([[0.1, 0.2, 0.3], [-0.4, 0.5, 0.6]]))
    assert not torch.equal(near, far)


def test_density_does_not_depend_on_the_view_but_colour_does():
    field = NerfField(NerfConfig(depth=2, width=16))
    position = torch.rand(1, 3).expand(2, 3)
    rgb, density = field(position, torch.eye(3)[:2])
    torch.testing.assert_close(density[0], density[1])
    assert (rgb[0] - rgb[1]).abs().max() > 1e-4
    torch.testing.assert_close(field.raw_density(position), density)


@pytest.mark.parametrize("init", ["torch", "glorot"])
def test_initial_weights_come_from_the_generator(init):
    fields = [NerfField(NerfConfig(depth=2, width=16, init=init)) for _ in range(2)]
    for field in fields:
        field.initialize(torch.Generator().manual_seed(7))
    for a, b in zip(fields[0].parameters(), fields[1].parameters(), strict=True):
        assert torch.equal(a, b)


def test_golden_row_of_raw_outputs():
    """Golden numbers of the reference implementation: weights, colour, depth, disparity."""
    raw = torch.tensor([[0, 0, 0, 0.5], [2, -1, 0, 3], [-1, 1, 2, 10.0]])
    rays = rays_along(torch.tensor([[0, 0.6, -1.0]]))
    samples = Samples.dense(torch.tensor([[2.0, 3.0, 4.0]]), rays.lengths, 4.0, True)
    density = activate_density(raw[:, 3], "relu")
    pixels = render_samples(raw[:, :3], density, samples, rays, (0.0, 0.0, 0.0))
    expected = torch.tensor([0.441832, 0.541289, 0.016879])
    torch.testing.assert_close(pixels.weights, expected, atol=2e-6, rtol=0)
    rgb = torch.tensor([[0.702221, 0.378831, 0.506428]])
    torch.testing.assert_close(pixels.rgb, rgb, atol=2e-6, rtol=0)
    assert pixels.depth.item() == pytest.approx(2.575047, abs=4e-6)
    assert pixels.disparity.item() == pytest.approx(0.388342, abs=1e-6)


def test_a_ray_that_meets_nothing_shows_the_background_and_has_no_disparity():
    rays = rays_along(torch.tensor([[0.0, 0.0, 1.0]]))
    samples = Samples.dense(torch.tensor([[2.0, 3.0]]), rays.lengths, 4.0, True)
    pixels = render_samples(torch.zeros(2, 3), torch.zeros(2), samples, rays, (1.0, 0.5, 0.0))
    assert pixels.rgb.tolist() == [[1.0, 0.5, 0.0]]
    assert pixels.disparity.item() == 0.0


def test_the_far_plane_of_a_cut_out_stays_clear():
    """A little density on the last sample paints it only if the last interval is infinite."""
    rays = rays_along(torch.tensor([[0.0, 0.0, 1.0]]))
    depths = torch.tensor([[2.0, 4.0, 6.0]])
    density = torch.tensor([0.0, 0.0, 0.1])
    opacity = [
        render_samples(
            torch.zeros(3, 3),
            density,
            Samples.dense(depths, rays.lengths, 6.0, is_opaque),
            rays,
            (1.0, 1.0, 1.0),
        ).opacity.item()
        for is_opaque in (True, False)
    ]
    assert opacity == [1.0, 0.0]


def test_stratified_depths_stay_in_their_cells_and_include_both_ends():
    rays = rays_along(torch.ones(500, 3))
    fixed = stratified_depths(rays, 8, 2.0, 6.0, False, None)
    assert fixed[0, 0].item() == 2.0 and fixed[0, -1].item() == pytest.approx(6.0)
    drawn = stratified_depths(rays, 8, 2.0, 6.0, False, torch.Generator().manual_seed(0))
    middle = 0.5 * (fixed[:, 1:] + fixed[:, :-1])
    assert (drawn[:, :-1] <= middle + 1e-6).all() and (drawn[:, 1:] >= middle - 1e-6).all()
    # End cells are half as wide: their mean lies a quarter of a spacing inside.
    assert drawn[:, 0].mean().item() == pytest.approx(2.0 + 4.0 / 7 / 4, abs=0.02)


def test_disparity_spacing_is_even_in_inverse_depth():
    inverse = 1 / depth_at(torch.linspace(0, 1, 9), 0.5, 8.0, True)
    torch.testing.assert_close(inverse.diff(), torch.full((8,), (0.125 - 2.0) / 8))


def test_fine_depths_are_a_sorted_union_that_follows_the_weights():
    depths = torch.linspace(2, 6, 64).expand(3, 64)
    weights = torch.zeros(3, 64)
    weights[:, 30] = 1.0
    fine = refined_depths(depths, weights, 128, None)
    assert fine.shape == (3, 192)
    assert (fine.diff(dim=1) >= 0).all()
    near_peak = (fine[0] - depths[0, 30]).abs() < 4 / 63
    assert near_peak.sum() >= 120


def test_kept_samples_stay_with_their_rays():
    rays = rays_along(torch.ones(4, 3))
    samples = Samples.dense(torch.rand(4, 5).sort(dim=1).values, rays.lengths, 1.0, False)
    keep = torch.rand(20, generator=torch.Generator().manual_seed(3)) < 0.4
    kept = samples.kept(keep)
    for ray in range(4):
        own = kept.s[kept.offsets[ray] : kept.offsets[ray + 1]]
        assert torch.equal(own, samples.s[keep & (samples.ray == ray)])


def test_ndc_depth_leads_back_to_the_cameras_z_depth():
    frame = NdcFrame(407.0, 407.0, 504, 378, (1.0, 1.0, 1.0))
    direction = torch.nn.functional.normalize(torch.tensor([[0.1, -0.05, -1.0]]), dim=1)
    origin = torch.tensor([[0.1, -0.2, 0.05]])
    z_scale = -direction[:, 2]
    rays = Rays(origin, direction, z_scale, torch.zeros(1), torch.zeros(1, dtype=torch.long))
    ndc = frame.rays(rays)
    for distance in (1.5, 3.0, 40.0):
        point = origin + distance * direction
        s = 1 - 1.0 / -point[0, 2]
        z = ndc.z_depth(s[None], torch.tensor([0]))
        assert z.item() == pytest.approx(distance * z_scale.item(), rel=1e-4)
        in_ndc = ndc.origins + s * ndc.steps
        assert in_ndc[0, 2].item() == pytest.approx(1 + 2 / point[0, 2].item(), abs=1e-5)


def test_z_depth_rays_reach_the_plane_of_their_depth():
    direction = torch.nn.functional.normalize(torch.tensor([[0.3, 0.4, 1.0]]), dim=1)
    rays = Rays(
        torch.zeros(1, 3), direction, direction[:, 2], torch.zeros(1), torch.zeros(1).long()
    )
    paper = z_depth_rays(rays)
    assert (paper.origins + 5.0 * paper.steps)[0, 2].item() == pytest.approx(5.0)
    assert paper.lengths.item() == pytest.approx(1 / direction[0, 2].item())
