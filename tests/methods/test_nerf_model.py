# SPDX-License-Identifier: Apache-2.0
"""NeRF as a model: both samplers, dead starts, chunks, and what the occupancy grid may skip."""

from dataclasses import replace

import pytest
import torch

from diorama.config import DataConfig, RayDataConfig
from diorama.data.load import load_scene
from diorama.data.ray_manager import RayBatch, RayDataManager
from diorama.data.scene import Scene
from diorama.errors import UserError
from diorama.methods.nerf.config import NerfConfig
from diorama.methods.nerf.field import NerfField
from diorama.methods.nerf.model import DEAD_STEPS, NerfModel
from diorama.methods.nerf.occupancy_renderer import OccupancyRenderer
from diorama.methods.nerf.occupancy_sampler import march
from diorama.nn.scene_frame import SceneFrame
from diorama.scenes import make_scene

TINY = NerfConfig(depth=2, width=16, samples=8, importance=8, grid_resolution=16)
TINY_GRID = replace(TINY, sampler="occupancy", grid_warmup=2, grid_every=1, march_steps=32)


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Scene:
    folder = tmp_path_factory.mktemp("scene") / "spheres"
    make_scene("spheres", folder, size=24, num_train=4, num_val=1, num_test=1)
    return load_scene(DataConfig(path=folder))


def model_of(config: NerfConfig, scene: Scene, seed: int = 0) -> NerfModel:
    torch.manual_seed(seed)
    return NerfModel(config, scene)


def batch_of(scene: Scene, step: int = 0, rays: int = 64) -> RayBatch:
    return RayDataManager(RayDataConfig(path=scene.root, rays=rays), scene).next_train(step)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("config", [TINY, TINY_GRID, replace(TINY, view_directions=False)])
def test_every_parameter_gets_a_gradient(scene, config):
    model = model_of(replace(config, density="softplus"), scene)
    batch = batch_of(scene)
    outputs = model(batch, 0, generator())
    sum(model.get_loss_dict(outputs, batch).values()).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


def test_both_networks_have_a_loss_and_only_the_fine_one_is_measured(scene):
    model, batch = model_of(TINY, scene), batch_of(scene)
    outputs = model(batch, 0, generator())
    assert set(model.get_loss_dict(outputs, batch)) == {"rgb", "rgb_coarse"}
    mse = (outputs["rgb"] - outputs["target"]).square().mean()
    psnr = model.get_metrics_dict(outputs, batch)["psnr"]
    assert psnr.item() == pytest.approx(-10 * mse.log10().item(), abs=1e-4)


def test_without_importance_samples_there_is_one_network(scene):
    model = model_of(replace(TINY, importance=0), scene)
    batch = batch_of(scene)
    assert set(model.get_loss_dict(model(batch, 0, generator()), batch)) == {"rgb"}
    assert model.render(scene.cameras[0]).rgb.shape == (24, 24, 3)
    assert all("fine" not in name for name in model.state_dict())


def test_masked_rays_do_not_count(scene):
    model, batch = model_of(TINY, scene), batch_of(scene)
    weights = torch.zeros(len(batch.rays))
    weights[:10] = 1.0
    outputs = model(batch, 0, generator())
    masked = model.get_loss_dict(outputs, replace(batch, weights=weights))["rgb"]
    expected = (outputs["rgb"] - outputs["target"])[:10].square().mean()
    torch.testing.assert_close(masked, expected)


@pytest.mark.parametrize("config", [TINY, TINY_GRID])
def test_chunks_bound_memory_and_do_not_change_the_picture(scene, config):
    model = model_of(replace(config, density="softplus"), scene)
    whole = model.render(scene.cameras[0])
    model.config = replace(model.config, render_chunk=100)
    parts = model.render(scene.cameras[0])
    torch.testing.assert_close(parts.rgb, whole.rgb, atol=1e-5, rtol=0)
    torch.testing.assert_close(parts.depth, whole.depth, atol=1e-4, rtol=1e-4)


def test_rendering_is_the_same_twice_and_leaves_no_gradient(scene):
    model = model_of(TINY, scene)
    first, second = model.render(scene.cameras[0]), model.render(scene.cameras[0])
    assert torch.equal(first.rgb, second.rgb)
    assert not first.rgb.requires_grad


def test_noise_and_jitter_belong_to_training(scene):
    model = model_of(replace(TINY, raw_noise_std=1.0), scene)
    batch = batch_of(scene)
    one, two, again = (model(batch, 0, generator(seed))["rgb"] for seed in (1, 2, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, two)


def test_a_dead_start_is_found_and_new_weights_are_alive(scene):
    model, batch = model_of(TINY, scene), batch_of(scene)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, NerfField):
                module.density_head.bias.fill_(-100.0)
    for step in range(DEAD_STEPS):
        assert model.dead_start(step) is None
        model(batch, step, generator(step))
    assert "dead" in (model.dead_start(DEAD_STEPS) or "")
    model.reinitialize(generator(5))
    assert model.dead_start(DEAD_STEPS) is None
    assert model(batch, 0, generator())["opacity"].max() > 0


