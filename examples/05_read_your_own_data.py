# SPDX-License-Identifier: Apache-2.0
"""Write pictures with known poses as a data set, and read it as training does.

    python examples/05_read_your_own_data.py [FOLDER]

writes own/transforms.json with its images and prints

    transforms: 9 images of 40 x 30 pixels
    7 train, 2 test: photo_0.png photo_8.png
    your point (0, 0, 0.6) is at pixel (20.0, 8.3) of photo_1.png
"""

import json
import sys
from pathlib import Path

import torch

from diorama.cameras import Cameras, flip_yz, orbit
from diorama.config import DataConfig
from diorama.data.load import load_scene
from diorama.export.png import write_png
from diorama.scenes import load_procedural

own = Path(sys.argv[1] if len(sys.argv) > 1 else "outputs/examples") / "own"

# Your part: images and camera-to-world matrices, whose axes are OpenGL's: right, up, back.
cameras = Cameras.from_fov(orbit((0, 0, 0), 4, num=9), 35, width=40, height=30)
frames = []
for i, image in enumerate(load_procedural("spheres").render_rgba(cameras)):
    write_png(own / f"photo_{i}.png", image)
    matrix = [*flip_yz(cameras.world_from_camera[i]).tolist(), [0, 0, 0, 1]]
    frames.append({"file_path": f"photo_{i}.png", "transform_matrix": matrix})
optics = dict(zip(("fl_x", "fl_y", "cx", "cy"), cameras.intrinsics[0].tolist(), strict=True))
(own / "transforms.json").write_text(json.dumps({"w": 40, "h": 30, **optics, "frames": frames}))

# Diorama's part; `diorama inspect FOLDER` tells much more.
scene = load_scene(DataConfig(path=own))
size = f"{scene.cameras.width()} x {scene.cameras.height()}"
print(f"{scene.format}: {len(scene.frames)} images of {size} pixels")
train, test = ([scene.frames[i].name for i in scene.splits[name]] for name in ("train", "test"))
print(f"{len(train)} train, {len(test)} test:", *test)
# The scene is normalised; `scene_from_user` brings your coordinates there.
point = scene.scene_from_user.apply(torch.tensor([[0.0, 0.0, 0.6]]))
x, y = scene.cameras[1].project(point).xy[0].tolist()
print(f"your point (0, 0, 0.6) is at pixel ({x:.1f}, {y:.1f}) of {scene.frames[1].name}")
