# SPDX-License-Identifier: Apache-2.0
"""Tile lists against their reference, against all pixels one by one, and against circles."""

import dataclasses
import math

import jaxtyping
import pytest
import torch

from diorama import native
from diorama.ops.tile_lists import TileLists, tile_lists, tile_lists_reference
from tests.ops.image_plane_splats import Splats, random_splats, splats_of
from tests.ops.parity import tensors_of

SIZES = [(1, 1), (17, 5), (123, 82), (400, 320)]
OPS = [tile_lists, tile_lists_reference]


def pairs_of(lists: TileLists) -> set[tuple[int, int]]:
    tile = torch.arange(len(lists.starts) - 1).repeat_interleave(lists.starts.diff())
    return set(zip(tile.tolist(), lists.splats.tolist(), strict=True))


def pairs_of_pixels(scene: Splats) -> set[tuple[int, int]]:
    """Every pair of a tile and a Gaussian that reaches alpha 1 / 255 in one of its pixels."""
    scene = scene.to(torch.float64)
    y, x = torch.meshgrid(torch.arange(scene.height), torch.arange(scene.width), indexing="ij")
    tile = y // 16 * math.ceil(scene.width / 16) + x // 16
    dx, dy = (g[..., None] + 0.5 - c for g, c in zip((x, y), scene.centers.unbind(1), strict=True))
    a, b, c = scene.conics.unbind(1)
    alpha = scene.opacities * torch.exp(-(0.5 * (a * dx * dx + c * dy * dy) + b * dx * dy))
    row, column, splat = (alpha >= 1 / 255).nonzero(as_tuple=True)
    return set(zip(tile[row, column].tolist(), splat.tolist(), strict=True))


@pytest.mark.usefixtures("build")
class TestKernel:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.parametrize("count", [0, 1, 33, 3000])
    def test_matches_reference(self, count: int, size: tuple[int, int], dtype: torch.dtype):
        scene = random_splats(count, *size).to(dtype)
        expected = tensors_of(tile_lists_reference(*scene.projected, *size))
        for threads in (1, 2):
            torch.set_num_threads(threads)
            for got, exact in zip(tensors_of(scene.lists()), expected, strict=True):
                assert torch.equal(got, exact)

    def test_many_pairs_match_reference(self):
        """So many that both sorts work in several pieces."""
        scene = random_splats(40_000, 500, 300, size=9.0)
        depths = (scene.depths * 100).round()  # many equal ones
        scene = dataclasses.replace(scene, depths=depths)
        expected = tile_lists_reference(*scene.projected, 500, 300)
        assert len(expected.splats) > 100_000
        for got, exact in zip(tensors_of(scene.lists()), tensors_of(expected), strict=True):
            assert torch.equal(got, exact)

    def test_strided_inputs_are_taken(self):
        scene = random_splats(40, 90, 60)
        half = scene[torch.arange(0, 40, 2)]
        lists = tile_lists(*(t[::2] for t in scene.projected), 90, 60)
        assert torch.equal(lists.splats, half.lists().splats)

    def test_binding_names_the_argument(self):
        inputs = *random_splats(3, 40, 40).projected, 40, 40
        short, masks = torch.empty(3, dtype=torch.int64), torch.zeros(3, 2, dtype=torch.int64)
        with pytest.raises(ValueError, match="splat_starts must have size 4 on axis 0, got 3"):
            native.module.tile_lists_count(*inputs, short, masks, 1)
        starts, splats = torch.empty(10, dtype=torch.int64), torch.empty(5, dtype=torch.int32)
        wrong = torch.tensor([0, 3, 1, 5])
        with pytest.raises(ValueError, match="splat_starts must not decrease"):
            native.module.tile_lists_fill(*inputs, wrong, masks, starts, splats, splats.clone(), 1)

    @pytest.mark.parametrize("word", [0, -1, 12345678901234567])
    def test_foreign_offsets_stay_within_memory(self, word: int):
        inputs = *random_splats(3, 40, 40).projected, 40, 40
        starts, splats = torch.empty(10, dtype=torch.int64), torch.empty(99, dtype=torch.int32)
        foreign, masks = torch.tensor([0, 1, 98, 99]), torch.full((3, 2), word)
        native.module.tile_lists_fill(*inputs, foreign, masks, starts, splats, splats.clone(), 1)
        assert starts[-1] == 99


