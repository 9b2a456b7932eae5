# SPDX-License-Identifier: Apache-2.0
"""The binding refuses what the kernel could not survive, and says what it wanted."""

from typing import Any

import pytest
import torch

from diorama import native

pytestmark = pytest.mark.skipif(native.module is None, reason="the native kernels are not built")


def forward_arguments() -> dict[str, Any]:
    """Valid arguments for three samples of two rays with two channels."""
    return {
        "sigma": torch.ones(3),
        "delta": torch.ones(3),
        "values": torch.ones(3, 2),
        "ray_offsets": torch.tensor([0, 1, 3]),
        "weights": torch.empty(3),
        "transmittance": torch.empty(3),
        "ray_values": torch.empty(2, 2),
        "opacity": torch.empty(2),
        "num_threads": 1,
    }


def test_valid_arguments_fill_the_outputs():
    arguments = forward_arguments()
    native.module.composite_forward(**arguments)
    torch.testing.assert_close(arguments["opacity"], -torch.expm1(torch.tensor([-1.0, -2.0])))


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("delta", torch.ones(4), "delta must be 3 in number, got 4"),
        ("values", torch.tensor(1.0), "values must have an axis of channels"),
        ("values", torch.ones(2, 2), "rows of values must be 3 in number, got 2"),
        ("weights", torch.empty(2), "weights must be 3 in number, got 2"),
        ("transmittance", torch.empty(0), "transmittance must be 3 in number, got 0"),
        ("ray_values", torch.empty(2, 3), "ray_values must have size 2 on axis 1, got 3"),
        ("opacity", torch.empty(3), "opacity must have size 2 on axis 0, got 3"),
        ("ray_offsets", torch.tensor([1, 1, 3]), "ray_offsets must start at 0 and end at .* 3"),
        ("ray_offsets", torch.tensor([0, 1, 4]), "ray_offsets must start at 0 and end at .* 3"),
        ("ray_offsets", torch.tensor([0, 4, 3]), "ray_offsets must not decrease"),
        ("ray_offsets", torch.zeros(0, dtype=torch.int64), "ray_offsets must start at 0"),
    ],
)
def test_wrong_sizes_are_value_errors(name: str, wrong: torch.Tensor, message: str):
    with pytest.raises(ValueError, match=message):
        native.module.composite_forward(**{**forward_arguments(), name: wrong})


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("sigma", torch.ones(3, dtype=torch.float64)),
        ("weights", torch.empty(3, dtype=torch.float64)),
        ("weights", torch.empty(6)[::2]),
        ("ray_values", torch.empty(2, 2, 1)),
        ("values", torch.ones(2, 3).T),
        ("ray_offsets", torch.tensor([0, 1, 3], dtype=torch.int32)),
        ("num_threads", 1.0),
    ],
    ids=str,
)
def test_nothing_is_converted(name: str, wrong: Any):
    """A silent copy of an output would leave the caller's buffer untouched."""
    with pytest.raises(TypeError, match="incompatible function arguments"):
        native.module.composite_forward(**{**forward_arguments(), name: wrong})


def test_rays_of_one_length_need_no_offsets():
    arguments = forward_arguments() | {"ray_offsets": None}
    with pytest.raises(ValueError, match="3 samples cannot be those of 2 rays of one length"):
        native.module.composite_forward(**arguments)
    of_three = {"ray_values": torch.empty(3, 2), "opacity": torch.empty(3)}
    native.module.composite_forward(**(arguments | of_three))
    torch.testing.assert_close(of_three["opacity"], -torch.expm1(-torch.ones(3)))


def test_transmittance_need_not_be_wanted():
    wanted, unwanted = forward_arguments(), forward_arguments() | {"transmittance": None}
    native.module.composite_forward(**wanted)
    native.module.composite_forward(**unwanted)
    for name in ("weights", "ray_values", "opacity"):
        assert torch.equal(unwanted[name], wanted[name])


def test_backward_checks_its_own_arguments():
    names = ("sigma", "delta", "values", "ray_offsets", "weights", "transmittance")
    arguments = {name: forward_arguments()[name] for name in names} | {
        "grad_weights": None,
        "grad_ray_values": torch.ones(2, 2),
        "grad_opacity": torch.ones(2),
        "grad_sigma": None,
        "grad_delta": None,
        "grad_values": None,
        "num_threads": 1,
    }
    native.module.composite_backward(**arguments)
    native.module.composite_backward(**(arguments | {"grad_opacity": None}))
    for name, wrong in {"grad_sigma": torch.empty(2), "grad_values": torch.empty(3, 3)}.items():
        with pytest.raises(ValueError, match=f"{name} must be . in number"):
            native.module.composite_backward(**{**arguments, name: wrong})
