# SPDX-License-Identifier: Apache-2.0
"""Training on more pictures than the cache holds takes the cache's memory, not the pictures'."""

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image

from diorama.cameras import flip_yz, look_at

SIDE = 512
IMAGE_MB = SIDE * SIDE * 4 / 1e6
MARGIN_MB = 40.0


def write_ring(folder: Path, num_images: int) -> None:
    """Copies of one picture, seen from a ring of cameras."""
    (folder / "images").mkdir(parents=True)
    picture = folder / "images" / "000.jpg"
    Image.linear_gradient("L").resize((SIDE, SIDE)).convert("RGB").save(picture)
    frames = []
    for i in range(num_images):
        name = f"images/{i:03d}.jpg"
        if i > 0:
            shutil.copyfile(picture, folder / name)
        angle = math.tau * i / num_images
        eye = (3 * math.cos(angle), 3 * math.sin(angle), 1.0)
        pose = flip_yz(look_at(eye, (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))).tolist()
        frames.append({"file_path": name, "transform_matrix": [*pose, [0, 0, 0, 1]]})
    (folder / "transforms.json").write_text(json.dumps({"fl_x": SIDE, "frames": frames}))


def peak_mb(data: Path, outputs: Path, cache_gb: float) -> float:
    """Peak memory of a short training in a process of its own."""
    flags = [
        "--max-steps",
        "100",
        "--model.depth",
        "2",
        "--model.width",
        "16",
        "--model.grid-resolution",
        "16",
        "--quiet",
        "--model.sample-budget",
        "1024",
        "--model.march-steps",
        "32",
        "--model.march-warmup-steps",
        "16",
        "--data.rays",
        "64",
        "--data.split",
        "all",
        "--log.no-tensorboard",
        "--log.eval-every",
        "0",
        "--threads",
        "1",
    ]
    where = ["--data", str(data), "--output-dir", str(outputs)]
    command = [sys.executable, "-m", "diorama", "train", "nerf-small", *where, *flags]
    done = subprocess.run(
        [*command, "--data.cache-gb", str(cache_gb), "--data.test-skip", "1000"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    run = Path(done.stdout.strip().splitlines()[-1])
    return json.loads((run / "metrics.json").read_text())["peak_memory_mb"]


def test_memory_is_bounded_by_the_cache(tmp_path):
    num_images = 192
    cache_gb = num_images * IMAGE_MB / 4 / 1e3
    write_ring(tmp_path / "few", 2)
    write_ring(tmp_path / "many", num_images)
    base = peak_mb(tmp_path / "few", tmp_path / "a", cache_gb)
    streamed = peak_mb(tmp_path / "many", tmp_path / "b", cache_gb)
    cached = peak_mb(tmp_path / "many", tmp_path / "c", 10.0)
    assert streamed - base < 1e3 * cache_gb + MARGIN_MB
    # The test means something only if holding everything would have taken more.
    assert cached - base > 1e3 * cache_gb + 2 * MARGIN_MB