@pytest.mark.parametrize("op", OPS)
class TestDefinition:
    @pytest.mark.parametrize(
        ("size", "stretch"), [(0.2, 1.0), (3.0, 2.0), (2.0, 100.0), (60.0, 1.0)]
    )
    def test_no_pixel_is_lost(self, op, size: float, stretch: float):
        """Small, usual, thin and large ones; and few tiles are listed in vain."""
        scene = random_splats(250, 123, 82, size=size, stretch=stretch)
        needed = pairs_of_pixels(scene)
        listed = pairs_of(op(*scene.projected, 123, 82))
        assert needed <= listed
        assert len(listed) < 1.25 * len(needed) + 10

    def test_circle_meets_tile_where_distance_says_so(self, op):
        generator = torch.Generator().manual_seed(3)
        count, width, height = 400, 70, 50
        centers = torch.rand(count, 2, generator=generator) * 90 - 10
        sizes = 0.5 + 4 * torch.rand(count, 1, generator=generator).expand(-1, 2)
        opacities = torch.rand(count, generator=generator)
        scene = splats_of(
            *(centers, sizes, torch.zeros(count), opacities, torch.ones(count), width, height)
        )
        radius = sizes[:, 0] * (2 * (255 * opacities).log()).clamp(min=0).sqrt()
        listed = pairs_of(op(*scene.projected, width, height))
        for row in range(4):
            for column in range(5):
                low = torch.tensor([16 * column + 0.5, 16 * row + 0.5])
                high = torch.minimum(low + 15, torch.tensor([width - 0.5, height - 0.5]))
                distance = (centers - centers.clamp(low, high)).norm(dim=1)
                is_clear = (distance - radius).abs() > 0.02  # the margin
                expected = (distance < radius)[is_clear].tolist()
                splats = is_clear.nonzero().flatten().tolist()
                assert [(row * 5 + column, i) in listed for i in splats] == expected

    def test_order_is_by_depth_and_then_index(self, op):
        scene = random_splats(300, 64, 64, size=8.0)
        depths = (scene.depths * 5).round() - 7  # equal ones, negative ones and zeros of both signs
        depths[depths == 0] *= -torch.ones(1)
        lists = op(*dataclasses.replace(scene, depths=depths).projected, 64, 64)
        for first, last in lists.starts.unfold(0, 2, 1).tolist():
            splats = lists.splats[first:last].tolist()
            assert splats == sorted(splats, key=lambda i: (depths[i].item(), i))

    def test_slots_count_by_gaussian(self, op):
        lists = op(*random_splats(200, 100, 90).projected, 100, 90)
        tile = torch.arange(42).repeat_interleave(lists.starts.diff())
        by_slot = lists.slots.long().argsort()
        assert torch.equal(lists.slots.sort().values, torch.arange(len(by_slot)).int())
        splat = lists.splats[by_slot].long()
        assert torch.equal(torch.bincount(splat, minlength=200), lists.splat_starts.diff())
        assert torch.equal((splat * 42 + tile[by_slot]).sort().values, splat * 42 + tile[by_slot])

    def test_what_cannot_be_seen_is_in_no_list(self, op):
        scene = random_splats(8, 40, 40)
        centers, conics, opacities, half_extents, depths = (t.clone() for t in scene.projected)
        centers[:], opacities[:], half_extents[:] = 20.0, 0.5, 9.0
        half_extents[0] = 0
        half_extents[1, 0] = 0
        opacities[2] = 0.0039
        conics[3] = torch.tensor([1.0, 1.0, 1.0])
        conics[4] = torch.tensor([-1.0, 0.0, -1.0])
        conics[5] = math.nan
        centers[6] = math.nan
        centers[7] = torch.tensor([-30.0, 20.0])
        lists = op(centers, conics, opacities, half_extents, depths, 40, 40)
        assert lists.starts.tolist() == [0] * 10
        assert lists.splat_starts.tolist() == [0] * 9

    def test_infinite_box_covers_the_image(self, op):
        scene = splats_of(
            *(torch.full((1, 2), 20.0), torch.full((1, 2), 1e4), torch.zeros(1)),
            *(torch.full((1,), 0.9), torch.ones(1), 50, 33),
        )
        half_extents = torch.full((1, 2), math.inf)
        lists = op(*dataclasses.replace(scene, half_extents=half_extents).projected, 50, 33)
        assert lists.starts.tolist() == list(range(13))


@pytest.mark.parametrize("name", ["conics", "opacities", "half_extents", "depths"])
def test_wrong_shapes_are_named(monkeypatch, name: str):
    # The shape guard would see these first; users run without it.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    scene = dataclasses.asdict(random_splats(4, 40, 40))
    with pytest.raises(ValueError, match=rf"{name} must have the shape \(4.*got \(3"):
        tile_lists(**{**scene, name: scene[name][:3]})


def test_empty_image_is_refused():
    with pytest.raises(ValueError, match="width and height must be positive, got 0 and 4"):
        tile_lists(*random_splats(2, 8, 8).projected, 0, 4)
