# SPDX-License-Identifier: Apache-2.0
"""A model's Gaussian splats in the user's coordinates, and a choice of them."""

from dataclasses import dataclass

import torch

from diorama.data.scene import Scene
from diorama.errors import UserError
from diorama.model import Model, SupportsSplats
from diorama.splats import Splats, transform_splats

Box = tuple[float, float, float, float, float, float]


@dataclass(frozen=True)
class SplatChoice:
    """Which splats are wanted; the default is all of them."""

    min_opacity: float = 0.0
    """Leave out what is more transparent."""
    crop: Box | None = None
    """Keep centres within xmin ymin zmin xmax ymax zmax, in the user's coordinates."""
    max_splats: int | None = None
    """Of what is left keep this many, those with the largest opacity times volume."""

    def __post_init__(self) -> None:
        if not 0 <= self.min_opacity <= 1:
            raise UserError(f"--min-opacity must lie in 0..1, got {self.min_opacity:g}.")
        if self.max_splats is not None and self.max_splats < 1:
            raise UserError(f"--max-splats must be at least 1, got {self.max_splats}.")
        if self.crop is not None and not all(self.crop[k] < self.crop[k + 3] for k in range(3)):
            raise UserError(
                "--crop needs xmin ymin zmin xmax ymax zmax, each minimum below its maximum."
            )


def user_splats(model: Model, scene: Scene, what: str) -> Splats:
    """The splats in the user's coordinates; `what` names the model in the refusal of others."""
    if not isinstance(model, SupportsSplats):
        raise UserError(f"{what}: its method has no Gaussian splats to export; train splat.")
    with torch.no_grad():
        return transform_splats(scene.scene_from_user.inverse(), model.splats())


@torch.no_grad()
def chosen_splats(splats: Splats, choice: SplatChoice) -> Splats:
    """The splats that are wanted, in their order."""
    keep = torch.sigmoid(splats.opacity_logits) >= choice.min_opacity
    if choice.crop is not None:
        lower, upper = splats.means.new_tensor(choice.crop).view(2, 3)
        keep &= ((splats.means >= lower) & (splats.means <= upper)).all(dim=1)
    splats = splats.select(keep)
    if len(splats) == 0:
        raise UserError("no splat is left; widen --crop or lower --min-opacity.")
    if choice.max_splats is None or choice.max_splats >= len(splats):
        return splats
    # Logarithms: volumes of far splats overflow.
    importance = torch.nn.functional.logsigmoid(splats.opacity_logits) + splats.log_scales.sum(1)
    return splats.select(importance.topk(choice.max_splats).indices.sort().values)
