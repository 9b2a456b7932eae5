# SPDX-License-Identifier: Apache-2.0
"""The splat model: first Gaussians, losses, masks, poses, objects, monitor, refused options."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diorama.cameras import CameraModel, Cameras, Similarity
from diorama.config import DataConfig, ImageDataConfig
from diorama.data.image_manager import ImageBatch, ImageDataManager
from diorama.data.load import load_scene
from diorama.data.scene import PointCloud, Scene
from diorama.engine.optimizers import optimizers_of
from diorama.errors import UserError
from diorama.methods.registry import method_config
from diorama.methods.splat.config import SplatConfig, SplatOptimConfig
from diorama.methods.splat.cost import step_cost
from diorama.methods.splat.density_config import AdaptiveConfig, DefaultConfig, McmcConfig
from diorama.methods.splat.drawing import Style, draw
from diorama.methods.splat.gaussians import Gaussians
from diorama.methods.splat.initialize import initial_splats, neighbor_distance
from diorama.methods.splat.losses import image_losses
from diorama.methods.splat.model import SplatModel
from diorama.methods.splat.monitor import Monitor, depth_ramp
from diorama.methods.splat.render import render_image
from diorama.methods.splat.schedule import active_degree, image_factor
from diorama.methods.splat.visual_hull import is_in_hull
from diorama.scenes import make_scene
from diorama.splats import Splats
from diorama.splats.files import write_splats
from diorama.splats.transform import transform_splats

TINY = SplatConfig(init_count=200, max_gaussians=400, image_every=0, histogram_every=0)


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Scene:
    folder = tmp_path_factory.mktemp("scene") / "spheres"
    make_scene("spheres", folder, size=32, num_train=8, num_val=1, num_test=1)
    return load_scene(DataConfig(path=folder))


def model_of(scene: Scene, **options) -> SplatModel:
    torch.manual_seed(0)
    return SplatModel(replace(TINY, **options), scene)


def batch_of(scene: Scene, step: int = 0) -> ImageBatch:
    return ImageDataManager(ImageDataConfig(path=scene.root), scene).next_train(step)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def loss_of(model: SplatModel, batch: ImageBatch, step: int = 0) -> torch.Tensor:
    outputs = model(batch, step, generator())
    return torch.stack(list(model.get_loss_dict(outputs, batch).values())).sum()


def test_the_hull_holds_the_object(scene):
    splats = initial_splats(TINY, scene, generator())
    assert len(splats) == 200
    views = list(scene.splits["train"])
    # Jitter within a cell may leave the hull a little; far outside is nobody.
    assert is_in_hull(scene, views, splats.means).float().mean() > 0.7
    corner = torch.tensor([scene.bounds.aabb_min])
    assert not is_in_hull(scene, views, corner).any()


def test_points_and_random_places_and_files(scene, tmp_path):
    xyz = torch.rand(50, 3)
    cloud = PointCloud(xyz, torch.full((50, 3), 255, dtype=torch.uint8))
    with_points = replace(scene, points=cloud)
    splats = initial_splats(TINY, with_points, generator())
    torch.testing.assert_close(splats.means, xyz)
    torch.testing.assert_close(splats.sh[:, 0] * 0.28209479 + 0.5, torch.ones(50, 3))
    torch.testing.assert_close(splats.log_scales[:, 0].exp(), neighbor_distance(xyz))
    fewer = initial_splats(replace(TINY, init_count=20), with_points, generator())
    assert len(fewer) == 20
    random = initial_splats(replace(TINY, init="random"), scene, generator())
    assert len(random) == 200
    low, high = torch.tensor(scene.bounds.aabb_min), torch.tensor(scene.bounds.aabb_max)
    assert ((random.means >= low) & (random.means <= high)).all()
    file = tmp_path / "start.ply"
    write_splats(splats, file)
    again = initial_splats(replace(TINY, init_file=file), scene, generator())
    torch.testing.assert_close(again.sh, splats.sh)
    open_scene = replace(scene, kind="unbounded", has_alpha=False)
    along = initial_splats(TINY, open_scene, generator())
    assert along.means.isfinite().all() and len(along) == 200


def test_taichi_colours_and_sphere(scene):
    config = replace(TINY, color="sigmoid", sphere_points=40, init_distance="mean")
    splats = initial_splats(config, scene, generator())
    assert len(splats) == 200
    sphere = splats.means[-40:]
    body = splats.means[:-40]
    center = (body.amin(dim=0) + body.amax(dim=0)) / 2
    half = float((body.amax(dim=0) - body.amin(dim=0)).max()) / 2
    torch.testing.assert_close((sphere - center).norm(dim=1), torch.full((40,), 4 * half))
    grey = torch.sigmoid(splats.sh[-40:, 0] * 0.28209479)
    torch.testing.assert_close(grey, torch.full((40, 3), 127 / 255))


def test_a_step_lowers_the_loss_and_every_group_moves(scene):
    model = model_of(scene, exposure=True, refine_poses=True, background="white")
    model.gaussians.log_scales.data[:, 0] += 0.5  # a ball has no gradient to turn by
    optimizers = optimizers_of(model, SplatOptimConfig())
    batch = batch_of(scene)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    first = loss_of(model, batch, 5000)
    first.backward()
    optimizers.step(0, 1000, 1.0)
    assert float(loss_of(model, batch, 5000).detach()) < float(first.detach())
    for name, parameter in model.named_parameters():
        assert not torch.equal(parameter, before[name]), name
    # Means move in units of the scene.
    assert optimizers.rate_of(model.gaussians.means) == pytest.approx(1.6e-4 * model.extent)


def test_visible_only_leaves_the_others_alone(scene):
    model = model_of(scene, background="white", scale_loss=0.1, opacity_loss=0.1)
    model.gaussians.means.data[::3] += 1e4  # out of sight
    optimizers = optimizers_of(model, SplatOptimConfig(visible_only=True))
    before = {n: p.detach().clone() for n, p in model.gaussians.named_tensors().items()}
    (observe,) = (c.call for c in model.get_callbacks() if c.where == "before-update")
    for step in (5000, 5001):
        optimizers.zero_grad()
        loss_of(model, batch_of(scene), step).backward()
        observe(step)
        optimizers.step(0, 1000, 1.0)
    for name, parameter in model.gaussians.named_tensors().items():
        steps = optimizers.state_of(parameter)["row_steps"]
        assert not steps[::3].any() and steps.max() == 2, name
        assert torch.equal(parameter[::3], before[name][::3]), name
    assert not torch.equal(model.gaussians.opacity_logits, before["opacity_logits"])
    # A copy has its source's count, though its moments start anew.
    count = len(model.gaussians)
    source = torch.tensor([*range(count), count - 1])
    is_fresh = torch.arange(count + 1) == count
    kept = optimizers.state_of(model.gaussians.means)["row_steps"].clone()
    model.gaussians.take(source, is_fresh, optimizers)
    state = optimizers.state_of(model.gaussians.means)
    assert torch.equal(state["row_steps"], kept[source])
    assert not state["exp_avg"][-1].any()


def test_a_gaussian_seen_in_one_batch_of_a_step_takes_part(scene):
    model = model_of(scene)
    loss_of(model, batch_of(scene), 5000)
    model.gaussians.means.data += 1e4
    loss_of(model, batch_of(scene), 5000)
    assert model._pass is not None and model._pass.is_visible.any()
    loss_of(model, batch_of(scene), 5001)
    assert not model._pass.is_visible.any()


def test_harmonics_are_taught_every_so_many_steps(scene):
    model = model_of(scene, rest_every=3)
    for step in (5001, 5002, 5003):
        model.zero_grad()
        loss_of(model, batch_of(scene), step).backward()
        assert model.gaussians.sh_dc.grad is not None
        assert (model.gaussians.sh_rest.grad is not None) == (step % 3 == 0)


def test_masked_pixels_teach_nothing():
    rgb = torch.rand(24, 24, 3, requires_grad=True)
    target, weights = torch.rand(24, 24, 3), torch.ones(24, 24)
    weights[8:16] = 0
    losses = image_losses(rgb, target, weights, TINY)
    torch.stack(list(losses.values())).sum().backward()
    assert rgb.grad is not None
    assert not rgb.grad[8:16].any()
    assert rgb.grad[:8].any()
    plain = image_losses(rgb, target, None, TINY)["l1"]
    torch.testing.assert_close(image_losses(rgb, target, torch.ones(24, 24), TINY)["l1"], plain)


def test_moving_an_object_is_moving_the_camera_the_other_way(scene):
    torch.manual_seed(1)
    count = 30
    splats = Splats(
        means=0.5 * torch.randn(count, 3),
        quaternions=torch.randn(count, 4),
        log_scales=torch.randn(count, 3) - 2,
        opacity_logits=torch.randn(count),
        sh=0.3 * torch.randn(count, 16, 3),
    )
    camera = scene.cameras[0]
    angle = torch.tensor(0.4)
    turn = torch.tensor(
        [[angle.cos(), -angle.sin(), 0.0], [angle.sin(), angle.cos(), 0.0], [0, 0, 1]]
    )
    moved = torch.cat((turn, torch.tensor([[0.1], [-0.2], [0.3]])), dim=1)
    style = Style(torch.zeros(3), degree=3, has_depth=False)
    both = replace(style, world_from_objects=moved[None])
    here = draw(Gaussians(splats), camera, TINY, both)
    back = torch.cat((turn.T, -turn.T @ moved[:, 3:]), dim=1)
    pose = camera.world_from_camera[0]
    other = torch.cat((back[:, :3] @ pose[:, :3], back[:, :3] @ pose[:, 3:] + back[:, 3:]), dim=1)
    there = draw(Gaussians(splats), replace(camera, world_from_camera=other[None]), TINY, style)
    assert here.alpha.max() > 0.3
    torch.testing.assert_close(here.rgb, there.rgb, atol=1e-4, rtol=1e-3)


def posed(angle: float, axis: int, place: tuple[float, float, float]) -> torch.Tensor:
    """A turn about one axis of the world, and a place."""
    cosine, sine = math.cos(angle), math.sin(angle)
    turn = torch.eye(3)
    first, second = (i for i in range(3) if i != axis)
    turn[first, first] = turn[second, second] = cosine
    turn[first, second], turn[second, first] = -sine, sine
    return torch.cat((turn, torch.tensor(place)[:, None]), dim=1)


def two_objects(count: int = 12) -> tuple[Splats, torch.Tensor]:
    """Gaussians of two objects in turn, each around the origin of its own frame."""
    drawn = torch.Generator().manual_seed(3)
    splats = Splats(
        means=0.3 * torch.randn(count, 3, generator=drawn),
        quaternions=torch.randn(count, 4, generator=drawn),
        log_scales=0.5 * torch.randn(count, 3, generator=drawn) - 1.5,
        opacity_logits=torch.randn(count, generator=drawn),
        sh=0.3 * torch.randn(count, 16, 3, generator=drawn),
    )
    return splats, torch.arange(count) % 2


def test_two_objects_move_on_their_own(scene):
    """As if each had been turned and carried there, its light with it, and then been baked in."""
    splats, ids = two_objects()
    poses = torch.stack((posed(0.7, 0, (0.5, 0.1, -0.2)), posed(-1.1, 2, (-0.4, -0.3, 0.2))))
    style = Style(torch.zeros(3), degree=3, has_normals=True)
    moving = replace(style, world_from_objects=poses)
    got = draw(Gaussians(splats, ids), scene.cameras[0], TINY, moving)
    carried = [
        transform_splats(Similarity(1.0, pose[:, :3], pose[:, 3]), splats.select(ids == k))
        for k, pose in enumerate(poses)
    ]
    expected = draw(Gaussians(Splats.cat(carried)), scene.cameras[0], TINY, style)
    assert got.alpha.max() > 0.5
    for name in ("rgb", "alpha", "depth", "normal"):
        torch.testing.assert_close(
            getattr(got, name), getattr(expected, name), atol=2e-4, rtol=1e-3, msg=name
        )


def test_both_poses_of_two_objects_have_exact_gradients(scene):
    splats, ids = two_objects()
    gaussians, camera = Gaussians(splats, ids).double(), scene.cameras[0].to(torch.float64)
    poses = torch.stack((posed(0.7, 0, (0.5, 0.1, -0.2)), posed(-1.1, 2, (-0.4, -0.3, 0.2))))
    weights = torch.rand(32, 32, 3, generator=generator()).double()

    def brightness(world_from_objects: torch.Tensor) -> torch.Tensor:
        style = Style(weights.new_zeros(3), degree=3, world_from_objects=world_from_objects)
        return (weights * draw(gaussians, camera, TINY, style).rgb).sum()

    poses = poses.double().requires_grad_()
    assert torch.autograd.gradcheck(brightness, poses, check_undefined_grad=False)
    (gradient,) = torch.autograd.grad(brightness(poses), poses)
    assert (gradient.abs().amax(dim=(1, 2)) > 0.1).all()
    with pytest.raises(ValueError, match="a pose for each object up to 1, got 1"):
        brightness(poses[:1])


def test_depth_of_a_fisheye_is_along_the_axis(scene):
    """Far from the axis it differs from the distance, by which Gaussians are ordered."""
    splats = two_objects(1)[0]
    camera = Cameras.pinhole(torch.eye(3, 4), 10.0, 10.0, 16.0, 16.0, 32, 32)
    fisheye = replace(camera, model=torch.full_like(camera.model, int(CameraModel.FISHEYE)))
    place = torch.tensor([[2.0, 0.0, 1.5]])
    small = replace(
        splats, means=place, log_scales=torch.full((1, 3), -2.0), opacity_logits=torch.ones(1)
    )
    view = render_image(Gaussians(small), TINY, torch.zeros(3), fisheye)
    is_seen = view.alpha > 0.1
    assert is_seen.any()
    torch.testing.assert_close(view.depth[is_seen], torch.full((int(is_seen.sum()),), 1.5))
    is_median = view.extras["median_depth"] > 0
    torch.testing.assert_close(view.extras["median_depth"][is_median].unique(), torch.tensor([1.5]))


def test_a_distorted_lens_sees_the_same_scene(scene):
    model = model_of(scene)
    camera = scene.cameras[0]
    straight = model.render(camera)
    distortion = torch.zeros(1, 9)
    distortion[0, 0] = 1e-6
    bent = model.render(replace(camera, distortion=distortion))
    assert bent.rgb.shape == straight.rgb.shape
    torch.testing.assert_close(bent.rgb, straight.rgb, atol=2e-2, rtol=0)


def test_an_empty_view_is_the_background(scene):
    model = model_of(scene, background="white")
    pose = scene.cameras.world_from_camera[:1].clone()
    pose[:, :, 2] *= -1
    pose[:, :, 0] *= -1  # turned around, still right-handed
    away = Cameras.pinhole(pose, 20.0, 20.0, 8.0, 8.0, 16, 16)
    view = model.render(away)
    torch.testing.assert_close(view.rgb, torch.ones(16, 16, 3))
    assert not view.alpha.any() and not view.depth.any()


def test_schedules_follow_the_squeeze():
    config = replace(TINY, sh_every=1000, downscale=4, downscale_every=250)
    assert [active_degree(config, s) for s in (0, 999, 1000, 2500, 9000)] == [0, 0, 1, 2, 3]
    assert active_degree(config, 500, squeeze=0.5) == 1
    assert [image_factor(config, s) for s in (0, 249, 250, 499, 500, 9000)] == [4, 4, 2, 2, 1, 1]
    assert image_factor(config, 125, squeeze=0.5) == 2
    costs = [step_cost(config, 200, step, 1.0) for step in (0, 300, 600, 20_000)]
    assert costs == sorted(costs)


def test_problem_steps_and_depth_ramp():
    monitor = Monitor(TINY)
    assert not any(monitor.is_problem(step, 1.0) for step in range(100))
    assert monitor.is_problem(100, 2.0)
    assert not monitor.is_problem(150, 5.0)  # one in a hundred steps
    assert monitor.is_problem(201, 5.0)
    ramp = depth_ramp(torch.tensor([[0.0, 5.0, 35.0, 160.0]]))
    wanted = [[1, 1, 1], [0.5, 1, 1], [0, 0.5, 1], [0, 0, 0.5]]
    torch.testing.assert_close(ramp[0], torch.tensor(wanted))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"sh_degree": 4}, "--model.sh-degree must be from 0 to 3"),
        ({"rest_every": 0}, "--model.rest-every must be from 1"),
        ({"downscale": 3}, "--model.downscale must be a power of two"),
        ({"init": "file"}, "--model.init-file PATH"),
        ({"init": "points"}, "it has no sparse points"),
        ({"far": 0.001}, "must be beyond --model.near"),
        ({"init_file": Path("nowhere.ply")}, "nowhere.ply"),
        ({"sphere_points": 200}, "--model.sphere-points 200 leaves no Gaussian for the scene"),
        ({"mcmc": McmcConfig(noise=math.nan)}, "--mcmc.noise must be from 0 to 1e.30, got nan"),
        ({"mcmc": McmcConfig(every=0)}, "--mcmc.every must be from 1 to"),
        ({"default": DefaultConfig(grow_scale=-1.0)}, "--default.grow-scale must be from 0"),
        ({"adaptive": AdaptiveConfig(floater_pixels=-3)}, "--adaptive.floater-pixels must be"),
        ({"max_gaussians": 0}, "--model.max-gaussians must be from 1 to"),
    ],
)
def test_options_that_cannot_be(scene, options, told):
    with pytest.raises(UserError, match=told):
        model_of(scene, **options)


@pytest.mark.parametrize("method", ["splat", "splat-fast", "splat-taichi"])
def test_presets_make_models(scene, method):
    config = method_config(method)
    model = replace(config.model, init_count=50, sphere_points=0).setup(scene=scene)
    assert len(model.gaussians) == 50
    assert set(model.get_param_groups()) == set(model.gaussians.named_tensors())
