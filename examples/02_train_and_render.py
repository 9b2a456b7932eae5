# SPDX-License-Identifier: Apache-2.0
"""Train a tiny NeRF for a few seconds, open the run again, render a view it never saw.

    python examples/02_train_and_render.py [FOLDER]

writes a run folder and view.png and prints

    200 steps, 2 held-out images, 20.8 dB
    view.png
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import diorama
from diorama.export.png import write_png
from diorama.scenes import make_scene

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "outputs/examples")
data = make_scene("spheres", folder / "data/spheres", size=32, num_train=12, num_test=2)

# Configs are frozen dataclasses. These numbers suit 32 pixels and a short wait; for photographs
# keep the preset's: diorama.train("nerf-small", data="PHOTOS").
config = diorama.method_config("nerf-small")
config = replace(
    config, max_steps=200, output_dir=folder, quiet=True,
    model=replace(config.model, depth=2, width=32, position_octaves=4, density="relu",
                  sample_budget=8192, grid_resolution=32, grid_warmup=40, march_steps=64),
    optim=replace(config.optim, lr=1e-2, warmup_steps=10),
)  # fmt: skip
run = diorama.train(config, data=data)
metrics = json.loads((run.path / "metrics.json").read_text())
count, psnr = len(metrics["images"]), metrics["means"]["psnr"]
print(f"{run.step} steps, {count} held-out images, {psnr:.1f} dB")

run = diorama.load(run.path)  # the same, from disk; the data set need not be there
write_png(folder / "view.png", run.render(run.scene.cameras[-1].resized(96, 96)).rgb)
print("view.png")
