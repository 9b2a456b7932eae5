# SPDX-License-Identifier: Apache-2.0
"""The hash-grid method: gradients, culling, backgrounds, budget, rendering, unbounded scenes."""

from dataclasses import replace

import pytest
import torch

from diorama.config import DataConfig, RayDataConfig
from diorama.data.load import load_scene
from diorama.data.ray_manager import RayBatch, RayDataManager
from diorama.data.scene import Scene
from diorama.errors import UserError
from diorama.methods.ngp.config import NgpConfig
from diorama.methods.ngp.model import NgpModel
from diorama.methods.ngp.render import render_rays
from diorama.methods.ngp.sampler import positions_of
from diorama.methods.ngp.settings import NgpSettings
from diorama.methods.registry import method_config
from diorama.scenes import make_scene

TINY = NgpConfig(
    levels=4, log2_table=12, max_resolution=64, width=16, color_layers=1, grid_resolution=16,
    grid_every=1, grid_warmup=4, march_steps=64, sample_budget=1 << 12, loss="mse",
)  # fmt: skip


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Scene:
    folder = tmp_path_factory.mktemp("scene") / "spheres"
    make_scene("spheres", folder, size=24, num_train=6, num_val=1, num_test=1)
    return load_scene(DataConfig(path=folder))


def model_of(config: NgpConfig, scene: Scene) -> NgpModel:
    torch.manual_seed(0)
    return NgpModel(config, scene)


def batch_of(scene: Scene, step: int = 0, rays: int = 64) -> RayBatch:
    return RayDataManager(RayDataConfig(path=scene.root, rays=rays), scene).next_train(step)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def trained(config: NgpConfig, scene: Scene, steps: int) -> NgpModel:
    model = model_of(config, scene)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2, eps=1e-15)
    for step in range(steps):
        batch = batch_of(scene, step, rays=256)
        outputs = model(batch, step, generator(step))
        optimizer.zero_grad()
        sum(model.get_loss_dict(outputs, batch).values()).backward()
        optimizer.step()
    return model


@pytest.fixture(scope="module")
def learned(scene) -> NgpModel:
    return trained(TINY, scene, 120)


@pytest.mark.parametrize(
    "changes", [{}, {"appearance_size": 4, "refine_poses": True}, {"distortion": 1.0}]
)
def test_every_parameter_gets_a_gradient(scene, changes):
    model, batch = model_of(replace(TINY, **changes), scene), batch_of(scene)
    with torch.no_grad():  # otherwise the first steps see tables of almost zero
        model.field.grid.table.uniform_(-0.5, 0.5)
    losses = model.get_loss_dict(model(batch, 0, generator()), batch)
    sum(losses.values()).backward()
    missing = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert not missing


def test_the_groups_hold_each_parameter_once(scene):
    model = model_of(replace(TINY, appearance_size=4, refine_poses=True), scene)
    grouped = [p for group in model.get_param_groups().values() for p in group]
    assert {id(p) for p in grouped} == {id(p) for p in model.parameters()}
    assert len(grouped) == len(list(model.parameters()))
    optim = method_config("ngp").optim
    assert optim.group("tables").weight_decay == 0 < optim.group("networks").weight_decay
    assert optim.group("poses").lr < optim.lr


def test_it_learns_the_colours_and_the_opacity(learned, scene):
    view = scene.splits["test"][0]
    output = learned.render(scene.cameras[view])
    truth = RayDataManager(RayDataConfig(path=scene.root), scene).eval_image("test", 0)[1] / 255
    blended = truth[..., :3] * truth[..., 3:] + 1 - truth[..., 3:]
    mse = (output.rgb - blended).square().mean()
    assert -10 * mse.log10() > 17
    assert (output.alpha - truth[..., 3]).abs().mean() < 0.12


