# SPDX-License-Identifier: Apache-2.0
"""The fused perceptron against its reference, closed forms and its own symmetries."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from diorama import native
from diorama.ops.fused_mlp import fused_mlp, fused_mlp_reference
from tests.ops.parity import assert_parity

ACTIVATIONS = ("relu", "softplus", "none")
HEADS = ("none", "relu", "softplus", "sigmoid", "exp")


def random_network(
    sizes: tuple[int, ...], num_points: int, with_biases: bool = True
) -> tuple[Tensor, ...]:
    """x, then the weights, then the biases if there are any."""
    generator = torch.Generator().manual_seed(num_points + sum(sizes))
    x = torch.randn(num_points, sizes[0], generator=generator)
    pairs = list(itertools.pairwise(sizes))
    weights = [torch.randn(o, i, generator=generator) * i**-0.5 for i, o in pairs]
    biases = [0.3 * torch.randn(o, generator=generator) for _, o in pairs if with_biases]
    return x, *weights, *biases


def flat(function: Callable[..., Tensor], num_layers: int, **settings: Any) -> Callable[..., Any]:
    """The op with weights and biases as separate arguments, as tests of gradients want it."""

    def call(x: Tensor, *parameters: Tensor) -> Tensor:
        biases = parameters[num_layers:] or None
        return function(x, parameters[:num_layers], biases, **settings)

    return call


def assert_agreement(sizes: tuple[int, ...], inputs: tuple[Tensor, ...], **settings: Any) -> None:
    num_layers = len(sizes) - 1
    op, reference = (flat(f, num_layers, **settings) for f in (fused_mlp, fused_mlp_reference))
    assert_parity(op, reference, *inputs, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("build")
class TestKernel:
    @pytest.mark.parametrize("num_points", [0, 1, 77, 1100])
    @pytest.mark.parametrize(
        "sizes",
        [(32, 64, 64, 16), (1, 1), (5, 7, 2, 33, 3), (8, 80, 100)],
        ids=str,
    )
    def test_matches_reference(self, sizes: tuple[int, ...], num_points: int):
        # Softplus: a ReLU's gradient jumps where rounding moves a value through zero.
        inputs = random_network(sizes, num_points)
        assert_agreement(sizes, inputs, activation="softplus")

    @pytest.mark.parametrize("sizes", [(32, 64, 64, 16), (16, 24, 3), (6, 18)], ids=str)
    def test_matches_reference_without_biases(self, sizes: tuple[int, ...]):
        assert_agreement(sizes, random_network(sizes, 300, with_biases=False))

    @pytest.mark.parametrize("head", HEADS)
    @pytest.mark.parametrize("activation", ACTIVATIONS)
    def test_activations_match_reference(self, activation: str, head: str):
        sizes = (9, 16, 20, 16)
        inputs = random_network(sizes, 50)
        assert_agreement(sizes, inputs, activation=activation, head=head, beta=2.5)

    @pytest.mark.parametrize("head", HEADS)
    @pytest.mark.parametrize("num_outputs", [1, 2, 3, 4, 5])
    def test_few_outputs_match_reference(self, num_outputs: int, head: str):
        sizes = (9, 18, num_outputs)
        inputs = random_network(sizes, 50)
        assert_agreement(sizes, inputs, activation="none", head=head, beta=0.5)

    def test_many_pieces_are_summed_in_one_order(self):
        sizes = (3, 16, 2)
        assert_agreement(sizes, random_network(sizes, 66_000), activation="softplus")

    @pytest.mark.parametrize("sizes", [(256, 256, 256), (24,) * 9], ids=str)
    def test_wide_and_deep_networks(self, sizes: tuple[int, ...]):
        assert_agreement(sizes, random_network(sizes, 20), activation="softplus", head="sigmoid")

    @pytest.mark.parametrize("head", HEADS)
    def test_gradcheck(self, head: str):
        inputs = [t.double().requires_grad_() for t in random_network((3, 5, 2), 4)]
        op = flat(fused_mlp, 2, activation="softplus", head=head, beta=3.0)
        assert torch.autograd.gradcheck(op, inputs)

    @pytest.mark.parametrize("wanted", [[0], [1, 2], [3, 4], [2, 4]])
    def test_only_wanted_gradients_are_given(self, wanted: list[int]):
        inputs = random_network((4, 6, 5), 33)
        for k in wanted:
            inputs[k].requires_grad_()
        flat(fused_mlp, 2)(*inputs).square().sum().backward()
        assert [k for k, t in enumerate(inputs) if t.grad is not None] == wanted
        gradients = [inputs[k].grad.clone() for k in wanted]
        flat(fused_mlp_reference, 2)(*inputs).square().sum().backward()
        for k, gradient in zip(wanted, gradients, strict=True):
            torch.testing.assert_close(2 * gradient, inputs[k].grad, rtol=1e-4, atol=1e-4)

    def test_permuting_points_permutes_results(self):
        """A point's bits do not depend on where it lies in a block."""
        x, *parameters = random_network((7, 32, 3), 131)
        order = torch.randperm(131, generator=torch.Generator().manual_seed(0))
        op = flat(fused_mlp, 2, head="exp")
        assert torch.equal(op(x, *parameters)[order], op(x[order], *parameters))

    @pytest.mark.parametrize("activation", ["relu", "softplus"])
    @pytest.mark.parametrize("sizes", [(32, 64, 64, 16), (5, 7, 20, 3), (4, 2)], ids=str)
    def test_hidden_values_kept_or_computed_again_are_the_same(
        self, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], activation: str
    ):
        inputs = [t.requires_grad_() for t in random_network(sizes, 1200)]
        gradients = []
        for limit in (0, 2**25):
            monkeypatch.setattr("diorama.ops.fused_mlp._LARGEST_KEPT", limit)
            out = flat(fused_mlp, len(sizes) - 1, activation=activation)(*inputs)
            # Twice, because the backward pass must leave what was kept as it is.
            torch.autograd.grad(out.square().sum(), inputs, retain_graph=True)
            gradients.append(torch.autograd.grad(out.square().sum(), inputs))
        assert all(torch.equal(*pair) for pair in zip(*gradients, strict=True))

    def test_strided_inputs_are_taken(self):
        x, *parameters = random_network((8, 16, 4), 20, with_biases=False)
        strided = [t.T.contiguous().T for t in parameters]
        expected = fused_mlp(x[::2].contiguous(), parameters, None)
        assert torch.equal(fused_mlp(x[::2], strided, None), expected)

    @pytest.mark.parametrize("activation", ACTIVATIONS)
    def test_nan_is_not_hidden_and_stays_in_its_row(self, activation: str):
        x, *weights = random_network((4, 16, 3), 40, with_biases=False)
        x[5, 2] = math.nan
        out = fused_mlp(x, weights, None, activation=activation)
        assert out.isnan().any(1).nonzero().flatten().tolist() == [5]

    def test_second_derivative_is_refused(self):
        inputs = [t.requires_grad_() for t in random_network((2, 3, 1), 4)]
        loss = flat(fused_mlp, 2)(*inputs).sum()
        with pytest.raises(RuntimeError, match="differentiable once; call its _reference twin"):
            torch.autograd.grad(loss, inputs[:1], create_graph=True)


