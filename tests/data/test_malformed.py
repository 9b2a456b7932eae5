# SPDX-License-Identifier: Apache-2.0
"""Broken data gives one clear sentence or works: no traceback, no hang, no boundless memory."""

import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from diorama.config.data import DataConfig
from diorama.data.image_store import ImageStore
from diorama.data.load import load_scene
from diorama.errors import UserError
from tests.data import tiny_sets as tiny
from tests.data.malformed_cases import CASES

SECONDS = 20
SPARE_BYTES = 1_500_000_000


@pytest.fixture
def bounded():
    """Each case may take so long and so much address space beyond what is mapped already."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)

    def too_long(*_):
        raise TimeoutError(f"still busy after {SECONDS} s")

    previous = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (used + SPARE_BYTES, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


def load_everything(config: DataConfig) -> None:
    """The scene and every pixel of it, as training would read them."""
    scene = load_scene(config)
    assert 0 < scene.bounds.near < scene.bounds.far
    assert scene.splits["train"]
    assert bool(scene.cameras.world_from_camera.isfinite().all())
    assert bool(scene.cameras.intrinsics.isfinite().all())
    store = ImageStore(scene, 0.1)
    for index in range(len(scene.frames)):
        width, height = scene.cameras.size[index].tolist()
        assert store.rgba(index).shape == (height, width, 4)
        store.loss_mask(index)
        store.depth(index)


def test_there_are_at_least_fifty():
    assert len(CASES) >= 50
    assert sum(case.message is None for case in CASES.values()) >= 10


ADJUSTED = [name for name in CASES if name.startswith("colmap")]


@pytest.mark.parametrize(
    ("name", "adjust"), [*((n, False) for n in CASES), *((n, True) for n in ADJUSTED)]
)
def test_one_sentence_or_it_works(tmp_path, bounded, name, adjust):
    root = tmp_path / "data set"
    root.mkdir()
    case = CASES[name]
    path = case.build(root)
    path = path if isinstance(path, Path) else root
    config = DataConfig(path=path, adjust_cameras=adjust, **case.options)
    if case.message is None:
        load_everything(config)
        return
    with pytest.raises(UserError) as caught:
        load_everything(config)
    sentence = str(caught.value)
    assert re.search(case.message, sentence), sentence
    assert "\n" not in sentence
    assert sentence.endswith((".", "?"))
    assert len(sentence) < 600


def test_an_unreadable_folder_is_one_sentence(tmp_path, monkeypatch):
    """The tests may run as root, whom no permission stops, so the system's refusal is simulated."""
    (tmp_path / "sparse").mkdir()

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(UserError, match="permission denied; make it readable"):
        load_scene(DataConfig(path=tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_really_unreadable_folder(tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0)
    with pytest.raises(UserError, match="permission denied"):
        load_scene(DataConfig(path=locked))


def test_an_unreadable_file_is_one_sentence(tmp_path, monkeypatch):
    tiny.write_transforms(tmp_path, tiny.rig(4))

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(UserError, match=r"transforms\.json: permission denied"):
        load_scene(DataConfig(path=tmp_path))


@pytest.mark.parametrize("name", ["json_nan", "colmap_huge_image_count"])
def test_the_command_line_exits_with_2_and_one_line(tmp_path, name):
    root = tmp_path / "data"
    root.mkdir()
    CASES[name].build(root)
    result = subprocess.run(
        [sys.executable, "-m", "diorama", "inspect", str(root)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
    )
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    message = CASES[name].message
    assert message is not None
    assert re.search(message, result.stderr.replace("\n", " "))
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