def test_the_grid_empties_and_hidden_samples_are_dropped(learned, scene):
    assert 0.005 < learned.sampler.grid.is_occupied.float().mean() < 0.6
    batch = batch_of(scene, rays=256)
    cold, _ = learned._visible_samples(batch.rays, 0, generator())
    warm, _ = learned._visible_samples(batch.rays, TINY.grid_warmup, generator())
    assert 0 < len(warm.t) < len(cold.t)


def test_thin_samples_are_left_out_of_unbounded_scenes_in_training_and_in_pictures(scene):
    place = replace(scene, kind="unbounded", has_alpha=False)
    model = trained(TINY, place, 8)
    rays = batch_of(scene, rays=256).rays
    every, _ = model._visible_samples(rays, 0, generator())
    some, _ = model._visible_samples(rays, TINY.grid_warmup, generator())
    with torch.no_grad():
        alpha = -torch.expm1(-model.density_at(positions_of(some, rays)) * some.delta)
    assert model.sampler.mean_thickness.item() == pytest.approx(
        model.sampler.grid.values.mean().item()
    )
    assert 0 < model.sampler.min_alpha <= 0.01
    assert 0 < len(some.t) < len(every.t)
    assert alpha.min() >= 0.999 * model.sampler.min_alpha
    opacity = render_rays(model, rays, None).opacity
    model.sampler.mean_thickness.fill_(0.0)
    assert (render_rays(model, rays, None).opacity >= opacity - 2e-3).all()
    model.sampler.mean_thickness.fill_(1.0)
    model.sampler.settings = replace(model.settings, min_alpha=0.5)
    assert render_rays(model, rays, None).opacity.sum() < 0.5 * opacity.sum()


def test_fog_is_never_left_out_altogether(scene):
    model = model_of(TINY, replace(scene, kind="unbounded", has_alpha=False))
    model.sampler.mean_thickness.fill_(1e-5)
    assert model.sampler.min_alpha == pytest.approx(1e-5)


def test_culling_changes_no_pixel(learned, scene):
    batch = batch_of(scene, rays=256)
    learned.sampler.config = replace(TINY, grid_warmup=20_000, grid_every=1 << 20)
    without = learned(batch, 10_001, generator(5))["rgb"]
    learned.sampler.config = replace(TINY, grid_every=1 << 20)
    with_culling = learned(batch, 10_001, generator(5))["rgb"]
    learned.sampler.config = TINY
    torch.testing.assert_close(with_culling, without, rtol=0, atol=5e-4)


def test_rays_rendered_in_rounds_see_what_one_march_sees(learned, scene):
    rays = scene.cameras[0].image_rays()
    picture = render_rays(learned, rays, None)
    with torch.no_grad():
        samples = learned.sampler.march_on(rays, *learned.sampler.span(rays), 1000)
        positions = rays.origins[samples.ray] + samples.t[:, None] * rays.directions[samples.ray]
        density = learned.density_at(positions)
    thickness = torch.zeros(len(rays)).index_add_(0, samples.ray, density * samples.delta)
    torch.testing.assert_close(picture.opacity, 1 - torch.exp(-thickness), rtol=0, atol=2e-3)


def test_chunks_do_not_change_the_picture(learned, scene):
    whole = learned.render(scene.cameras[0])
    learned.config = replace(TINY, render_chunk=97)
    chunked = learned.render(scene.cameras[0])
    learned.config = TINY
    torch.testing.assert_close(chunked.rgb, whole.rgb, rtol=0, atol=2e-3)
    torch.testing.assert_close(chunked.alpha, whole.alpha, rtol=0, atol=2e-3)


def test_normals_are_unit_vectors_that_face_the_camera(learned, scene):
    output = learned.render(scene.cameras[0])
    is_surface = output.alpha > 0.9
    normals = output.normal[is_surface]
    torch.testing.assert_close(normals.norm(dim=1), torch.ones(len(normals)))
    directions = scene.cameras[0].image_rays().directions.view(24, 24, 3)[is_surface]
    assert ((normals * directions).sum(dim=1) < 0).float().mean() > 0.8


