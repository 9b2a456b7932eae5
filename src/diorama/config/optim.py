# SPDX-License-Identifier: Apache-2.0
"""Optimiser and learning-rate settings, shared or per parameter group."""

from dataclasses import dataclass, replace
from typing import Literal

from diorama.config.base import Config


@dataclass(frozen=True)
class OptimConfig(Config):
    """One optimiser recipe; a method with several recipes overrides `group`."""

    optimizer: Literal["adam", "adamw", "radam"] = "adam"
    """Update rule."""
    lr: float = 5e-4
    """Learning rate at the start (after warm-up)."""
    lr_final: float = 5e-5
    """Learning rate at the end of a log-linear or cosine schedule, and after decay_steps of an
    exponential one."""
    schedule: Literal["constant", "log-linear", "exponential", "multi-step", "cosine"] = (
        "log-linear"
    )
    """Shape of the decay: log-linear and cosine stop at lr_final, exponential keeps falling."""
    decay_steps: int | None = None
    """Steps that the decay takes; unset means until the end of training."""
    milestones: tuple[float, ...] = (0.5, 0.75, 0.9)
    """With multi-step: fractions of the decay at which the rate is multiplied by gamma."""
    gamma: float = 0.33
    """With multi-step: the factor at each milestone."""
    warmup_steps: int = 0
    """Steps over which the rate rises to the schedule's value."""
    warmup_factor: float = 0.01
    """Factor on the rate at step 0 of the warm-up (the delay multiplier of a log-linear one)."""
    warmup: Literal["linear", "sine"] = "linear"
    """Shape of the warm-up; sine is the delay of the mip-NeRF family."""
    beta1: float = 0.9
    """Decay of the first moment."""
    beta2: float = 0.999
    """Decay of the second moment."""
    eps: float = 1e-8
    """Added to the root of the second moment."""
    weight_decay: float = 0.0
    """Weight decay (decoupled with adamw, L2 otherwise)."""
    clip_norm: float | None = None
    """Gradients are scaled down to this norm; unset never clips."""
    accumulate: int = 1
    """Batches whose gradients are averaged before each optimiser step."""

    @property
    def by_rows(self) -> bool:
        """Whether a step updates only the rows of a parameter that the model names."""
        return False

    def group(self, name: str) -> "OptimConfig":
        """The recipe of the parameter group `name`; one for all unless a method overrides it."""
        del name
        return self


@dataclass(frozen=True)
class FieldOptimConfig(OptimConfig):
    """Recipe of hash tables and networks, and the slower one of pose corrections."""

    pose_lr: float = 1e-3
    """Learning rate of pose corrections at the start; it falls to a hundredth."""
    table_decay: float = 0.0
    """Weight decay of hash tables. Adam brings entries that pixels say little of to zero at its
    full rate: 4e-8 makes short runs less grainy, and wears fine detail of long ones away."""

    def group(self, name: str) -> OptimConfig:
        """Tables have a weight decay of their own: they and the networks need different ones."""
        if name == "tables":
            return replace(self, weight_decay=self.table_decay)
        if name == "poses":
            final = self.pose_lr / 100
            return replace(
                self, lr=self.pose_lr, lr_final=final, schedule="log-linear", weight_decay=0.0
            )
        return self
