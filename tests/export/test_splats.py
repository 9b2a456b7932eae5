# SPDX-License-Identifier: Apache-2.0
"""Exported splats are in the user's frame, and only those that are wanted."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diorama.cameras import Similarity, matrix_from_quaternion
from diorama.data.scene import Scene
from diorama.errors import UserError
from diorama.export.splats import SplatChoice, chosen_splats, user_splats
from diorama.methods.splat.still import StillSplats
from diorama.methods.splat.still_scene import scene_of_splats
from diorama.model import SupportsSplats
from diorama.splats import Splats
from tests.engine.tiny import TinyModel, TinyModelConfig, tiny_scene


def made_splats(count: int = 20, degree: int = 1, seed: int = 0) -> Splats:
    """Random splats around (1, 2, 3)."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    return Splats(
        means=draw(count, 3) + torch.tensor([1.0, 2.0, 3.0]),
        quaternions=draw(count, 4),
        log_scales=draw(count, 3) - 2,
        opacity_logits=2 * draw(count),
        sh=0.3 * draw(count, (degree + 1) ** 2, 3),
    )


def still(splats: Splats, **changes) -> tuple[StillSplats, Scene]:
    scene = replace(scene_of_splats(splats, Path("made.ply")), **changes)
    return StillSplats(splats, scene), scene


def test_the_users_coordinates_come_back():
    splats = made_splats()
    turn = matrix_from_quaternion(torch.tensor([0.8, 0.36, -0.48, 0.0], dtype=torch.float64))
    scene_from_user = Similarity(2.5, turn, torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64))
    model, scene = still(splats, scene_from_user=scene_from_user)
    assert isinstance(model, SupportsSplats)
    found = user_splats(model, scene, "run")
    torch.testing.assert_close(
        scene_from_user.apply(found.means), splats.means, rtol=1e-5, atol=1e-5
    )
    torch.testing.assert_close(found.log_scales.exp() * 2.5, splats.log_scales.exp())
    # The constant colour does not depend on the frame; the next band turns like a vector.
    torch.testing.assert_close(found.sh[:, 0], splats.sh[:, 0])
    torch.testing.assert_close(found.sh[:, 1:4].norm(dim=1), splats.sh[:, 1:4].norm(dim=1))
    assert not torch.allclose(found.sh[:, 1:4], splats.sh[:, 1:4], atol=1e-2)


def test_an_exported_scene_looks_the_same_from_the_same_place():
    splats = made_splats(200, degree=3)
    turn = matrix_from_quaternion(torch.tensor([0.8, 0.36, -0.48, 0.0], dtype=torch.float64))
    scene_from_user = Similarity(2.5, turn, torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64))
    model, scene = still(splats, scene_from_user=scene_from_user)
    camera = scene.cameras[1].rescaled(0.1)
    view = model.render(camera)
    exported, _ = still(user_splats(model, scene, "run"))
    again = exported.render(camera.transformed(scene_from_user.inverse()))
    assert float(view.alpha.max()) > 0.5
    torch.testing.assert_close(again.rgb, view.rgb, atol=2e-4, rtol=0)
    torch.testing.assert_close(2.5 * again.depth, view.depth, atol=2e-3, rtol=0)


def test_a_method_without_splats_says_so():
    model = TinyModel(TinyModelConfig(), tiny_scene())
    with pytest.raises(UserError, match="outputs/x: its method has no Gaussian splats to export"):
        user_splats(model, model.scene, "outputs/x")


def test_the_transparent_are_left_out():
    splats = made_splats()
    found = chosen_splats(splats, SplatChoice(min_opacity=0.4))
    expected = splats.opacity_logits.sigmoid() >= 0.4
    assert torch.equal(found.means, splats.means[expected])
    assert 0 < len(found) < len(splats)


def test_the_crop_is_a_closed_box():
    splats = made_splats()
    first = splats.means[3].tolist()
    found = chosen_splats(splats, SplatChoice(crop=(*first, 10.0, 10.0, 10.0)))
    inside = (splats.means >= splats.means[3]).all(dim=1)
    assert torch.equal(found.sh, splats.sh[inside])


def test_the_largest_and_most_opaque_stay_in_their_order():
    splats = made_splats()
    importance = splats.opacity_logits.sigmoid() * splats.log_scales.exp().prod(dim=1)
    found = chosen_splats(splats, SplatChoice(max_splats=5))
    best = sorted(range(20), key=lambda i: -importance[i])[:5]
    assert torch.equal(found.means, splats.means[sorted(best)])
    assert len(chosen_splats(splats, SplatChoice(max_splats=100))) == 20


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"min_opacity": 1.5}, "--min-opacity must lie in 0..1, got 1.5"),
        ({"max_splats": 0}, "--max-splats must be at least 1, got 0"),
        ({"crop": (0.0, 0.0, 0.0, 1.0, -1.0, 1.0)}, "--crop needs xmin ymin zmin"),
        ({"crop": (90.0, 90.0, 90.0, 91.0, 91.0, 91.0)}, "no splat is left; widen --crop"),
    ],
)
def test_choices_that_cannot_be(choice, message):
    with pytest.raises(UserError, match=message):
        chosen_splats(made_splats(), SplatChoice(**choice))
