# SPDX-License-Identifier: Apache-2.0
"""Learning rates as pure functions of the step, so that a resumed run needs no scheduler state."""

import math

from diorama.config import OptimConfig
from diorama.errors import UserError


def learning_rate(config: OptimConfig, step: int, max_steps: int, squeeze: float = 1.0) -> float:
    """The rate of the update made at `step` (from 0) of a run that ends at `max_steps`.

    `squeeze` = planned steps / configured steps shortens the absolute lengths `decay_steps` and
    `warmup_steps` when a time budget shortened the run; `max_steps` is the planned number.
    With t = step / decay_steps (unset: step / max_steps):

    * log-linear: lr^(1-t) lr_final^t, t clamped to 1 (JaxNeRF, mip-NeRF)
    * exponential: lr (lr_final / lr)^t, not clamped (NeRF)
    * cosine: lr_final + (lr - lr_final) (1 + cos(pi t)) / 2, t clamped to 1
    * multi-step: lr gamma^(number of milestones <= t)

    The warm-up multiplies this by f + (1 - f) w(step / warmup_steps), w(x) = x (linear) or
    sin(pi x / 2) (sine, the delay of JaxNeRF), f = `warmup_factor`.
    """
    span = max_steps if config.decay_steps is None else config.decay_steps * squeeze
    t = step / max(span, 1e-12)
    return _decayed(config, t) * _warmup(config, step, squeeze)


def _decayed(config: OptimConfig, t: float) -> float:
    if config.schedule == "constant":
        return config.lr
    if config.schedule == "multi-step":
        # The slack keeps 0.9 * 30000 from missing step 27000 by rounding.
        return config.lr * config.gamma ** sum(t >= m - 1e-9 for m in config.milestones)
    if config.schedule == "cosine":
        swing = 0.5 * (1 + math.cos(math.pi * min(t, 1.0)))
        return config.lr_final + (config.lr - config.lr_final) * swing
    if config.lr <= 0 or config.lr_final <= 0:
        raise UserError(
            f"--optim.lr and --optim.lr-final must be above 0 for a {config.schedule} schedule, "
            f"got {config.lr} and {config.lr_final}; use cosine to end at 0."
        )
    if config.schedule == "log-linear":
        t = min(t, 1.0)
    return config.lr * (config.lr_final / config.lr) ** t


def _warmup(config: OptimConfig, step: int, squeeze: float) -> float:
    length = config.warmup_steps * squeeze
    if step >= length:
        return 1.0
    x = step / length
    rise = math.sin(0.5 * math.pi * x) if config.warmup == "sine" else x
    return config.warmup_factor + (1 - config.warmup_factor) * rise
