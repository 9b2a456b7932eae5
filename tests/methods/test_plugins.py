# SPDX-License-Identifier: Apache-2.0
"""A real installed plug-in trains like a built-in method; a broken one harms nobody else."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from diorama.cli.main import main
from diorama.errors import UserError
from diorama.methods.registry import list_methods, method_config
from diorama.scenes import make_scene

ROOT = Path(__file__).parents[2]
BROKEN = {
    "gone": "import a_package_that_nobody_has",
    "crashes": "raise RuntimeError('no licence found')",
    "garbled": "def make(:",
    "renamed": "make_it = None",
    "wrong": "def make():\n    return {'lr': 1e-3}",
}
"""What the modules of the broken plug-ins say; their entry points all name `make`."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages that holds examples/plugin, put there by pip."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--target", str(target), str(ROOT / "examples/plugin")]
    subprocess.run(command, check=True, timeout=120)
    return target


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "balls"
    return make_scene("spheres", folder, 24, num_train=4, num_val=1, num_test=1, supersampling=1)


def add_plug_in(folder: Path, name: str, source: str) -> None:
    """The files that installing a package with one module and one entry point leaves behind."""
    (folder / f"broken_{name}.py").write_text(source + "\n")
    record = folder / f"diorama_{name}-1.0.dist-info"
    record.mkdir(parents=True)
    metadata = f"Metadata-Version: 2.1\nName: diorama-{name}\nVersion: 1.0\n"
    (record / "METADATA").write_text(metadata)
    (record / "entry_points.txt").write_text(f"[diorama.methods]\n{name} = broken_{name}:make\n")


def diorama(*arguments: str, site: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(site), str(ROOT / "src")))
    return subprocess.run(
        [sys.executable, "-m", "diorama", *arguments],
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_installed_plug_in_is_listed(site: Path):
    listed = diorama("methods", site=site)
    assert listed.returncode == 0, listed.stderr
    lines = [" ".join(line.split()) for line in listed.stdout.splitlines()]
    assert "panorama plug-in of diorama-panorama" in lines
    assert any(line.startswith("nerf-small NeRF") for line in lines)


def test_installed_plug_in_goes_through_every_verb(
    site: Path,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    options = ["--max-steps", "40", "--model.height", "8", "--log.no-tensorboard", "--name", "a"]
    where = ["--data", str(data), "--output-dir", str(tmp_path)]
    trained = diorama("train", "panorama", *where, *options, site=site)
    assert trained.returncode == 0, trained.stderr
    run = tmp_path / "balls/panorama/a"
    assert trained.stdout.splitlines()[-1] == str(run)
    assert json.loads((run / "config.json").read_text())["config"]["model"] == {"height": 8}
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert lines[-1]["step"] == 40

    monkeypatch.syspath_prepend(str(site))
    main(["resume", str(run), "--max-steps", "45", "--quiet"])
    main(["eval", str(run), "--quiet"])
    metrics = json.loads((run / "metrics.json").read_text())
    assert (metrics["method"], metrics["step"]) == ("panorama", 45)
    assert metrics["means"]["psnr"] > 10
    main(["render", str(run), "--path", "test", "--no-video", "--quiet"])
    assert len(list((run / "renders/test/rgb").glob("*.png"))) == 1
    assert capsys.readouterr().out.splitlines()[-1].endswith("renders/test")


def test_broken_plug_ins_are_reported_by_name(site: Path, tmp_path: Path):
    for name, source in BROKEN.items():
        add_plug_in(tmp_path, name, source)
    both = Path(os.pathsep.join((str(tmp_path), str(site))))
    listed = diorama("methods", site=both)
    assert (listed.returncode, listed.stderr) == (0, "")
    lines = {line.split()[0]: line for line in listed.stdout.splitlines()}
    for name in BROKEN:
        assert "broken: " in lines[name]
        assert f"'{name}' of diorama-{name}" in lines[name]
    assert "No module named 'a_package_that_nobody_has'" in lines["gone"]
    assert "RuntimeError: no licence found" in lines["crashes"]
    assert "gives a dict where a TrainerConfig is expected" in lines["wrong"]
    assert lines["panorama"].endswith("plug-in of diorama-panorama")
    assert lines["nerf"].endswith("(200,000 steps)")


@pytest.mark.parametrize("name", BROKEN)
def test_only_the_broken_method_refuses_to_train(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    add_plug_in(tmp_path, name, BROKEN[name])
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError, match=f"'{name}' of diorama-{name} .*; upgrade or uninstall it"):
        method_config(name)
    assert name in [entry.name for entry in list_methods()]
    assert method_config("nerf").method == "nerf"


def test_broken_plug_in_costs_one_line_and_exit_code_two(tmp_path: Path):
    add_plug_in(tmp_path, "gone", BROKEN["gone"])
    refused = diorama("train", "gone", "--data", "anything", site=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.startswith("diorama: the plug-in method 'gone' of diorama-gone cannot")
    assert len(refused.stderr.splitlines()) == 1
    assert diorama("train", "nerf-small", "--help", site=tmp_path).returncode == 0


def test_a_plug_in_cannot_replace_a_built_in_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    add_plug_in(tmp_path, "nerf", BROKEN["wrong"])
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [entry.source for entry in list_methods() if entry.name == "nerf"] == ["built in"]
    assert method_config("nerf").max_steps == 200_000
