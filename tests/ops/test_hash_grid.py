# SPDX-License-Identifier: Apache-2.0
"""The hash grid against its reference, tiny-cuda-nn's conventions and exact cases."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from diorama import native
from diorama.ops.hash_grid import hash_grid, hash_grid_reference
from diorama.ops.hash_grid_layout import HashGridLayout
from tests.ops.parity import assert_parity

SMALL = HashGridLayout.of(3, 2, 6, base_resolution=3, max_resolution=9)
"""One dense and two hashed levels."""


def random_points(count: int, layout: HashGridLayout, generator: torch.Generator) -> Tensor:
    """Points away from all cell borders, where the gradient jumps and rounding decides the side."""
    candidates = torch.rand(4 * count + 8, 3, generator=generator)
    for scale in layout.scales:
        fraction = (candidates.double() * scale + 0.5).frac()
        candidates = candidates[((fraction - 0.5).abs() < 0.49).all(1)]
    assert len(candidates) >= count
    return candidates[:count]


def random_inputs(count: int, layout: HashGridLayout, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(layout.num_entries, layout.num_features, generator=generator)
    return random_points(count, layout, generator), table


def with_second_order(op: Callable[..., Tensor], layout: HashGridLayout, **options: Any):
    """The op's features, and the length of their gradient as eikonal losses see it."""

    def outputs(positions: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        features = op(positions, table, layout, **options)
        mixed = (features * torch.linspace(0.5, 1.5, features.shape[1]).to(features)).sum()
        gradient = torch.autograd.grad(mixed + (features**2).sum(), positions, create_graph=True)
        return features, (gradient[0] ** 2).sum(1)

    return outputs


@pytest.mark.usefixtures("build")
class TestKernel:
    @pytest.mark.parametrize("num_features", [1, 2, 4, 8])
    @pytest.mark.parametrize("count", [0, 1, 37])
    @pytest.mark.parametrize("interpolation", ["linear", "smoothstep"])
    def test_matches_reference(self, num_features: int, count: int, interpolation: Any):
        layout = HashGridLayout.of(4, num_features, 9, base_resolution=4, max_resolution=20)
        options = {"layout": layout, "interpolation": interpolation}
        inputs = random_inputs(count, layout)
        kernel, reference = partial(hash_grid, **options), partial(hash_grid_reference, **options)
        assert_parity(kernel, reference, *inputs, atol=2e-5)

    def test_many_points_match_reference(self):
        layout = HashGridLayout.of(6, 2, 12, base_resolution=8, max_resolution=100)
        inputs = random_inputs(5000, layout)
        kernel, reference = (partial(f, layout=layout) for f in (hash_grid, hash_grid_reference))
        assert_parity(kernel, reference, *inputs, rtol=1e-4, atol=2e-5)

    @pytest.mark.parametrize("num_features", [1, 2, 8])
    @pytest.mark.parametrize("interpolation", ["linear", "smoothstep"])
    def test_second_order_matches_reference(self, num_features: int, interpolation: Any):
        layout = HashGridLayout.of(3, num_features, 9, base_resolution=4, max_resolution=20)
        inputs = random_inputs(300, layout)
        assert_parity(
            with_second_order(hash_grid, layout, interpolation=interpolation),
            with_second_order(hash_grid_reference, layout, interpolation=interpolation),
            *inputs,
            rtol=1e-3,
            atol=5e-5,
        )

    @pytest.mark.parametrize("num_levels", [1, 3, 5])
    def test_threads_do_not_change_a_bit(self, num_levels: int):
        """Also with more threads than levels, where parts of a level have owners of their own."""
        layout = HashGridLayout.of(num_levels, 2, 8, base_resolution=4, max_resolution=20)
        inputs = random_inputs(5000, layout)
        outputs = with_second_order(hash_grid, layout)

        def bits(num_threads: int) -> list[Tensor]:
            torch.set_num_threads(num_threads)
            wanted = [t.clone().requires_grad_() for t in inputs]
            values = outputs(*wanted)
            return [*values, *torch.autograd.grad(values[0].sum() + values[1].sum(), wanted)]

        for num_threads in (2, 5):
            assert all(map(torch.equal, bits(1), bits(num_threads)))

    @pytest.mark.parametrize("interpolation", ["linear", "smoothstep"])
    def test_gradcheck_of_both_orders(self, interpolation: Any):
        layout = HashGridLayout.of(3, 1, 3, base_resolution=2, max_resolution=5)
        inputs = [t.double().requires_grad_() for t in random_inputs(2, layout)]
        op = partial(hash_grid, layout=layout, interpolation=interpolation, active_levels=2)
        assert torch.autograd.gradcheck(op, inputs)
        assert torch.autograd.gradgradcheck(op, inputs)

    def test_third_derivative_is_refused(self):
        positions, table = (t.requires_grad_() for t in random_inputs(4, SMALL))
        first = torch.autograd.grad(
            hash_grid(positions, table, SMALL).sum(), positions, create_graph=True
        )[0]
        with pytest.raises(RuntimeError, match="differentiable twice; call hash_grid_reference"):
            torch.autograd.grad(first.sum(), table, create_graph=True)

    @pytest.mark.parametrize("op", [hash_grid, hash_grid_reference])
    def test_inactive_levels_are_zero_and_get_no_gradient(self, op: Callable[..., Tensor]):
        positions, table = random_inputs(50, SMALL)
        table.requires_grad_()
        features = op(positions, table, SMALL, active_levels=1)
        assert (features[:, :2] != 0).all() and (features[:, 2:] == 0).all()
        (gradient,) = torch.autograd.grad(features.sum(), table)
        assert gradient[: SMALL.offsets[1]].abs().sum() > 0
        assert (gradient[SMALL.offsets[1] :] == 0).all()

    @pytest.mark.parametrize("op", [hash_grid, hash_grid_reference])
    def test_no_active_level_is_zero(self, op: Callable[..., Tensor]):
        positions, table = random_inputs(3, SMALL)
        table.requires_grad_()
        for num_threads in (1, 2):
            torch.set_num_threads(num_threads)
            features = op(positions, table, SMALL, active_levels=0)
            assert (features == 0).all()
            assert (torch.autograd.grad(features.sum(), table)[0] == 0).all()

    @pytest.mark.parametrize("op", [hash_grid, hash_grid_reference])
    def test_outside_is_the_border_without_gradient(self, op: Callable[..., Tensor]):
        _, table = random_inputs(0, SMALL)
        outside = torch.tensor([[-0.5, 0.3, 2.0], [1e30, -math.inf, 0.7]]).requires_grad_()
        features = op(outside, table, SMALL)
        border = op(outside.detach().clamp(0, 1), table, SMALL)
        assert torch.equal(features, border)
        (gradient,) = torch.autograd.grad(features.sum(), outside)
        assert (gradient != 0).tolist() == [[False, True, False], [False, False, True]]

    @pytest.mark.parametrize("op", [hash_grid, hash_grid_reference])
    def test_border_itself_wraps_around_inside_the_level(self, op: Callable[..., Tensor]):
        """The upper vertices at x = 1 lie outside of dense levels, even behind the last entry."""
        layout = HashGridLayout.of(1, 1, 6, base_resolution=4, max_resolution=4)
        assert layout.offsets == (0, 64)
        table = torch.zeros(64, 1)
        table[63], table[0] = 1.0, 8.0
        # Half way between the vertices 3 and 4 of each axis. Vertex (4, 3, 3) has the index 64 = 0
        # modulo 64; of the others none is 0 or 63.
        assert op(torch.ones(1, 3), table, layout).item() == pytest.approx((1 + 8) / 8)

    @pytest.mark.parametrize("op", [hash_grid, hash_grid_reference])
    def test_nan_is_not_hidden_and_reads_nothing_outside(self, op: Callable[..., Tensor]):
        positions, table = random_inputs(20, SMALL)
        positions[3, 1] = math.nan
        features = op(positions, table.requires_grad_(), SMALL)
        assert features.isnan().all(1).nonzero().flatten().tolist() == [3]
        assert torch.autograd.grad(features[:3].sum(), table)[0].shape == table.shape

    def test_strided_inputs_are_taken(self):
        positions, table = random_inputs(20, SMALL)
        wide = torch.randn(SMALL.num_entries, 4)
        wide[:, ::2] = table
        strided = hash_grid(positions.T.contiguous().T, wide[:, ::2], SMALL)
        assert torch.equal(strided, hash_grid(positions, table, SMALL))


@given(st.lists(st.floats(0, 1, width=32), min_size=3, max_size=3), st.integers(1, 4))
def test_linear_functions_are_reproduced(point: list[float], axis_weights: int):
    """On a dense level trilinear interpolation of a linear function is that function."""
    layout = HashGridLayout.of(1, 1, 12, base_resolution=9, max_resolution=9)
    side = layout.resolutions[0]
    vertices = torch.arange(side, dtype=torch.float64)
    z, y, x = torch.meshgrid(vertices, vertices, vertices, indexing="ij")
    slope = torch.tensor([1.0, 2.0, -0.5], dtype=torch.float64) * axis_weights
    table = torch.zeros(layout.num_entries, 1, dtype=torch.float64)
    table[: side**3, 0] = (slope[0] * x + slope[1] * y + slope[2] * z).flatten()
    # Stay below the last vertex: the half cell behind it wraps around.
    position = torch.tensor([point], dtype=torch.float64) * 0.9
    expected = ((position * layout.scales[0] + 0.5) * slope).sum().item()
    assert hash_grid(position, table, layout).item() == pytest.approx(expected, abs=1e-10)


def test_golden_vertices_of_a_hashed_level():
    """A vertex (x, y, z) has entry (x ^ 2654435761 y ^ 805459861 z) mod 2^32 mod T."""
    layout = HashGridLayout.of(1, 1, 14, base_resolution=513, max_resolution=513)
    assert not layout.is_dense[0]
    table = torch.arange(layout.num_entries, dtype=torch.float64)[:, None]
    # By hand: 2654435761 mod 16384 = 14769 and 805459861 mod 16384 = 6037.
    vertex = torch.tensor([[500.0, 300, 77]], dtype=torch.float64)
    golden = (500 ^ (300 * 14769) ^ (77 * 6037)) % 16384
    position = (vertex - 0.5) / layout.scales[0]
    assert hash_grid(position, table, layout).item() == pytest.approx(golden, abs=1e-6)
    # The cube's corner is the middle of a cell, where all eight vertices have equal weights.
    corners = [x ^ y ^ z for x in (0, 1) for y in (0, 14769) for z in (0, 6037)]
    origin = hash_grid(torch.zeros(1, 3, dtype=torch.float64), table, layout)
    assert origin.item() == pytest.approx(sum(corners) / 8)


def test_golden_layout_of_neuralangelo():
    layout = HashGridLayout.of(16, 8, 22, base_resolution=32, max_resolution=2048)
    assert layout.num_entries * layout.num_features == 365_792_384
    assert layout.resolutions[:6] == (32, 43, 56, 74, 98, 129)
    assert layout.is_dense == (True,) * 6 + (False,) * 10
    assert layout.output_size == 128


def test_one_level_has_the_base_resolution():
    layout = HashGridLayout.of(1, 2, 19, base_resolution=16, max_resolution=2048)
    assert layout.scales == (15.0,) and layout.resolutions == (16,)
    assert layout.offsets == (0, 4096)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"num_levels": 0}, "num_levels must be at least 1, got 0"),
        ({"num_features": 3}, r"num_features must be one of \(1, 2, 4, 8\), got 3"),
        ({"log2_table_size": 2}, "log2_table_size must be 3 to 30, got 2"),
        ({"max_resolution": 8}, "base_resolution must be .* got 16 and 8"),
    ],
)
def test_impossible_layouts_are_value_errors(changed: dict[str, int], message: str):
    valid = {
        "num_levels": 4,
        "num_features": 2,
        "log2_table_size": 10,
        "base_resolution": 16,
        "max_resolution": 32,
    }
    with pytest.raises(ValueError, match=message):
        HashGridLayout.of(**{**valid, **changed})


