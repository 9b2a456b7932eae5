# SPDX-License-Identifier: Apache-2.0
"""Copy a run elsewhere, go on from a checkpoint in its middle, and end with the same bits.

    python examples/04_config_and_resume.py [FOLDER]

writes two run folders and prints

    config.json: nerf-small, schema 1, lr 0.002
    checkpoints: step-000000010 step-000000020
    resumed at step 10, ended at step 20: all weights equal bit for bit
"""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import diorama
from diorama.engine.progress import Reporter
from diorama.engine.trainer import Trainer
from diorama.scenes import make_scene

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "outputs/examples")
data = make_scene("spheres", folder / "data/spheres", size=32, num_train=12, num_test=2)
config = diorama.method_config("nerf-small")
small = replace(config.model, width=16, sample_budget=2048, grid_resolution=16, grid_every=3,
                grid_warmup=6)  # fmt: skip
log = replace(config.log, save_every=10)
config = replace(config, max_steps=20, output_dir=folder, quiet=True, model=small, log=log)
whole = diorama.train(config, data=data)
saved = json.loads((whole.path / "config.json").read_text())
method, schema, lr = saved["method"], saved["schema_version"], saved["config"]["optim"]["lr"]
print(f"config.json: {method}, schema {schema}, lr {lr}")
print("checkpoints:", *(file.stem for file in sorted((whole.path / "checkpoints").iterdir())))

copy = Path(shutil.copytree(whole.path, folder / f"copy-of-{whole.path.name}"))
Trainer.resume(copy / "checkpoints/step-000000010.safetensors", reporter=Reporter())
again = diorama.load(copy)
same = [again.model.state_dict()[n].equal(t) for n, t in whole.model.state_dict().items()]
print(f"resumed at step 10, ended at step {again.step}:", end=" ")
print("all weights equal bit for bit" if all(same) else "the weights differ")
