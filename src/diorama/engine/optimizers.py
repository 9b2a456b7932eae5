# SPDX-License-Identifier: Apache-2.0
"""One torch optimiser per named parameter group, stepped and saved together."""

from collections.abc import Mapping, MutableMapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from diorama.config import OptimConfig
from diorama.engine.native_adam import NativeAdam, NativeAdamW
from diorama.engine.row_adam import RowAdam
from diorama.engine.schedules import learning_rate
from diorama.errors import UserError
from diorama.model import Model


class Optimizers:
    """The optimisers of all parameter groups of a model, each with its recipe and schedule.

    `factors` multiply the learning rates of the groups they name.
    """

    def __init__(
        self,
        config: OptimConfig,
        groups: Mapping[str, Sequence[nn.Parameter]],
        factors: Mapping[str, float] = MappingProxyType({}),
    ):
        self._factors = dict(factors)
        self._recipes: dict[str, OptimConfig] = {}
        self._optimizers: dict[str, torch.optim.Optimizer] = {}
        for name, parameters in groups.items():
            recipe = _recipe(config, name, list(groups))
            trainable = [p for p in parameters if p.requires_grad]
            if trainable:
                self._recipes[name] = recipe
                self._optimizers[name] = _make(recipe, trainable)
        if not self._optimizers:
            raise ValueError("get_param_groups() must name at least one trainable parameter")
        _refuse_shared(groups)

    def zero_grad(self) -> None:
        """Forget the gradients of the last step."""
        for optimizer in self._optimizers.values():
            optimizer.zero_grad(set_to_none=True)

    def step(self, step: int, max_steps: int, squeeze: float) -> dict[str, float]:
        """Clip, update every group at its rate for `step`, and return those rates."""
        rates = {}
        for name, optimizer in self._optimizers.items():
            recipe = self._recipes[name]
            factor = self._factors.get(name, 1.0)
            rates[name] = factor * learning_rate(recipe, step, max_steps, squeeze)
            for group in optimizer.param_groups:
                group["lr"] = rates[name]
                if recipe.clip_norm is not None:
                    nn.utils.clip_grad_norm_(group["params"], recipe.clip_norm)
            optimizer.step()
        return rates

    def rate_of(self, parameter: nn.Parameter) -> float:
        """The learning rate of a parameter's last step; 0 before the first."""
        optimizer = self._optimizer_of(parameter)
        # One group is all that an optimiser has here.
        return float(optimizer.param_groups[0]["lr"]) if optimizer.state.get(parameter) else 0.0

    def touch_only(self, parameter: nn.Parameter, rows: Bool[Tensor, " N"]) -> None:
        """Leave the other rows out of the next step, where the parameter's recipe goes by rows."""
        optimizer = self._optimizer_of(parameter)
        if isinstance(optimizer, RowAdam):
            optimizer.touch_only(parameter, rows)

    def state_of(self, parameter: nn.Parameter) -> MutableMapping[str, Tensor]:
        """The moments of a parameter, by name; empty before its first step."""
        for optimizer in self._optimizers.values():
            if parameter in optimizer.state:
                return optimizer.state[parameter]
        return {}

    def state_dict(self) -> dict[str, Tensor]:
        """Every moment as `<group>/<index of the parameter>/<moment>`: plain tensors only."""
        return {
            f"{name}/{index}/{key}": torch.as_tensor(value)
            for name, optimizer in self._optimizers.items()
            for index, parameter in enumerate(_parameters(optimizer))
            for key, value in optimizer.state.get(parameter, {}).items()
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over the moments of `state_dict`; a group or shape that differs is an error."""
        fresh: dict[str, dict[int, dict[str, Tensor]]] = {name: {} for name in self._optimizers}
        for path, value in state.items():
            name, index, key = path.rsplit("/", 2)
            if name not in fresh:
                raise UserError(
                    f"the checkpoint has an optimiser group '{name}' that this model lacks (it "
                    f"has {', '.join(fresh)}); resume it with the method and options it was "
                    "trained with."
                )
            fresh[name].setdefault(int(index), {})[key] = value
        for name, optimizer in self._optimizers.items():
            _check_shapes(name, _parameters(optimizer), fresh[name])
            plain = optimizer.state_dict()
            plain["state"] = fresh[name]
            optimizer.load_state_dict(plain)

    def _optimizer_of(self, parameter: nn.Parameter) -> torch.optim.Optimizer:
        for optimizer in self._optimizers.values():
            if any(own is parameter for own in _parameters(optimizer)):
                return optimizer
        raise ValueError("only trainable parameters of the model's groups have an optimiser")


def optimizers_of(model: Model, config: OptimConfig) -> Optimizers:
    """The optimisers of a model's groups, made known to the model."""
    optimizers = Optimizers(config, model.get_param_groups(), model.learning_rate_factors())
    model.attach(optimizers)
    return optimizers


def _recipe(config: OptimConfig, name: str, names: list[str]) -> OptimConfig:
    try:
        return config.group(name)
    except KeyError as error:
        raise ValueError(
            f"{type(config).__name__}.group() knows no recipe for the parameter group '{name}'; "
            f"the model's groups are {', '.join(names)}"
        ) from error


def _make(recipe: OptimConfig, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    options: dict[str, Any] = {
        "lr": recipe.lr,
        "betas": (recipe.beta1, recipe.beta2),
        "eps": recipe.eps,
        "weight_decay": recipe.weight_decay,
    }
    if recipe.by_rows:
        if recipe.optimizer == "radam":
            raise UserError(
                "--optim.optimizer radam cannot update some rows only; take adam or adamw."
            )
        return RowAdam(parameters, **options, is_decoupled=recipe.optimizer == "adamw")
    rule = {
        "adam": NativeAdam, "adamw": NativeAdamW, "radam": torch.optim.RAdam
    }[recipe.optimizer]  # fmt: skip
    # Where the kernel does not serve, torch's fused pass is three times as fast as its loop on a
    # CPU; it has none for RAdam.
    if recipe.optimizer != "radam" and all(p.is_floating_point() for p in parameters):
        options["fused"] = {p.device.type for p in parameters} <= {"cpu", "cuda"}
    return rule(parameters, **options)


def _parameters(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _refuse_shared(groups: Mapping[str, Sequence[nn.Parameter]]) -> None:
    owner: dict[int, str] = {}
    for name, parameters in groups.items():
        for parameter in parameters:
            if owner.setdefault(id(parameter), name) != name:
                raise ValueError(
                    f"a parameter of shape {tuple(parameter.shape)} is in the groups "
                    f"'{owner[id(parameter)]}' and '{name}'; it must be in one"
                )


def _check_shapes(
    name: str, parameters: list[nn.Parameter], state: dict[int, dict[str, Tensor]]
) -> None:
    for index, moments in state.items():
        for key, moment in moments.items():
            shape = parameters[index].shape if index < len(parameters) else None
            fits = shape is not None and moment.shape in (shape, shape[:1], ())
            if not fits:
                raise UserError(
                    f"the checkpoint's optimiser moment {name}/{index}/{key} has shape "
                    f"{tuple(moment.shape)}, which no parameter of this model has; resume it "
                    "with the method and options it was trained with."
                )
