# SPDX-License-Identifier: Apache-2.0
"""Optimisers that go by rows: the model's choice, its end, their state."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from diorama import native
from diorama.config import OptimConfig
from diorama.engine.optimizers import Optimizers
from diorama.errors import UserError


@dataclass(frozen=True)
class ByRows(OptimConfig):
    @property
    def by_rows(self) -> bool:
        return True


def table() -> nn.Parameter:
    return nn.Parameter(torch.arange(12.0).view(4, 3))


def step(optimizers: Optimizers, parameter: nn.Parameter, rows: list[bool] | None) -> Tensor:
    optimizers.zero_grad()
    (parameter**2).sum().backward()
    if rows is not None:
        optimizers.touch_only(parameter, torch.tensor(rows))
    before = parameter.detach().clone()
    optimizers.step(0, 10, 1.0)
    return (parameter.detach() != before).any(dim=1)


@pytest.mark.parametrize("kernels", [True, False])
def test_a_choice_holds_for_one_step(kernels: bool, monkeypatch: pytest.MonkeyPatch):
    if not kernels:
        monkeypatch.setattr(native, "module", None)
    parameter = table()
    optimizers = Optimizers(ByRows(lr=0.1), {"all": [parameter]})
    assert step(optimizers, parameter, [False, True, False, True]).tolist() == [0, 1, 0, 1]
    assert step(optimizers, parameter, None).all()
    assert optimizers.state_of(parameter)["row_steps"].tolist() == [1, 2, 1, 2]


def test_other_recipes_ignore_the_choice():
    parameter = table()
    optimizers = Optimizers(OptimConfig(lr=0.1), {"all": [parameter]})
    assert step(optimizers, parameter, [False] * 3 + [True]).sum() == 4


@pytest.mark.parametrize("rule", ["adam", "adamw"])
def test_restored_state_goes_on_with_the_same_bits(rule: str):
    config = ByRows(optimizer=rule, lr=0.1, weight_decay=0.01)
    parameter = table()
    optimizers = Optimizers(config, {"all": [parameter]})
    rows = [[bool((k + 1) >> bit & 1) for bit in range(4)] for k in range(12)]
    for chosen in rows[:6]:
        step(optimizers, parameter, chosen)
    copy = nn.Parameter(parameter.detach().clone())
    restored = Optimizers(config, {"all": [copy]})
    restored.load_state_dict({k: v.clone() for k, v in optimizers.state_dict().items()})
    for chosen in rows[6:]:
        step(optimizers, parameter, chosen)
        step(restored, copy, chosen)
    assert torch.equal(copy, parameter)


def test_radam_is_refused():
    with pytest.raises(UserError, match="radam cannot update some rows only; take adam or adamw"):
        Optimizers(ByRows(optimizer="radam"), {"all": [table()]})


def test_strangers_are_refused():
    optimizers = Optimizers(ByRows(), {"all": [table()]})
    with pytest.raises(ValueError, match="only trainable parameters of the model's groups"):
        optimizers.touch_only(table(), torch.ones(4, dtype=torch.bool))