@pytest.mark.parametrize("function", [fused_mlp, fused_mlp_reference])
class TestClosedForms:
    def test_two_relus_make_the_absolute_value(self, function: Callable[..., Tensor]):
        x = torch.linspace(-2, 2, 41)[:, None].requires_grad_()
        weights = [torch.tensor([[1.0], [-1.0]]), torch.ones(1, 2)]
        out = function(x, weights, None)
        assert torch.equal(out, x.abs())
        out.sum().backward()
        assert torch.equal(x.grad, x.sign())

    @pytest.mark.parametrize(
        ("head", "values", "slopes"),
        [
            ("relu", [0.0, 0.0, 1.5, 30.0], [0.0, 0.0, 1.0, 1.0]),
            ("softplus", [0.063464, 0.346574, 1.524294, 30.0], [0.119203, 0.5, 0.952574, 1.0]),
            ("sigmoid", [0.268941, 0.5, 0.817574, 1.0], [0.196612, 0.25, 0.149146, 0.0]),
            ("exp", [0.367879, 1.0, 4.481689, 1.0686475e13], [0.367879, 1, 4.481689, 3269017.37]),
        ],
    )
    def test_golden_heads(
        self, function: Callable[..., Tensor], head: str, values: list[float], slopes: list[float]
    ):
        """beta = 2; the derivative of exp stops growing at exp(15)."""
        z = torch.tensor([[-1.0], [0.0], [1.5], [30.0]], requires_grad=True)
        out = function(z, [torch.ones(1, 1)], None, head=head, beta=2.0)
        out.sum().backward()
        torch.testing.assert_close(out[:, 0], torch.tensor(values), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(z.grad[:, 0], torch.tensor(slopes), rtol=1e-5, atol=1e-6)

    def test_exp_that_overflows_has_a_finite_gradient(self, function: Callable[..., Tensor]):
        z = torch.tensor([[1000.0]], requires_grad=True)
        out = function(z, [torch.ones(1, 1)], None, head="exp")
        out.backward()
        assert out.item() == math.inf
        assert z.grad.item() == pytest.approx(math.exp(15))

    def test_linear_layers_are_one_matrix(self, function: Callable[..., Tensor]):
        x, *weights = random_network((6, 9, 5, 4), 30, with_biases=False)
        product = torch.linalg.multi_dot(weights[::-1])
        torch.testing.assert_close(function(x, weights, None, activation="none"), x @ product.T)


@pytest.mark.parametrize("function", [fused_mlp, fused_mlp_reference])
@pytest.mark.parametrize(
    ("weights", "biases", "message"),
    [
        ([], None, "weights must have at least one layer"),
        ([(4, 3)], None, r"weights\[0\] must take 2 inputs, got the shape \(4, 3\)"),
        ([(4, 2), (1, 5)], None, r"weights\[1\] must take 4 inputs, got the shape \(1, 5\)"),
        ([(4, 2)], [], r"biases must be one per layer \(1\), got 0"),
        ([(4, 2)], [(3,)], r"biases\[0\] must have the shape \(4,\), got \(3,\)"),
    ],
)
def test_wrong_sizes_are_named(
    function: Callable[..., Tensor], weights: list, biases: list | None, message: str
):
    biases = None if biases is None else [torch.ones(s) for s in biases]
    with pytest.raises(ValueError, match=message):
        function(torch.ones(3, 2), [torch.ones(s) for s in weights], biases)


def test_half_precision_is_served_by_the_reference():
    x, *weights = (t.bfloat16() for t in random_network((4, 8, 2), 5, with_biases=False))
    assert not native.serves(x, *weights)
    assert fused_mlp(x, weights, None).dtype == torch.bfloat16


@pytest.mark.skipif(native.module is None, reason="the native kernels are not built")
class TestBinding:
    def arguments(self) -> dict[str, Any]:
        return {
            "x": torch.ones(3, 2),
            "weights": [torch.ones(4, 2), torch.ones(5, 4)],
            "biases": [torch.ones(4), torch.ones(5)],
            "activation": "relu",
            "head": "none",
            "beta": 1.0,
            "out": torch.empty(3, 5),
            "hidden": None,
            "num_threads": 1,
        }

    @pytest.mark.parametrize(
        ("name", "wrong", "message"),
        [
            ("weights", [], "weights must not be empty"),
            ("weights", [torch.ones(4, 3), torch.ones(5, 4)], "weights must have size 2 on axis 1"),
            ("weights", [torch.ones(4, 2), torch.ones(5, 3)], "weights must have size 4 on axis 1"),
            ("biases", [torch.ones(4)], "biases must be empty or as many as weights"),
            ("biases", [torch.ones(4), torch.ones(4)], "biases must have size 5 on axis 0, got 4"),
            ("activation", "tanh", "unknown activation tanh"),
            ("out", torch.empty(2, 5), "out must have size 3 on axis 0, got 2"),
            ("out", torch.empty(3, 4), "out must have size 5 on axis 1, got 4"),
            ("hidden", torch.empty(12), "hidden must have size 1024 on axis 0, got 12"),
        ],
    )
    def test_wrong_sizes_are_value_errors(self, name: str, wrong: Any, message: str):
        native.module.fused_mlp_forward(**self.arguments())
        with pytest.raises(ValueError, match=message):
            native.module.fused_mlp_forward(**{**self.arguments(), name: wrong})

    @pytest.mark.parametrize(
        ("name", "wrong"),
        [
            ("x", torch.ones(3, 2, dtype=torch.float64)),
            ("weights", [torch.ones(2, 4).T, torch.ones(5, 4)]),
            ("out", torch.empty(3, 5, dtype=torch.float64)),
        ],
        ids=str,
    )
    def test_nothing_is_converted(self, name: str, wrong: Any):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            native.module.fused_mlp_forward(**{**self.arguments(), name: wrong})

    @pytest.mark.parametrize(
        ("name", "wrong", "message"),
        [
            ("hidden", torch.empty(12), "hidden must have size 1024 on axis 0, got 12"),
            ("grad_out", torch.ones(3, 4), "grad_out must have size 5 on axis 1, got 4"),
            ("grad_x", torch.empty(2, 2), "grad_x must have size 3 on axis 0, got 2"),
            ("grad_weights", [torch.empty(4, 2)], "grad_weights must be empty or as many"),
            ("grad_weights", [torch.empty(4, 2)] * 2, "grad_weights must have size 5 on axis 0"),
            ("grad_biases", [torch.empty(4)] * 2, "grad_biases must have size 5 on axis 0"),
        ],
    )
    def test_backward_checks_its_own_arguments(self, name: str, wrong: Any, message: str):
        own = {"grad_out": torch.ones(3, 5), "grad_x": None, "grad_weights": [], "grad_biases": []}
        arguments = {**self.arguments(), **own}
        native.module.fused_mlp_backward(**arguments)
        with pytest.raises(ValueError, match=message):
            native.module.fused_mlp_backward(**{**arguments, name: wrong})
