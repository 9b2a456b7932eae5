# SPDX-License-Identifier: Apache-2.0
"""A small real method for engine tests: a network that paints a picture from pixel coordinates.

`python -m tests.engine.tiny OUTPUT_DIR STEPS [KILL_AT]` trains it in a process of its own.
"""

import dataclasses
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from diorama.cameras import Cameras, Similarity
from diorama.config import DataConfig, LogConfig, ModelConfig, OptimConfig, TrainerConfig
from diorama.data.image_store import has_loss_mask, load_loss_mask
from diorama.data.scene import Frame, Scene, SceneBounds
from diorama.engine.trainer import Trainer
from diorama.model import Model, RenderOutput, TrainingCallback

WIDTH, HEIGHT = 16, 12


@dataclass(frozen=True)
class TinyDataConfig(DataConfig):
    target: ClassVar[str] = "tests.engine.tiny:TinyData"
    rays: int = 32


@dataclass(frozen=True)
class TinyModelConfig(ModelConfig):
    target: ClassVar[str] = "tests.engine.tiny:TinyModel"
    width: int = 16
    """Width of the hidden layer."""
    noise: float = 0.01
    """Noise in the loss, from torch's and numpy's generators."""
    kill_at: int = -1
    """Step at which the process kills itself."""
    nan_at: int = -1
    """Step at which the loss term 'tint' becomes NaN."""
    dead_starts: int = 0
    """How many starts are declared dead."""
    sleep: float = 0.0
    """Seconds that a step takes at least."""


def tiny_scene(num: int = 6) -> Scene:
    """Cameras that differ in their pose; the last third is held out."""
    poses = torch.eye(4)[:3].repeat(num, 1, 1)
    poses[:, 0, 3] = torch.arange(num) / num
    train = num - num // 3
    return Scene(
        name="tiny picture",
        format="test",
        root=Path("tiny"),
        frames=tuple(Frame(f"{i:03d}.png", Path(f"{i:03d}.png")) for i in range(num)),
        cameras=Cameras.pinhole(poses, 10.0, 10.0, WIDTH / 2, HEIGHT / 2, WIDTH, HEIGHT),
        splits={"train": tuple(range(train)), "val": (), "test": tuple(range(train, num))},
        scene_from_user=Similarity.identity(),
        bounds=SceneBounds((0.0,) * 3, 1.0, (-1.0,) * 3, (1.0,) * 3, 0.1, 4.0),
    )


def picture(xy: Tensor, shift: Tensor | float) -> Tensor:
    """The true colour at coordinates in 0..1, seen from a shifted camera."""
    x, y = xy[..., 0] + shift, xy[..., 1]
    return torch.stack([x / 2, y, 0.5 + 0.5 * torch.sin(6 * x * y)], dim=-1).clamp(0, 1)


@dataclass(frozen=True)
class TinyBatch:
    xyt: Tensor
    rgb: Tensor


class TinyData:
    """Random pixels; batch `s` of `num_rays` is the second half of a batch of 2 n of step s / 2."""

    def __init__(self, config: TinyDataConfig, scene: Scene, seed: int, device: torch.device):
        self.scene, self.seed = scene, seed
        self.num_rays = self.first_num_rays = config.rays
        self.drawn = torch.zeros(3)

    def next_train(self, step: int) -> TinyBatch:
        generator = torch.Generator().manual_seed(self.seed)
        pool = torch.rand((4096, 3), generator=generator)
        first = step * self.num_rays
        xyt = pool[torch.arange(first, first + self.num_rays) % len(pool)]
        self.drawn += 1
        return TinyBatch(xyt, picture(xyt[:, :2], xyt[:, 2]))

    def restart(self) -> None:
        self.num_rays = self.first_num_rays

    def eval_indices(self, split: str) -> tuple[int, ...]:
        return self.scene.splits[split]

    def eval_image(self, split: str, k: int) -> tuple[Cameras, Tensor]:
        camera = self.scene.cameras[self.eval_indices(split)[k]]
        rgb = picture(_grid(camera), camera.world_from_camera[0, 0, 3])
        rgba = torch.cat([rgb, torch.ones_like(rgb[..., :1])], dim=-1)
        return camera, (255 * rgba).round().to(torch.uint8)

    def eval_weights(self, split: str, k: int) -> Tensor | None:
        index = self.eval_indices(split)[k]
        has_mask = has_loss_mask(self.scene, index)
        return load_loss_mask(self.scene, index) if has_mask else None

    def state_dict(self) -> dict[str, Any]:
        return {"num_rays": self.num_rays, "drawn": self.drawn}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.num_rays, self.drawn = state["num_rays"], state["drawn"]


