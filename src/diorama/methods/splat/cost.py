# SPDX-License-Identifier: Apache-2.0
"""How long a step takes beside others: images grow, and so does the number of Gaussians."""

from diorama.methods.splat.config import SplatConfig
from diorama.methods.splat.schedule import budget_at, image_factor

PIXEL_POWER = 0.3
"""A step's time grows with this power of the pixels: measured 0.25 (chair, fox) to 0.35 (cup), for
in small images every Gaussian still covers a pixel or two."""
FREE_GAUSSIANS = 25_000
"""So many take as long as what does not depend on their number: from 30,000 to 100,000 of them, a
step grew to 1.9 to 2.3 times its time (lego, chair). A budget is a limit, so the larger counts."""
TYPICAL_GROWTH = 5.0
"""Without a budget curve, the number is taken to grow by this factor until growing stops."""


def step_cost(config: SplatConfig, first_count: int, step: int, squeeze: float) -> float:
    """Relative time of a step of a run that is `squeeze` times as long as configured."""
    count = expected_count(config, first_count, step / squeeze)
    pixels = 1 / image_factor(config, step, squeeze) ** 2
    return pixels**PIXEL_POWER * (1 + count / FREE_GAUSSIANS)


def expected_count(config: SplatConfig, first_count: int, at: float) -> int:
    """Gaussians at a step of the configured schedule."""
    part = getattr(config, config.density)
    start = getattr(part, "start", getattr(part, "warmup", 0))
    share = (at - start) / max(1.0, (part.stop or 30_000) - start)
    last = config.max_gaussians
    if not getattr(part, "budget_curve", False):
        last = min(last, int(TYPICAL_GROWTH * first_count))
    return budget_at(share, min(first_count, last), last)