def test_random_backgrounds_only_while_training(scene):
    model = model_of(TINY, scene)
    assert model.settings.is_random
    assert torch.equal(model.background, torch.ones(3))
    batch = batch_of(scene)
    a, b = (model(batch, 0, generator(seed))["target"] for seed in (0, 1))
    assert not torch.equal(a, b)
    opaque = batch.pixels[:, 3] == 1
    torch.testing.assert_close(a[opaque], batch.pixels[opaque, :3])
    fixed = model_of(replace(TINY, background="black"), scene)
    assert torch.equal(fixed.background, torch.zeros(3))
    black = fixed(batch, 0, generator())["target"]
    torch.testing.assert_close(black, batch.pixels[:, :3] * batch.pixels[:, 3:])


def test_the_number_of_rays_follows_the_budget(scene):
    model = model_of(TINY, scene)
    model.sampler.note_cost(640.0, 64)
    assert model.next_num_rays(300) == pytest.approx(TINY.sample_budget / 10, abs=1)
    assert model.next_num_rays(64) == 128  # at most twice as many at once
    model.sampler.note_cost(0.0, 64)
    assert model.next_num_rays(1 << 20) == TINY.max_rays


def test_early_steps_are_known_to_be_shorter(scene):
    model = model_of(TINY, scene)
    costs = [model.step_cost(step, 5000) for step in (0, 250, 1000, 5000)]
    assert costs == sorted(costs)
    assert costs[0] == pytest.approx(0.7) and costs[-1] == pytest.approx(1.0, abs=1e-3)


def test_a_batch_that_meets_nothing_is_background_and_still_trains(scene):
    model, batch = model_of(TINY, scene), batch_of(scene)
    away = replace(batch, rays=replace(batch.rays, directions=-batch.rays.directions))
    outputs = model(away, 1, generator())
    sum(model.get_loss_dict(outputs, away).values()).backward()
    assert outputs["opacity"].abs().max() == 0


def test_unbounded_scenes_have_nested_grids_cones_and_contraction(scene):
    settings = NgpSettings.of(TINY, replace(scene, kind="unbounded", has_alpha=False))
    assert settings.grid_levels == 5
    assert settings.cone > 0
    assert settings.field_frame.is_contracted
    assert not settings.is_random
    assert (settings.min_alpha, settings.distortion, settings.render_steps) == (0.01, 0.0005, 1)
    spread = NgpSettings.of(replace(TINY, contract=False), replace(scene, kind="unbounded"))
    assert spread.field_frame.half_side == pytest.approx(16 * spread.grid_frame.half_side)
    model = trained(replace(TINY, grid_levels=3), replace(scene, kind="unbounded"), 3)
    output = model.render(scene.cameras[0])
    assert torch.isfinite(output.rgb).all()


def test_the_scale_of_a_scene_does_not_matter(scene):
    bounds = scene.bounds
    large = replace(
        scene,
        bounds=replace(
            bounds,
            aabb_min=tuple(10 * x for x in bounds.aabb_min),
            aabb_max=tuple(10 * x for x in bounds.aabb_max),
        ),
    )
    small, big = model_of(TINY, scene), model_of(TINY, large)
    points = torch.rand(50, 3) - 0.5
    thin = small.density_at(points) * small.settings.step
    torch.testing.assert_close(big.density_at(10 * points) * big.settings.step, thin)


@pytest.mark.parametrize(
    ("changes", "flag"),
    [({"features": 3}, "--model.features"), ({"levels": 0}, "--model.levels"),
     ({"max_resolution": 8}, "--model.max-resolution"), ({"cone": -1.0}, "--model.cone"),
     ({"min_alpha": 1.0}, "--model.min-alpha")],
)  # fmt: skip
def test_impossible_options_are_refused_by_name(scene, changes, flag):
    with pytest.raises(UserError, match=flag):
        model_of(replace(TINY, **changes), scene)


@pytest.mark.parametrize("name", ["ngp", "ngp-fast"])
def test_the_presets_can_be_built(name, scene):
    config = method_config(name)
    assert config.method == name
    config.model.setup(scene=scene)