class TinyModel(Model):
    config: TinyModelConfig

    def __init__(self, config: TinyModelConfig, scene: Scene):
        super().__init__(config, scene)
        self.trunk = nn.Sequential(nn.Linear(3, config.width), nn.ReLU())
        self.head = nn.Linear(config.width, 3)
        self.register_buffer("num_steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("num_restarts", torch.zeros((), dtype=torch.int64))
        self.finished_at: list[int] = []
        self.seen_max_steps: list[int] = []

    def forward(self, batch: TinyBatch, step: int, generator: torch.Generator) -> dict[str, Tensor]:
        if step == self.config.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.config.sleep:
            time.sleep(self.config.sleep)
        self.num_steps += 1
        self.seen_max_steps.append(self.max_steps)
        noise = 0.0
        if self.config.noise:
            # Not from Python's own generator: beartype draws from that one while it checks.
            draws = (
                torch.rand((), generator=generator).item(),
                torch.rand(()).item(),
                np.random.standard_normal(),  # noqa: NPY002
            )
            noise = self.config.noise * sum(draws)
        return {"rgb": self.head(self.trunk(batch.xyt)) + noise}

    def get_loss_dict(self, outputs: dict[str, Tensor], batch: TinyBatch) -> dict[str, Tensor]:
        tint = 1e-4 * outputs["rgb"].square().mean()
        if self.num_steps - 1 == self.config.nan_at:
            tint = tint * float("nan")
        return {"rgb": (outputs["rgb"] - batch.rgb).square().mean(), "tint": tint}

    def get_metrics_dict(self, outputs: dict[str, Tensor], batch: TinyBatch) -> dict[str, Tensor]:
        return {"psnr": -10 * torch.log10((outputs["rgb"] - batch.rgb).square().mean())}

    def get_param_groups(self) -> dict[str, list[nn.Parameter]]:
        return {"trunk": list(self.trunk.parameters()), "head": list(self.head.parameters())}

    def get_callbacks(self) -> list[TrainingCallback]:
        return [TrainingCallback("after-training", self.finished_at.append)]

    def render(self, camera: Cameras) -> RenderOutput:
        torch.rand(7)  # a careless method that draws from the global generator while rendering
        xy = _grid(camera)
        shift = camera.world_from_camera[0, 0, 3].expand(xy.shape[:-1])
        rgb = self.head(self.trunk(torch.cat([xy, shift[..., None]], dim=-1)))
        return RenderOutput(rgb, torch.ones(xy.shape[:2]), torch.ones(xy.shape[:2]))

    def get_image_metrics(self, output: RenderOutput, target: Tensor) -> dict[str, float]:
        return {"bias": float((output.rgb - target).mean())}

    def next_num_rays(self, num_rays: int) -> int:
        return min(num_rays + 1, 40) if self.config.noise else num_rays

    def dead_start(self, step: int) -> str | None:
        is_dead = step == 12 and self.num_restarts < self.config.dead_starts
        return "nothing is painted" if is_dead else None

    def reinitialize(self, generator: torch.Generator) -> None:
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.3, 0.3, generator=generator)
        self.num_restarts += 1


def _grid(camera: Cameras) -> Tensor:
    height, width = camera.height(), camera.width()
    y, x = torch.meshgrid(
        (torch.arange(height) + 0.5) / height, (torch.arange(width) + 0.5) / width, indexing="ij"
    )
    return torch.stack([x, y], dim=-1)


def tiny_config(output_dir: Path = Path("outputs"), **changes: Any) -> TrainerConfig:
    """A config that trains in a fraction of a second; keywords such as max_steps, model, log."""
    config = TrainerConfig(
        method="tiny",
        output_dir=output_dir,
        name="run",
        max_steps=60,
        threads=1,
        device="cpu",
        quiet=True,
        data=TinyDataConfig(path=Path("tiny")),
        model=TinyModelConfig(),
        optim=OptimConfig(lr=1e-2, lr_final=1e-3),
        log=LogConfig(every=10, eval_every=25, save_every=10, tensorboard=False),
    )
    parts = {"data", "model", "optim", "log"} & changes.keys()
    nested = {p: dataclasses.replace(getattr(config, p), **changes.pop(p)) for p in parts}
    return dataclasses.replace(config, **nested, **changes)


def default_for(method: str) -> TrainerConfig:
    """Stands for the registry."""
    assert method == "tiny", method
    return tiny_config()


if __name__ == "__main__":
    kill_at, sleep = int(sys.argv[3]), float(sys.argv[4])
    model = {"kill_at": kill_at, "sleep": sleep}
    own = tiny_config(Path(sys.argv[1]), max_steps=int(sys.argv[2]), model=model, quiet=False)
    Trainer(own, scene=tiny_scene()).train()