def test_wrong_arguments_are_value_errors():
    positions, table = random_inputs(2, SMALL)
    with pytest.raises(ValueError, match="table must have the layout's shape"):
        hash_grid(positions, table[1:], SMALL)
    with pytest.raises(ValueError, match="active_levels must be 0 to 3, got 4"):
        hash_grid(positions, table, SMALL, active_levels=4)


@pytest.mark.skipif(native.module is None, reason="the native kernels are not built")
@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("offsets", (0, 32, 96, 161), "offsets must start at 0 and end at the number of entries"),
        ("offsets", (0, 32, 91, 160), "level 1: a hashed level must have a power of two entries"),
        ("offsets", (0, 32, 28, 160), "level 1: bad number of entries"),
        ("offsets", (0, 160), "resolutions and offsets must have"),
        ("resolutions", (3, 0, 10), "level 1: bad resolution"),
        ("active_levels", 4, r"active_levels must be in 0 \.\. 3, got 4"),
        ("positions", torch.zeros(5, 2), "positions must have size 3 on axis 1, got 2"),
        ("directions", torch.zeros(4, 3), "directions must have size 5 on axis 0, got 4"),
        ("features", torch.empty(5, 5), "features must have size 6 on axis 1, got 5"),
        ("table", torch.empty(160, 3), "the number of features must be 1, 2, 4 or 8, got 3"),
    ],
)
def test_binding_refuses_what_would_read_outside(name: str, wrong: Any, message: str):
    arguments = {
        "positions": torch.zeros(5, 3),
        "directions": None,
        "table": torch.zeros(SMALL.num_entries, 2),
        "scales": SMALL.scales,
        "resolutions": SMALL.resolutions,
        "offsets": SMALL.offsets,
        "is_smooth": False,
        "active_levels": 3,
        "features": torch.empty(5, 6),
        "num_threads": 1,
    }
    assert SMALL.offsets == (0, 32, 96, 160)
    native.module.hash_grid_forward(**arguments)
    with pytest.raises(ValueError, match=message):
        native.module.hash_grid_forward(**{**arguments, name: wrong})


def test_half_precision_is_served_by_the_reference():
    positions, table = random_inputs(3, SMALL)
    assert hash_grid(positions.bfloat16(), table.bfloat16(), SMALL).dtype == torch.bfloat16


def test_known_features_are_taken_and_give_the_same_gradients():
    layout = HashGridLayout.of(3, 2, 8, 4, 16)
    positions = torch.rand(50, 3, requires_grad=True)
    table = torch.randn(layout.num_entries, 2, requires_grad=True)
    with torch.no_grad():
        known = hash_grid(positions, table, layout)
    fresh, reused = (hash_grid(positions, table, layout, known=k) for k in (None, known))
    assert torch.equal(fresh, reused)
    for a, b in zip(
        torch.autograd.grad(fresh.square().sum(), (positions, table)),
        torch.autograd.grad(reused.square().sum(), (positions, table)),
        strict=True,
    ):
        assert torch.equal(a, b)
