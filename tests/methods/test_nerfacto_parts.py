# SPDX-License-Identifier: Apache-2.0
"""The parts of nerfacto against closed forms: spacing, sampling, losses, schedules."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from diorama.cameras import Rays
from diorama.config import DataConfig, RayDataConfig
from diorama.data.drawn_pixels import PATCH_SIDE, PATCH_SIZE
from diorama.data.load import load_scene
from diorama.data.ray_manager import RayBatch
from diorama.data.scene import PointCloud, Scene
from diorama.errors import UserError
from diorama.methods.nerfacto.check import check_nerfacto_config
from diorama.methods.nerfacto.config import NerfactoConfig
from diorama.methods.nerfacto.losses import (
    distortion_per_ray,
    interlevel_loss,
    outer_weights,
    scale_gradient,
)
from diorama.methods.nerfacto.new_views import SIDE, NewViews, plainness_loss
from diorama.methods.nerfacto.photo_plainness import CONTRAST, photo_plainness_loss
from diorama.methods.nerfacto.point_rays import EPSILON, PointRays, point_loss
from diorama.methods.nerfacto.render import median_distance
from diorama.methods.nerfacto.sampler import ProposalSampler, even_edges
from diorama.methods.nerfacto.samples import Proposal, RaySamples
from diorama.methods.nerfacto.settings import NerfactoSettings
from diorama.methods.nerfacto.spacing import Spacing
from diorama.methods.nerfacto.thin import RAYS_ACROSS, mean_within, rays_within, thin_places
from diorama.nn.scene_frame import SceneFrame
from diorama.scenes import make_scene

SMALL = NerfactoConfig(
    levels=2, features=2, log2_table=8, max_resolution=32, width=16, color_layers=1,
    samples=6, proposal_samples=(16, 8), proposal_resolutions=(16, 16), proposal_levels=1,
    proposal_log2_table=8, appearance_size=4,
)  # fmt: skip


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Scene:
    folder = tmp_path_factory.mktemp("scene") / "spheres"
    make_scene("spheres", folder, size=16, num_train=3, num_val=1, num_test=1)
    return load_scene(DataConfig(path=folder))


def open_settings(half: float = 2.0, near: float = 0.1) -> NerfactoSettings:
    frame = SceneFrame((-half,) * 3, (half,) * 3, is_contracted=True)
    return NerfactoSettings(frame, False, near, 1000 * half, None, False, 0, False, 0.01, 0.002)


def rays_from(origins: list[list[float]], directions: list[list[float]]) -> Rays:
    count = len(origins)
    unit = torch.nn.functional.normalize(torch.tensor(directions), dim=1)
    one = torch.ones(count)
    return Rays(torch.tensor(origins), unit, one, one * 1e-3, torch.zeros(count, dtype=torch.long))


def intervals(edges: list[float]) -> RaySamples:
    row = torch.tensor([edges])
    return RaySamples(row, row)


def test_spacing_is_even_up_to_the_scene_and_in_disparity_beyond():
    rays = rays_from([[0.0, 0.0, 0.0]], [[0.0, 0.0, 1.0]])
    spacing = Spacing.of(open_settings(half=2.0, near=0.1), rays)
    # In units of the half side 2: h(0.05) = 0.025, h(1) = 0.5, h(1000) = 0.9995.
    share = (0.5 - 0.025) / (0.9995 - 0.025)
    s = torch.tensor([[0.0, 0.5 * share, share, 1.0]])
    expected = torch.tensor([[0.1, 0.5 * (0.1 + 2.0), 2.0, 2000.0]])
    torch.testing.assert_close(spacing.distances(s), expected, rtol=2e-3, atol=0)


def test_a_camera_outside_the_box_has_even_samples_up_to_its_centre():
    rays = rays_from([[8.0, 0.0, 0.0]], [[-1.0, 0.0, 0.0]])
    spacing = Spacing.of(open_settings(half=2.0, near=0.4), rays)
    t = spacing.distances(torch.linspace(0, 1, 1001)[None])
    steps = t.diff()[t[:, :-1] < 7.9]
    assert steps.max() - steps.min() < 1e-3


def test_uniform_spacing_ends_at_the_faces_of_the_box():
    frame = SceneFrame((-1.0,) * 3, (1.0,) * 3, is_contracted=False)
    settings = replace(open_settings(), frame=frame, is_uniform=True, near=0.5, far=100.0)
    rays = rays_from([[-4.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    t = Spacing.of(settings, rays).distances(torch.tensor([[0.0, 0.5, 1.0]] * 2))
    torch.testing.assert_close(t, torch.tensor([[3.0, 4.0, 5.0], [0.5, 0.75, 1.0]]))


def test_a_ray_that_misses_the_box_has_an_empty_interval():
    frame = SceneFrame((-1.0,) * 3, (1.0,) * 3, is_contracted=False)
    settings = replace(open_settings(), frame=frame, is_uniform=True, near=0.5, far=100.0)
    rays = rays_from([[-4.0, 3.0, 0.0]], [[1.0, 0.0, 0.0]])
    near, far = frame.span(rays.origins, rays.directions)
    assert near > far
    t = Spacing.of(settings, rays).distances(torch.tensor([[0.0, 1.0]]))
    assert t[0, 0] == t[0, 1]


def test_even_edges_keep_their_ends_and_their_order():
    edges = even_edges(3, 4, torch.tensor([0.0, 0.5, 1.0]))
    torch.testing.assert_close(edges[1], torch.linspace(0, 1, 5))
    torch.testing.assert_close(edges[0], torch.tensor([0.0, 0.125, 0.375, 0.625, 1.0]))
    torch.testing.assert_close(edges[2], torch.tensor([0.0, 0.375, 0.625, 0.875, 1.0]))


def test_outer_weights_sum_what_overlaps():
    edges = torch.tensor([[0.1, 0.25, 0.5, 0.9]])
    coarse, weights = torch.tensor([[0.0, 0.25, 0.5, 1.0]]), torch.tensor([[0.1, 0.2, 0.4]])
    bound = outer_weights(edges, coarse, weights)
    torch.testing.assert_close(bound, torch.tensor([[0.1, 0.2, 0.4]]))
    across = outer_weights(torch.tensor([[0.2, 0.6]]), coarse, weights)
    torch.testing.assert_close(across, torch.tensor([[0.7]]))


def test_outer_weights_against_a_loop():
    torch.manual_seed(0)
    edges = torch.cat((torch.zeros(5, 1), torch.rand(5, 7).sort().values, torch.ones(5, 1)), dim=1)
    coarse = torch.cat((torch.zeros(5, 1), torch.rand(5, 3).sort().values, torch.ones(5, 1)), dim=1)
    weights = torch.rand(5, 4)
    bound = outer_weights(edges, coarse, weights)
    for r in range(5):
        for i in range(8):
            overlaps = (coarse[r, :-1] < edges[r, i + 1]) & (coarse[r, 1:] > edges[r, i])
            assert bound[r, i].item() == pytest.approx(weights[r, overlaps].sum().item(), abs=1e-6)


def test_a_proposal_is_only_blamed_for_what_it_misses():
    fine, weights = intervals([0.0, 0.5, 1.0]), torch.tensor([[0.2, 0.6]])
    generous = Proposal(intervals([0.0, 0.5, 1.0]), torch.tensor([[0.3, 0.7]]))
    blind = Proposal(intervals([0.0, 0.5, 1.0]), torch.tensor([[0.2, 0.1]]))
    assert interlevel_loss(fine, weights, [generous]) == 0
    expected = 0.5 * (0.6 - 0.1) ** 2 / 0.6
    both = interlevel_loss(fine, weights, [generous, blind])
    assert both.item() == pytest.approx(expected, rel=1e-5)


def test_distortion_of_two_intervals_has_its_closed_form():
    samples, weights = intervals([0.0, 0.2, 1.0]), torch.tensor([[0.5, 0.25]])
    pairs = 2 * 0.5 * 0.25 * (0.6 - 0.1)
    within = (0.5**2 * 0.2 + 0.25**2 * 0.8) / 3
    assert distortion_per_ray(samples, weights).item() == pytest.approx(pairs + within, rel=1e-5)


def test_scaled_gradients_leave_values_alone():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = scale_gradient(x, torch.tensor([0.5, 0.0]))
    y.sum().backward()
    assert torch.equal(y, x)
    torch.testing.assert_close(x.grad, torch.tensor([0.5, 0.0]))


def test_median_distance_is_where_half_is_met():
    samples = intervals([0.0, 1.0, 2.0, 3.0])
    assert median_distance(samples, torch.tensor([[0.1, 0.2, 0.1]])).item() == 1.5
    assert median_distance(samples, torch.zeros(1, 3)).item() <= 3.0


def test_annealing_starts_flat_and_ends_sharp(scene):
    sampler = ProposalSampler(replace(SMALL, anneal_steps=1000), open_settings())
    assert sampler.anneal(0) == 0.0
    assert sampler.anneal(500) == pytest.approx(5.0 / 5.5)
    assert sampler.anneal(1000) == sampler.anneal(9999) == 1.0


def test_proposals_rest_longer_and_longer():
    config = replace(SMALL, proposal_every=5, proposal_warmup=100)
    sampler = ProposalSampler(config, open_settings())
    learned = []
    for step in range(200):
        if sampler.is_due(step):
            sampler.last_update.fill_(step)
            learned.append(step)
    assert learned[:10] == list(range(10))
    pauses = [b - a for a, b in pairwise(learned)]
    assert pauses[-1] == 6  # nerfstudio's rule: more than five steps since the last
    assert pauses == sorted(pauses)
    assert sampler.is_due(learned[-1])  # a second batch of the same step


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"features": 3}, "--model.features"),
        ({"max_resolution": 8}, "--model.max-resolution"),
        ({"proposal_samples": (8,)}, "--model.proposal-samples"),
        ({"proposal_samples": (8, 0)}, "--model.proposal-samples"),
        ({"proposal_resolutions": (4, 4)}, "--model.proposal-resolutions"),
        ({"far": 0.5}, "--model.far"),
    ],
)
def test_impossible_options_are_refused_by_their_flag(options, flag):
    with pytest.raises(UserError, match=flag):
        check_nerfacto_config(replace(SMALL, **options))


def test_settings_follow_the_kind_of_the_scene(scene):
    thing = NerfactoSettings.of(NerfactoConfig(), replace(scene, kind="object", has_alpha=True))
    assert not thing.frame.is_contracted and thing.is_uniform and thing.is_random
    assert (thing.appearance_size, thing.initial_density, thing.distortion) == (0, 1.0, 0.0)
    place = NerfactoSettings.of(NerfactoConfig(), replace(scene, kind="unbounded", has_alpha=False))
    assert place.frame.is_contracted and not place.is_uniform and place.background is None
    assert (place.appearance_size, place.initial_density, place.distortion) == (16, 0.1, 0.002)
    wall = NerfactoSettings.of(NerfactoConfig(), replace(scene, kind="forward-facing"))
    assert wall.frame.is_contracted and wall.frame.half_side == pytest.approx(scene.bounds.near)


def with_points(scene: Scene) -> Scene:
    """The scene with two points: every frame, held-out ones too, sees the first."""
    xyz = torch.tensor([[0.1, 0.2, 0.3], [0.0, -0.5, 0.0]])
    every = torch.tensor([[frame, 0] for frame in range(len(scene.frames))])
    sightings = torch.cat((every, torch.tensor([[scene.splits["train"][0], 1]])))
    cloud = PointCloud(xyz, torch.zeros(2, 3, dtype=torch.uint8), sightings)
    return replace(scene, points=cloud)


def test_point_rays_reach_their_points_from_training_cameras_only(scene):
    known = with_points(scene)
    points = PointRays(known)
    train = known.splits["train"]
    assert len(points) == len(train) + 1
    rays, distance = points.draw(64, torch.Generator().manual_seed(0))
    assert set(rays.camera_index.tolist()) == set(train)
    reached = rays.origins + rays.directions * distance[:, None]
    assert known.points is not None
    offsets = reached[:, None] - known.points.xyz
    assert offsets.norm(dim=2).amin(dim=1).max() < 1e-5
    centers = known.cameras.world_from_camera[rays.camera_index, :, 3]
    torch.testing.assert_close(rays.origins, centers)
    assert len(PointRays(scene)) == 0


def test_point_loss_wants_all_light_from_the_point():
    samples = intervals([0.0, 1.0, 2.0, 3.0, 4.0])
    distance = torch.tensor([2.5])
    right = point_loss(samples, torch.tensor([[0.0, 0.0, 1.0, 0.0]]), distance, 5000)
    fog = point_loss(samples, torch.tensor([[0.5, 0.0, 0.5, 0.0]]), distance, 5000)
    wrong = point_loss(samples, torch.tensor([[0.0, 1.0, 0.0, 0.0]]), distance, 5000)
    empty = point_loss(samples, torch.zeros(1, 4), distance, 5000)
    torch.testing.assert_close(right, -torch.log(torch.tensor(1 + EPSILON)))
    torch.testing.assert_close(fog, -torch.log(torch.tensor(0.5 + EPSILON)))
    torch.testing.assert_close(wrong, empty)
    # At first the kernel is wide enough to call from afar.
    early = point_loss(samples, torch.tensor([[0.0, 0.0, 0.0, 1.0]]), torch.tensor([3.0]), 0)
    assert early < empty


def test_patches_of_new_views_are_pinhole_images_around_the_training_cameras(scene):
    rays = NewViews(scene).draw(50, torch.Generator().manual_seed(0))
    assert len(rays) == 50 * SIDE**2
    assert set(rays.camera_index.tolist()) <= set(scene.splits["train"])
    torch.testing.assert_close(rays.directions.norm(dim=1), torch.ones(len(rays)))
    # On the plane at depth 1 of each patch its rays are a square lattice.
    patches = (rays.directions / rays.z_scale[:, None]).view(50, SIDE, SIDE, 3)
    down, right = patches.diff(dim=1), patches.diff(dim=2)
    torch.testing.assert_close(down, down[:, :1, :1].expand_as(down), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(right, right[:, :1, :1].expand_as(right), atol=1e-5, rtol=1e-4)
    lengths = right[:, 0, 0].norm(dim=1)
    torch.testing.assert_close(down[:, 0, 0].norm(dim=1), lengths)
    assert (down[:, 0, 0] * right[:, 0, 0]).sum(dim=1).abs().max() < 1e-6
    # Four pixels; towards an image's corner a pixel of its plane is a smaller angle.
    pixel = 1.0 / scene.cameras.intrinsics[0, 0]
    assert lengths.max() < 4.01 * pixel and lengths.min() > 2.0 * pixel
    centers = scene.cameras.world_from_camera[rays.camera_index, :, 3]
    assert 0.0 < (rays.origins - centers).norm(dim=1).mean() < centers.norm(dim=1).mean()


def seen_at(distance: Tensor) -> tuple[RaySamples, Tensor]:
    """Samples whose light all comes from the given distances."""
    edges = torch.stack((0.5 * distance, 1.5 * distance, 2.5 * distance), dim=1)
    return RaySamples(edges, edges), torch.tensor([1.0, 0.0]).expand(len(distance), 2)


def test_planes_are_plain_however_they_are_inclined(scene):
    rays = NewViews(scene).draw(4, torch.Generator().manual_seed(0))
    # Planes of some inclination to their patches, which they meet at about distance 3.
    middle = rays.directions.view(4, -1, 3).mean(dim=1).repeat_interleave(SIDE**2, dim=0)
    normal = middle + torch.tensor([0.15, -0.1, 0.2])
    distance = 3.0 / (rays.directions * normal).sum(dim=1)
    assert distance.min() > 1.0 and distance.std() > 0.01
    flat = plainness_loss(rays, *seen_at(distance), unit=1.0)
    assert flat < 1e-4
    noise = torch.rand(len(rays), generator=torch.Generator().manual_seed(1))
    assert plainness_loss(rays, *seen_at(distance * (1.0 + 0.1 * noise)), unit=1.0) > 1e-2
    # A hole in it is not plain either: nothing has the inverse depth of what is infinitely far.
    samples, weights = seen_at(distance)
    hole = torch.ones(len(rays))
    hole[27] = 0.0
    assert plainness_loss(rays, samples, weights * hole[:, None], unit=1.0) > 10 * flat


def patch_of(scene: Scene, stripes: float = 0.0) -> RayBatch:
    """A patch of a grey photograph, every second column darker by `stripes`."""
    config = RayDataConfig(rays=PATCH_SIZE, patches=1.0)
    batch = config.setup(scene=scene).next_train(0)
    grey = 0.5 - stripes * (torch.arange(PATCH_SIZE) % 2)
    opaque = torch.stack((grey, grey, grey, torch.ones_like(grey)), dim=1)
    return replace(batch, pixels=opaque)


def plane_before(rays: Rays) -> Tensor:
    """Distances of an inclined plane that the rays of one camera meet."""
    normal = rays.directions.mean(dim=0) + torch.tensor([0.15, -0.1, 0.2])
    return 3.0 / (rays.directions @ normal)


def test_plain_photographs_ask_for_plain_surfaces(scene):
    one = patch_of(scene)
    distance = plane_before(one.rays)
    assert distance.min() > 0.1 and distance.std() > 1e-3
    assert photo_plainness_loss(one, *seen_at(distance), unit=1.0) < 1e-5

    # A grain before the plane, not at the patch's rim: along its row and its column it is the
    # middle of one bend, where it counts twice, and the end of another.
    nearer = distance.clone()
    nearer[5] *= 0.98
    grain = float(one.rays.z_scale[5].reciprocal() * (1 / nearer[5] - 1 / distance[5]))
    loss = photo_plainness_loss(one, *seen_at(nearer), unit=1.0).item()
    num_bends = 2 * PATCH_SIDE * (PATCH_SIDE - 2)
    assert loss == pytest.approx(2 * (2 + 1) * grain / num_bends, rel=0.02)

    # Where every second column is darker by the constant, rows count 1 / e of it.
    striped = patch_of(scene, stripes=CONTRAST).pixels
    seen = photo_plainness_loss(replace(one, pixels=striped), *seen_at(nearer), unit=1.0).item()
    assert seen == pytest.approx(loss * (1 + torch.tensor(-1.0).exp().item()) / 2, rel=0.02)

    # A mask over the pixel itself spares all bends that it is part of.
    masked = one.weights.clone()
    masked[5] = 0.0
    assert photo_plainness_loss(replace(one, weights=masked), *seen_at(nearer), unit=1.0) < 1e-5


def test_thin_is_what_hangs_before_a_wall_not_the_wall_and_not_an_edge():
    y, x = torch.meshgrid(torch.arange(24.0), torch.arange(32.0), indexing="ij")
    steep = 2.0 + 0.01 * x + 0.02 * y
    assert not thin_places(steep).any()  # not even at the picture's edges
    edge = 2.0 + 0.0005 * x + 0.02 * y
    edge[:, 16:] -= 1.0  # half of the view is a near thing, which is not thin
    assert not thin_places(edge).any()
    hung = edge.clone()
    hung[5, 8] -= 0.1  # a grain
    hung[:, 25] -= 0.1  # a hair
    hung[20, 8] -= 0.001  # a dent
    expected = torch.zeros(24, 32, dtype=torch.bool)
    expected[5, 8] = expected[:, 25] = True
    assert torch.equal(thin_places(hung), expected)


def test_a_hole_is_not_thin():
    depth = torch.ones(16, 16)
    depth[8, 8] = 5.0
    assert not thin_places(depth).any()


def test_rays_within_are_spread_over_their_pixel_and_follow_the_order_of_the_mask():
    places = torch.zeros(4, 6, dtype=torch.bool)
    places[1, 5] = places[3, 0] = True
    xy = rays_within(places).unflatten(0, (2, RAYS_ACROSS**2))
    torch.testing.assert_close(xy.mean(dim=1), torch.tensor([[5.5, 1.5], [0.5, 3.5]]))
    apart = torch.pdist(xy[0])
    torch.testing.assert_close(apart.min(), torch.tensor(1.0 / RAYS_ACROSS))
    assert torch.equal(xy.floor(), torch.tensor([[[5.0, 1.0]], [[0.0, 3.0]]]).expand_as(xy))
    torch.testing.assert_close(mean_within(xy.flatten(0, 1)), xy.mean(dim=1))
    assert rays_within(torch.zeros(4, 6, dtype=torch.bool)).shape == (0, 2)
    assert mean_within(torch.empty(0, 3)).shape == (0, 3)
