# SPDX-License-Identifier: Apache-2.0
"""Options that no hash-grid radiance field can be built with, refused by the flag's name."""

from diorama.config import ModelConfig
from diorama.config.limits import check_limits
from diorama.errors import UserError

LIMITS = {
    "levels": (1, 32),
    "log2_table": (4, 26),
    "base_resolution": (2, 1 << 16),
    "max_resolution": (2, 1 << 20),
    "width": (1, 256),
    "color_layers": (1, 7),
    "sh_bands": (1, 5),
    "appearance_size": (0, 256),
}
FEATURES = (1, 2, 4, 8)


def check_radiance_field(config: ModelConfig) -> None:
    """Raise a `UserError` for the first of the field's options that cannot be.

    The config has the fields of `LIMITS` and `features`.
    """
    check_limits(config, LIMITS)
    features, lowest, highest = (
        getattr(config, name) for name in ("features", "base_resolution", "max_resolution")
    )
    if features not in FEATURES:
        raise UserError(f"--model.features must be 1, 2, 4 or 8, got {features}.")
    if highest < lowest:
        raise UserError(
            f"--model.max-resolution {highest} must not be below --model.base-resolution {lowest}."
        )