def test_an_empty_view_is_not_a_dead_start(scene):
    model, batch = model_of(TINY, scene), batch_of(scene)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, NerfField):
                module.density_head.bias.fill_(-100.0)
    blank = replace(batch, pixels=torch.zeros_like(batch.pixels))
    for step in range(DEAD_STEPS + 1):
        model(blank, step, generator(step))
    assert model.dead_start(DEAD_STEPS) is None


def test_disparity_sampling_of_ndc_is_refused(scene):
    with pytest.raises(UserError, match=r"--model\.lindisp"):
        model_of(replace(TINY, ndc=True, lindisp=True), scene)


def test_a_full_grid_keeps_every_lattice_point_in_the_box(scene):
    model = model_of(TINY_GRID, scene)
    renderer = model.renderer
    assert isinstance(renderer, OccupancyRenderer)
    rays = model._paper_rays(scene.cameras.image_rays(0), True)
    samples = march(rays, renderer.grid, renderer.settings, 32, None)
    edges = torch.linspace(renderer.settings.near, renderer.settings.far, 33)
    middles = 0.5 * (edges[1:] + edges[:-1])
    positions = rays.origins[:, None] + middles[:, None] * rays.steps[:, None]
    unit = renderer.settings.grid_frame.to_unit(positions.reshape(-1, 3))
    is_inside = ((unit >= 0) & (unit < 1)).all(dim=1)
    assert len(samples) == int(is_inside.sum())
    torch.testing.assert_close(samples.positions(rays), positions.reshape(-1, 3)[is_inside])


def test_what_the_grid_skips_changes_no_pixel(scene):
    """A field that is dense in one ball only: with a trained grid the picture stays, cheaper."""
    model = model_of(TINY_GRID, scene)
    renderer = model.renderer
    assert isinstance(renderer, OccupancyRenderer)
    ball = Ball(renderer.fine)
    renderer.fine = ball  # type: ignore[assignment]
    renderer.is_grid_trained.fill_(True)
    full, asked_full = model.render(scene.cameras[0]), ball.take_count()
    for step in range(20):
        renderer.grid.update(renderer._thickness_at, generator(step), all_cells=True)
    ball.take_count()
    skipped, asked = model.render(scene.cameras[0]), ball.take_count()
    assert renderer.grid.is_occupied.float().mean() < 0.2
    assert asked < 0.5 * asked_full
    torch.testing.assert_close(skipped.rgb, full.rgb, atol=2e-3, rtol=0)
    torch.testing.assert_close(skipped.alpha, full.alpha, atol=2e-3, rtol=0)


class Ball(torch.nn.Module):
    """A ball of radius 0.5 with colours of the network it stands in for; counts its queries."""

    def __init__(self, field: NerfField):
        super().__init__()
        self.field, self.count = field, 0

    def raw_density(self, positions):
        self.count += len(positions)
        return torch.where(positions.norm(dim=1) < 0.5, 30.0, -100.0)

    def forward(self, positions, directions):
        return self.field(positions, directions)[0], self.raw_density(positions)

    def take_count(self) -> int:
        count, self.count = self.count, 0
        return count


def test_the_number_of_rays_follows_the_sample_budget(scene):
    model = model_of(replace(TINY_GRID, sample_budget=4096), scene)
    manager = RayDataManager(RayDataConfig(path=scene.root, rays=64), scene)
    for step in range(12):
        model(manager.next_train(step), step, generator(step))
        manager.num_rays = model.next_num_rays(manager.num_rays)
    work = model.renderer.statistics()["work_per_ray"].item() * manager.num_rays
    assert 0.5 * 4096 < work < 2 * 4096


@pytest.mark.parametrize("is_contracted", [False, True])
def test_grid_coordinates_invert(is_contracted):
    frame = SceneFrame((-1.0, -2.0, -3.0), (1.5, 2.0, 4.0), is_contracted)
    unit = torch.rand(1000, 3, generator=generator()) * 0.98 + 0.01
    torch.testing.assert_close(frame.to_unit(frame.from_unit(unit)), unit, atol=1e-4, rtol=0)


def test_contraction_keeps_the_inner_box_and_folds_infinity_into_the_shell():
    frame = SceneFrame((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0), True)
    inner, far = frame.to_unit(torch.tensor([[0.5, -1.0, 1.0], [1e6, 0.0, 0.0]]))
    torch.testing.assert_close(inner, torch.tensor([0.625, 0.25, 0.75]))
    assert far[0].item() == pytest.approx(1.0, abs=1e-5)
