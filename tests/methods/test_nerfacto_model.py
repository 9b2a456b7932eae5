# SPDX-License-Identifier: Apache-2.0
"""Nerfacto as a model: gradients, masks, poses, appearance, rendering, exact resume."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from diorama.config import DataConfig, FieldOptimConfig, RayDataConfig
from diorama.data.load import load_scene
from diorama.data.ray_manager import RayBatch, RayDataManager
from diorama.data.scene import Scene
from diorama.engine.optimizers import Optimizers
from diorama.methods.nerfacto.config import NerfactoConfig
from diorama.methods.nerfacto.guidance import AT, EVERY
from diorama.methods.nerfacto.model import PLAIN_START, NerfactoModel
from diorama.methods.nerfacto.photographed import mark_photographed
from diorama.nn.photographed_space import EPOCH, WINDOW
from diorama.scenes import make_scene

TINY = NerfactoConfig(
    levels=4, features=2, log2_table=10, max_resolution=64, width=16, color_layers=1,
    samples=8, proposal_samples=(24, 12), proposal_resolutions=(32, 32), proposal_levels=2,
    proposal_log2_table=9, proposal_every=1, proposal_warmup=0, anneal_steps=4,
)  # fmt: skip


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Scene:
    folder = tmp_path_factory.mktemp("scene") / "spheres"
    make_scene("spheres", folder, size=24, num_train=4, num_val=1, num_test=1)
    return load_scene(DataConfig(path=folder))


@pytest.fixture(scope="module")
def place(scene) -> Scene:
    """The same photographs as if they were of a place: no alpha, no end."""
    return replace(scene, kind="unbounded", has_alpha=False, background=None)


def model_of(config: NerfactoConfig, scene: Scene, seed: int = 0) -> NerfactoModel:
    torch.manual_seed(seed)
    return NerfactoModel(config, scene)


def batch_of(scene: Scene, step: int = 0, rays: int = 64) -> RayBatch:
    return RayDataManager(RayDataConfig(path=scene.root, rays=rays), scene).next_train(step)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def loss_of(model: NerfactoModel, batch: RayBatch, step: int = 0) -> dict[str, Tensor]:
    return model.get_loss_dict(model(batch, step, generator(step)), batch)


def train(model: NerfactoModel, scene: Scene, steps: range, optimizers: Optimizers) -> None:
    for step in steps:
        optimizers.zero_grad()
        sum(loss_of(model, batch_of(scene, step), step).values()).backward()
        optimizers.step(step, 40, 1.0)


def optimizers_of(model: NerfactoModel) -> Optimizers:
    recipe = FieldOptimConfig(lr=1e-2, lr_final=1e-3, eps=1e-15)
    return Optimizers(recipe, model.get_param_groups())


def test_every_parameter_is_in_one_group_and_gets_a_gradient(place):
    model = model_of(replace(TINY, refine_poses=True, initial_density=1.0), place)
    groups = model.get_param_groups()
    assert len(groups["tables"]) == 3 and set(groups) == {"tables", "networks", "poses"}
    grouped = {id(p) for group in groups.values() for p in group}
    assert grouped == {id(p) for p in model.parameters()}
    sum(loss_of(model, batch_of(place)).values()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_the_losses_of_a_place_and_of_an_object(scene, place):
    assert set(loss_of(model_of(TINY, place), batch_of(place))) == {
        "rgb", "interlevel", "distortion",
    }  # fmt: skip
    assert set(loss_of(model_of(TINY, scene), batch_of(scene))) == {"rgb", "interlevel"}


def test_plain_surfaces_teach_the_density_alone_and_less_and_less(place):
    model, batch = model_of(replace(TINY, plainness=0.2, plain_patches=3), place), batch_of(place)
    outputs = model(batch, 0, generator())
    assert len(outputs["rgb"]) == len(batch.rays) and len(outputs["distortion"]) == len(batch.rays)
    loss = model.get_loss_dict(outputs, batch)["plainness"]
    loss.backward()
    assert model.field.grid.table.grad is not None and model.field.grid.table.grad.abs().sum() > 0
    assert all(p.grad is None or not p.grad.any() for p in model.field.color_net.parameters())
    model.max_steps = late = AT + 100 * EVERY
    assert "plainness" not in model(batch, late - 1, generator())
    outputs = model(batch, late, generator())
    model.max_steps = 10**9
    unfaded = model(batch, late, generator())
    expected = 0.1 * EVERY * unfaded["plainness"]
    torch.testing.assert_close(outputs["plainness"], expected)


def test_plain_photographs_teach_the_density_alone_and_more_and_more(place):
    config = RayDataConfig(path=place.root, rays=64, patches=1.0)
    batch = RayDataManager(config, place).next_train(0)
    model = model_of(replace(TINY, photo_plainness=2.0), place)
    outputs = model(batch, 0, generator())
    loss = model.get_loss_dict(outputs, batch)["photo_plainness"]
    torch.testing.assert_close(loss, 2.0 * outputs["photo_plainness"])
    loss.backward()
    assert model.field.grid.table.grad is not None and model.field.grid.table.grad.abs().sum() > 0
    assert all(p.grad is None or not p.grad.any() for p in model.field.color_net.parameters())
    assert "photo_plainness" not in model(batch_of(place), 0, generator())
    model.max_steps = late = 1000
    whole = model(batch, late, generator())["photo_plainness"]
    model.max_steps = 2 * late
    half_way = model(batch, late, generator())["photo_plainness"]
    torch.testing.assert_close(half_way, PLAIN_START**0.5 * whole)


def test_resting_proposals_have_no_loss_and_no_gradient(place):
    model, batch = model_of(replace(TINY, proposal_every=100), place), batch_of(place)
    assert "interlevel" in loss_of(model, batch, 9)
    losses = loss_of(model, batch, 20)
    assert "interlevel" not in losses
    sum(losses.values()).backward()
    assert all(p.grad is None for p in model.sampler.parameters())


def test_the_interlevel_loss_leaves_the_field_alone(place):
    model = model_of(TINY, place)
    loss_of(model, batch_of(place))["interlevel"].backward()
    assert all(p.grad is None for p in model.field.parameters())


def test_masked_rays_do_not_count(place):
    model, batch = model_of(TINY, place), batch_of(place)
    weights = torch.zeros(len(batch.rays))
    weights[:10] = 1.0
    outputs = model(batch, 0, generator())
    masked = model.get_loss_dict(outputs, replace(batch, weights=weights))
    expected = (outputs["rgb"] - outputs["target"])[:10].square().mean()
    torch.testing.assert_close(masked["rgb"], expected)
    torch.testing.assert_close(masked["distortion"], 0.002 * outputs["distortion"][:10].mean())


def test_nothing_is_seen_through_a_place_but_an_object_has_a_background(scene, place):
    empty = replace(TINY, initial_density=1e-9)
    thing = model_of(replace(empty, background="black"), scene).render(scene.cameras[0])
    assert thing.rgb.max() < 1e-6 and thing.alpha.max() < 1e-6
    assert model_of(empty, place).render(place.cameras[0]).rgb.min() > 0.2  # sigmoid's middle


def test_rendering_has_every_output_and_does_not_depend_on_chunks(place):
    model = model_of(replace(TINY, initial_density=1.0), place)
    whole = model.render(place.cameras[0])
    model.config = replace(model.config, render_chunk=100)
    parts = model.render(place.cameras[0])
    torch.testing.assert_close(parts.rgb, whole.rgb, atol=1e-5, rtol=0)
    torch.testing.assert_close(parts.depth, whole.depth, atol=1e-3, rtol=1e-3)
    assert whole.normal is not None and not whole.rgb.requires_grad
    lengths = whole.normal.norm(dim=-1)
    assert torch.all((lengths < 1e-6) | ((lengths - 1).abs() < 1e-4))
    assert whole.extras["median_depth"].shape == whole.depth.shape


def test_what_is_thin_is_looked_at_more_closely_and_nothing_else_changes(place, monkeypatch):
    model, camera = model_of(TINY, place), place.cameras[0]
    thin = torch.zeros(camera.height(), camera.width(), dtype=torch.bool)
    thin[3, 4] = thin[20, 11] = True
    before = model.render(camera)
    model.config = replace(model.config, supersample_thin=True)
    monkeypatch.setattr("diorama.methods.nerfacto.render.thin_places", lambda depth: thin)
    after = model.render(camera)
    assert torch.equal((after.rgb != before.rgb).any(dim=-1), thin)
    torch.testing.assert_close(after.rgb, before.rgb, atol=0.1, rtol=0.0)
    assert torch.equal(after.depth, before.depth)
    assert torch.equal(after.normal, before.normal)
    thin[:] = False
    assert torch.equal(model.render(camera).rgb, before.rgb)


def test_views_look_as_the_training_images_around_them(place):
    model = model_of(TINY, place)
    held_out, first = place.splits["test"][0], place.splits["train"][0]
    here, there = (model.render(place.cameras[i]).rgb for i in (held_out, first))
    assert model.appearance is not None
    with torch.no_grad():
        model.appearance.codes[held_out] += 100.0
    assert torch.equal(model.render(place.cameras[held_out]).rgb, here)
    with torch.no_grad():
        model.appearance.codes[first] += 100.0
    assert not torch.equal(model.render(place.cameras[first]).rgb, there)


def test_views_are_exposed_as_the_training_images_around_them(place):
    model = model_of(replace(TINY, exposure=True), place)
    assert model.exposure is not None
    first = place.splits["train"][0]
    before = model.render(place.cameras[first]).rgb
    model.exposure.logarithms.data[first] = torch.tensor([-0.4, 0.0, 0.4])
    gains = torch.exp(torch.tensor([-0.3, 0.0, 0.3]))  # a quarter of it is the mean of all four
    after = model.render(place.cameras[first]).rgb
    torch.testing.assert_close(after, (before * gains).clamp(max=1.0), rtol=1e-4, atol=1e-6)


def test_only_pixels_that_count_say_what_is_photographed(place):
    config = replace(TINY, fill_unphotographed=True, plainness=0.2, initial_density=1.0)
    model, batch = model_of(config, place), batch_of(place)
    assert model.photographed is not None
    met = model.photographed.last_met
    model(replace(batch, weights=torch.zeros_like(batch.weights)), 7, generator())
    assert met.max() == 0
    model(batch, 7, generator())
    marked = met.count_nonzero()
    assert 0 < marked <= len(batch.rays) * TINY.samples and met.max() == 1
    model(batch, 7 + EPOCH // len(batch.rays), generator())
    assert met.max() == 2


def test_pictures_do_not_show_what_nobody_photographed(place):
    config = replace(TINY, initial_density=1.0)
    plain = model_of(config, place)
    train(plain, place, range(40), optimizers_of(plain))
    model = model_of(replace(config, fill_unphotographed=True), place)
    model.load_state_dict(plain.state_dict(), strict=False)
    camera = place.cameras[place.splits["train"][0]]
    before = plain.render(camera).rgb
    assert torch.equal(model.render(camera).rgb, before)  # too early to tell
    assert model.photographed is not None

    rays, half = camera.image_rays(), camera.height() // 2
    upper = rays[: half * camera.width()]
    samples, _ = model.sampler.sample(upper)
    everything, is_counted = torch.ones_like(samples.t), torch.ones(len(upper), dtype=torch.bool)
    mark_photographed(model.photographed, upper, samples, everything, is_counted, WINDOW * EPOCH)
    view = model.render(camera)
    share, change = view.extras["photographed"], (view.rgb - before).abs().amax(dim=2)
    assert share[:half].min() > 0.999 and share[half + 2 :].min() < 0.5
    assert change[:half].max() < 1e-3 and change[half:].max() > 0.02
    assert (change <= 1.0 - share + 1e-5).all()


def test_objects_have_a_background_that_needs_no_photograph(scene):
    assert model_of(replace(TINY, fill_unphotographed=True), scene).photographed is None


def test_jitter_and_background_come_from_the_generator(scene):
    model, batch = model_of(TINY, scene), batch_of(scene)
    one, two, again = (model(batch, 0, generator(seed)) for seed in (1, 2, 1))
    assert torch.equal(one["rgb"], again["rgb"]) and torch.equal(one["target"], again["target"])
    assert not torch.equal(one["target"], two["target"])


def test_training_from_a_checkpoint_ends_with_the_same_bits(place):
    config = replace(
        TINY, proposal_every=3, refine_poses=True, plainness=0.2, fill_unphotographed=True
    )
    model = model_of(config, place)
    optimizers = optimizers_of(model)
    train(model, place, range(14), optimizers)
    saved = {name: value.clone() for name, value in model.state_dict().items()}
    moments = {name: value.clone() for name, value in optimizers.state_dict().items()}
    train(model, place, range(14, 24), optimizers)

    again = model_of(config, place, seed=1)
    again.load_state_dict(saved)
    optimizers = optimizers_of(again)
    optimizers.load_state_dict(moments)
    train(again, place, range(14, 24), optimizers)
    assert all(torch.equal(value, again.state_dict()[k]) for k, value in model.state_dict().items())


@pytest.mark.parametrize("kind", ["object", "unbounded"])
def test_a_few_steps_learn_the_picture(scene, place, kind):
    data = scene if kind == "object" else place
    model = model_of(TINY, data)
    optimizers = optimizers_of(model)
    first = loss_of(model, batch_of(data))["rgb"].item()
    train(model, data, range(40), optimizers)
    assert loss_of(model, batch_of(data), 1)["rgb"].item() < 0.5 * first


def test_new_weights_are_new_and_the_schedule_begins_again(place):
    model = model_of(TINY, place)
    model.sampler.last_update.fill_(7)
    table = model.field.grid.table.detach().clone()
    model.reinitialize(generator(3))
    assert not torch.equal(model.field.grid.table, table)
    assert model.sampler.last_update == 0


def test_steps_with_guidance_are_planned_to_take_longer(place):
    costs = [model_of(TINY, place).step_cost(step, 100) for step in (0, 99)]
    assert costs == [1.0, 1.0]
    early, late = (
        model_of(replace(TINY, plainness=0.2), place).step_cost(step, 100) for step in (0, 99)
    )
    assert 1.0 < late < early
