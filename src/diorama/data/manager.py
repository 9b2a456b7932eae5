# SPDX-License-Identifier: Apache-2.0
"""What the data managers share: the split, the seed, and what is held out."""

import hashlib
from typing import Any

import torch

from diorama.config import DataConfig
from diorama.data.scene import Scene
from diorama.errors import UserError


class SceneManager:
    """A data set's splits and a seed; batches depend on the seed and the step alone."""

    num_rays: int = 0

    def __init__(
        self,
        config: DataConfig,
        scene: Scene,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ):
        if not scene.splits["train"]:
            raise UserError(
                f"{scene.root}: no image is left for training;"
                " change --data.split or --data.eval-every."
            )
        if not config.cache_gb > 0:
            raise UserError(f"--data.cache-gb must be above 0, got {config.cache_gb}.")
        self.scene = scene
        self.seed = seed
        self.device = torch.device(device)

    def eval_indices(self, split: str) -> tuple[int, ...]:
        """Frame indices of a split."""
        if split not in self.scene.splits:
            raise ValueError(f"split must be one of {', '.join(self.scene.splits)}, got {split}")
        return self.scene.splits[split]

    def state_dict(self) -> dict[str, Any]:
        """What a batch depends on beside the step."""
        return {"seed": self.seed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on as the manager that wrote this state; the data set must be the same."""
        if int(state["seed"]) != self.seed:
            raise ValueError(f"the state is of seed {state['seed']}, this manager of {self.seed}")


def mixed_seed(*what: int | str) -> int:
    """A well-mixed seed; neighbouring steps and seeds give unrelated streams."""
    text = " ".join(str(part) for part in what)
    digest = hashlib.blake2b(text.encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little")
