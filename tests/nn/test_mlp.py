# SPDX-License-Identifier: Apache-2.0
"""The perceptron module: its parameters, their initialisation, and second derivatives."""

import pytest
import torch
from torch import nn

from diorama.nn.mlp import FusedMLP


def test_shapes_of_the_parameters():
    mlp = FusedMLP(32, 3, width=64, hidden_layers=2, bias=True)
    assert [tuple(w.shape) for w in mlp.weights] == [(64, 32), (64, 64), (3, 64)]
    assert [tuple(b.shape) for b in mlp.biases] == [(64,), (64,), (3,)]
    assert not FusedMLP(2, 2).biases
    assert mlp(torch.randn(7, 32)).shape == (7, 3)


def test_same_as_torchs_own_layers():
    mlp = FusedMLP(5, 4, width=16, hidden_layers=1, head="sigmoid", bias=True)
    torch.nn.init.uniform_(mlp.biases[0])
    layers = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 4), nn.Sigmoid())
    for layer, weight, bias in zip(layers[::2], mlp.weights, mlp.biases, strict=True):
        layer.weight, layer.bias = weight, bias
    x = torch.randn(100, 5)
    torch.testing.assert_close(mlp(x), layers(x))
    torch.testing.assert_close(mlp(x, create_graph=True), layers(x))


def test_no_hidden_layer_is_a_linear_map():
    mlp = FusedMLP(6, 2, hidden_layers=0)
    x = torch.randn(9, 6)
    torch.testing.assert_close(mlp(x), x @ mlp.weights[0].T)


@pytest.mark.parametrize(("activation", "fan"), [("relu", 200), ("softplus", 450)])
def test_initial_weights_are_uniform_with_the_papers_bounds(activation, fan: int):
    mlp = FusedMLP(200, 250, hidden_layers=0, activation=activation, bias=True)
    bound = (6 / fan) ** 0.5
    weight = mlp.weights[0].detach()
    assert weight.abs().max().item() == pytest.approx(bound, rel=1e-3)
    assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.01)
    assert (mlp.biases[0] == 0).all()


def test_generator_decides_the_weights():
    mlp = FusedMLP(3, 2)
    drawn = []
    for seed in (1, 1, 2):
        mlp.initialize(torch.Generator().manual_seed(seed))
        drawn.append(mlp.weights[0].detach().clone())
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_create_graph_is_twice_differentiable():
    mlp = FusedMLP(3, 2, width=4, activation="softplus", bias=True, beta=5.0).double()
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: mlp(x, create_graph=True), x)


def test_training_lowers_the_loss():
    mlp = FusedMLP(2, 1, width=16, hidden_layers=2, bias=True)
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(256, 2, generator=generator)
    target = (6 * x[:, :1]).sin() * x[:, 1:]
    optimizer = torch.optim.Adam(mlp.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        loss = (mlp(x) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]


def test_sizes_below_one_are_refused():
    with pytest.raises(ValueError, match=r"layer sizes must be at least 1, got \[3, 0, 2\]"):
        FusedMLP(3, 2, width=0)
