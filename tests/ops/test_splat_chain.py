# SPDX-License-Identifier: Apache-2.0
"""Projection, colours, lists and blending as one function, in scenes of every awkward kind."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from diorama.ops.gaussian_normals import gaussian_normals
from diorama.ops.project_gaussians import View, project_gaussians, project_gaussians_reference
from diorama.ops.rasterize import rasterize, rasterize_reference
from diorama.ops.rasterized import Rasterized
from diorama.ops.sh_colors import ColorActivation, sh_colors, sh_colors_reference
from diorama.ops.tile_lists import tile_lists, tile_lists_reference
from tests.ops.named_scenes import COUNT, SCENES, camera_of
from tests.ops.parity import assert_parity

WIDTH, HEIGHT = 60, 40
SMALL, TINY = 0.7, 0.26
"""Scales of the image: of 3 x 2 tiles, and of a single one."""
KERNELS = project_gaussians, sh_colors, tile_lists, rasterize
REFERENCES = (
    project_gaussians_reference,
    sh_colors_reference,
    tile_lists_reference,
    rasterize_reference,
)


@dataclass(frozen=True)
class Kind:
    """A lens and a way to draw."""

    is_fisheye: bool
    antialiased: bool
    color: ColorActivation
    gradients: str = "exact"

    def view(self, scale: float) -> View:
        return View(
            int(WIDTH * scale),
            int(HEIGHT * scale),
            model="fisheye" if self.is_fisheye else "pinhole",
            antialiased=self.antialiased,
            gradients=self.gradients,
        )


KINDS = {
    "pinhole": Kind(False, False, "shifted"),
    "pinhole, antialiased": Kind(False, True, "sigmoid"),
    "fisheye": Kind(True, False, "sigmoid"),
    "fisheye, antialiased": Kind(True, True, "shifted"),
}
FAITHFUL = {"faithful": Kind(False, True, "sigmoid", "faithful")}
NAMES = (
    *("means", "quaternions", "log_scales", "opacity_logits", "sh"),
    *("camera_from_world", "intrinsics", "extras", "background"),
)


def inputs_of(scene: str, kind: Kind, scale: float) -> list[Tensor]:
    """In the order of `NAMES`; two channels are extras."""
    generator = torch.Generator().manual_seed(9)
    extras = torch.randn(COUNT, 2, generator=generator)
    background = torch.rand(9, generator=generator)
    return [*SCENES[scene](), *camera_of(kind.is_fisheye, scale), extras, background]


def drawn(ops, kind: Kind, view: View, *inputs: Tensor) -> Rasterized:
    """rgb, depth, normal and extras of the whole chain."""
    project, colors_of, lists_of, raster = ops
    means, quaternions, log_scales, logits, sh, pose, intrinsics, extras, background = inputs
    center = -pose[:, :3].T @ pose[:, 3]
    seen = project(means, quaternions, log_scales, logits, pose, intrinsics, view)
    is_visible = seen.half_extents[:, 0] > 0
    view_of = means, center, 3, kind.color, is_visible, kind.gradients
    colors = colors_of(sh[:, :1], sh[:, 1:], *view_of)
    normals = gaussian_normals(quaternions, log_scales, means, center)
    features = torch.cat([colors, seen.depths[:, None], normals, extras], dim=1)
    size = view.width, view.height
    lists = lists_of(
        *(seen.centers, seen.conics, seen.opacities, seen.half_extents, seen.depths), *size
    )
    blended = seen.centers, seen.conics, seen.opacities, features, background
    return raster(*blended, lists, *size, gradients=kind.gradients)


def image_and_alpha(ops, kind: Kind, view: View) -> Callable[..., tuple[Tensor, Tensor]]:
    def run(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        result = drawn(ops, kind, view, *inputs)
        return result.image, result.alpha

    return run


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("scene", SCENES)
def test_gradcheck_of_the_reference(scene: str, kind: Kind):
    """Along random directions of every input."""
    inputs = [t.double().requires_grad_() for t in inputs_of(scene, kind, TINY)]
    run = image_and_alpha(REFERENCES, kind, kind.view(TINY))
    assert float(run(*inputs)[1].detach().max()) > 0.02
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True, check_undefined_grad=False)


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("kind", (KINDS | FAITHFUL).values(), ids=KINDS | FAITHFUL)
@pytest.mark.parametrize("scene", SCENES)
def test_kernels_match_the_reference(scene: str, kind: Kind):
    inputs, view = inputs_of(scene, kind, SMALL), kind.view(SMALL)
    kernel, reference = (image_and_alpha(ops, kind, view) for ops in (KERNELS, REFERENCES))
    assert_parity(kernel, reference, *inputs, rtol=1e-4, atol=1e-5)
    got = drawn(KERNELS, kind, view, *inputs)
    expected = drawn(REFERENCES, kind, view, *(t.double() for t in inputs))
    assert torch.equal(got.count, expected.count)
    assert torch.equal(got.median_splat, expected.median_splat)
    assert got.count.max() > 0


@pytest.mark.parametrize("name", NAMES)
def test_every_input_has_a_gradient(name: str):
    """Otherwise the two tests above would compare zeros."""
    kind = KINDS["pinhole, antialiased"]
    inputs = [t.requires_grad_() for t in inputs_of("overlapping", kind, SMALL)]
    image, alpha = image_and_alpha(KERNELS, kind, kind.view(SMALL))(*inputs)
    (image.square().sum() + alpha.sum()).backward()
    gradient = inputs[NAMES.index(name)].grad
    assert gradient is not None and gradient.isfinite().all()
    assert float((gradient != 0).float().mean()) > 0.5
