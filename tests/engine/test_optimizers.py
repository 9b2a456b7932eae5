# SPDX-License-Identifier: Apache-2.0
"""Parameter groups, their recipes, clipping, and their state as plain tensors."""

import dataclasses
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from diorama.config import FieldOptimConfig, OptimConfig
from diorama.engine.optimizers import Optimizers
from diorama.errors import UserError


@dataclass(frozen=True)
class TwoRecipes(OptimConfig):
    def group(self, name: str) -> OptimConfig:
        recipes = {"fast": OptimConfig(lr=1.0, lr_final=0.1), "slow": OptimConfig(lr=0.01)}
        return recipes[name]


def parameters(*values: float) -> list[nn.Parameter]:
    return [nn.Parameter(torch.tensor([value])) for value in values]


def step(optimizers: Optimizers, groups, at: int = 0) -> dict[str, float]:
    optimizers.zero_grad()
    sum((p**2).sum() for group in groups.values() for p in group).backward()
    return optimizers.step(at, 10, 1.0)


def test_each_group_has_its_recipe():
    groups = {"fast": parameters(2.0), "slow": parameters(3.0)}
    rates = step(Optimizers(TwoRecipes(), groups), groups)
    assert rates == {"fast": 1.0, "slow": 0.01}
    # Adam's first step has the length of the rate.
    torch.testing.assert_close(groups["fast"][0].detach(), torch.tensor([1.0]))
    torch.testing.assert_close(groups["slow"][0].detach(), torch.tensor([2.99]))


@pytest.mark.parametrize("rule", ["adam", "adamw", "radam"])
def test_restored_state_goes_on_with_the_same_bits(rule):
    config = OptimConfig(optimizer=rule, lr=0.1, weight_decay=0.01)
    groups = {"all": parameters(2.0, -1.0)}
    optimizers = Optimizers(config, groups)
    for at in range(3):
        step(optimizers, groups, at)
    state = {name: tensor.clone() for name, tensor in optimizers.state_dict().items()}
    copies = {"all": parameters(*(p.item() for p in groups["all"]))}
    restored = Optimizers(config, copies)
    restored.load_state_dict(state)
    for at in range(3, 9):
        step(optimizers, groups, at)
        step(restored, copies, at)
    assert [p.item() for p in copies["all"]] == [p.item() for p in groups["all"]]


def test_decayed_tables_forget_what_no_pixel_speaks_of():
    """Even a tiny decay is carried out at the full rate where there is no other gradient."""
    asked, unasked = nn.Parameter(torch.zeros(300)), nn.Parameter(torch.full((300,), 0.1))
    config = FieldOptimConfig(lr=1e-2, lr_final=1e-4, eps=1e-15, table_decay=2e-7)
    optimizers = Optimizers(config, {"tables": [asked, unasked]})
    for at in range(1000):
        optimizers.zero_grad()
        (1e-2 * (asked - 0.1).square().mean() + 0.0 * unasked.sum()).backward()
        optimizers.step(at, 1000, 1.0)
    torch.testing.assert_close(asked.detach(), torch.full((300,), 0.1), atol=1e-3, rtol=0.0)
    assert unasked.abs().max() < 1e-3


def test_clipping_bounds_the_gradient():
    groups = {"all": parameters(300.0, -400.0)}
    optimizers = Optimizers(OptimConfig(clip_norm=1.0), groups)
    step(optimizers, groups)
    norm = torch.cat([p.grad for p in groups["all"]]).norm()
    torch.testing.assert_close(norm, torch.tensor(1.0))


def test_a_group_without_a_recipe_is_named():
    with pytest.raises(ValueError, match="knows no recipe for the parameter group 'bones'"):
        Optimizers(TwoRecipes(), {"bones": parameters(1.0)})


def test_a_parameter_in_two_groups_is_refused():
    (shared,) = parameters(1.0)
    with pytest.raises(ValueError, match="in the groups 'fast' and 'slow'"):
        Optimizers(TwoRecipes(), {"fast": [shared], "slow": [shared]})


def test_nothing_to_train_is_refused():
    with pytest.raises(ValueError, match="at least one trainable parameter"):
        Optimizers(OptimConfig(), {"all": []})


def test_state_of_another_model_is_refused():
    groups = {"all": [nn.Parameter(torch.ones(3))]}
    optimizers = Optimizers(OptimConfig(), groups)
    step(optimizers, groups)
    state = optimizers.state_dict()
    other = Optimizers(OptimConfig(), {"all": [nn.Parameter(torch.ones(4))]})
    with pytest.raises(UserError, match=r"all/0/exp_avg.* has shape \(3,\)"):
        other.load_state_dict(state)
    renamed = Optimizers(OptimConfig(), {"some": [nn.Parameter(torch.ones(3))]})
    with pytest.raises(UserError, match="optimiser group 'all' that this model lacks"):
        renamed.load_state_dict(state)


def test_frozen_parameters_are_left_alone():
    frozen = nn.Parameter(torch.ones(1), requires_grad=False)
    groups = {"all": [*parameters(1.0), frozen], "none": [frozen]}
    with pytest.raises(ValueError, match="in the groups"):
        Optimizers(OptimConfig(), groups)
    del groups["none"]
    step(Optimizers(dataclasses.replace(OptimConfig(), lr=0.5), groups), groups)
    assert frozen.item() == 1.0
