# SPDX-License-Identifier: Apache-2.0
"""`diorama export` and splat files as runs, as a user types them."""

from pathlib import Path

import pytest
import torch

import diorama
from diorama.cli.main import main
from diorama.engine.trainer import Trainer
from diorama.methods.splat.config import SplatConfig
from diorama.methods.splat.model import SplatModel
from diorama.splats import read_splats, write_splats
from tests.cli.test_verbs import refusal
from tests.engine.tiny import tiny_config, tiny_scene
from tests.export.test_splats import made_splats
from tests.splats.test_ply import ply_of_degree_4


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("splats") / "made.ply"
    write_splats(made_splats(300), path)
    return path


def told(capsys) -> list[str]:
    return capsys.readouterr().out.strip().splitlines()


@pytest.mark.parametrize(
    "name", ["x.ply", "x.compressed.ply", "x.splat", "x.spz", "x.glb", "x.gltf", "x.parquet"]
)
def test_a_file_is_converted_to_every_format(file, name, tmp_path, capsys):
    main(["export", str(file), "splats", "-o", str(tmp_path / "new" / name)])
    lines = told(capsys)
    assert lines[0] == "300 of 300 splats in your coordinates"
    assert Path(lines[-1]) == tmp_path / "new" / name
    again = read_splats(tmp_path / "new" / name)
    assert len(again) == 300
    order, expected = again.means[:, 0].sort().values, read_splats(file).means[:, 0].sort().values
    torch.testing.assert_close(order, expected, atol=5e-3, rtol=0)


def test_what_a_format_cannot_hold_is_said(file, tmp_path, capsys):
    main(["export", str(file), "splats", "-o", str(tmp_path / "x.splat")])
    assert any("one colour per splat" in line for line in told(capsys))
    main(["export", str(file), "splats", "-o", str(tmp_path / "x.splat"), "--quiet"])
    assert len(told(capsys)) == 1


def test_choices_and_packing(file, tmp_path, capsys):
    flags = ["--max-splats", "10", "--crop", "-1", "-1", "-1", "9", "9", "9.5", "--compressed"]
    main(["export", *flags, "splats", str(file), "--output", str(tmp_path / "x.ply")])
    written = Path(told(capsys)[-1])
    assert written == tmp_path / "x.compressed.ply"
    assert len(read_splats(written)) == 10
    assert b"packed_position" in written.read_bytes()


def test_versions_of_spz(file, tmp_path):
    for version in ("2", "3", "4"):
        path = tmp_path / f"{version}.spz"
        main(["export", str(file), "splats", "-o", str(path), "--spz-version", version])
        assert len(read_splats(path)) == 300


def test_refusals(file, tmp_path, capsys):
    export = ["export", str(file), "splats"]
    assert "export what?" in refusal(capsys, "export", str(file))
    assert "export what?" in refusal(capsys, "export")
    assert "add -o FILE" in refusal(capsys, *export)
    assert ".obj" in refusal(capsys, *export, "-o", str(tmp_path / "x.obj"))
    assert "--compressed is for .ply" in refusal(
        capsys, *export, "-o", str(tmp_path / "x.spz"), "--compressed"
    )
    (tmp_path / "a file").write_text("")
    assert "a file" in refusal(capsys, *export, "-o", str(tmp_path / "a file" / "x.ply"))
    assert "none.ply" in refusal(capsys, "export", "none.ply", "splats", "-o", "x.spz")


def test_a_method_without_splats_says_so(tmp_path, capsys, monkeypatch):
    run = Trainer(tiny_config(tmp_path, max_steps=1), scene=tiny_scene()).train()
    monkeypatch.setattr("diorama.api.load_run", _with_tiny_default)
    assert "its method has no Gaussian splats" in refusal(capsys, "export", str(run), "splats")


def _with_tiny_default(path: Path, device: str):
    from diorama.engine.load_run import load_run
    from tests.engine.tiny import default_for

    return load_run(path, device, default_for)


def test_help_of_a_kind(capsys):
    with pytest.raises(SystemExit):
        main(["export", "splats", "--help"])
    assert "--min-opacity" in capsys.readouterr().out


def test_a_splat_file_is_rendered(file, tmp_path, capsys):
    flags = ["--path", "orbit", "--frames", "2", "--scale", "0.05", "--no-video", "--up", "z"]
    main(["render", str(file), *flags, "--outputs", "rgb", "depth", "alpha"])
    printed = capsys.readouterr()
    assert "z is taken for up" in printed.err
    folder = Path(printed.out.strip().splitlines()[-1])
    assert folder == file.parent / "made_renders" / "orbit"
    assert len(list((folder / "rgb").glob("*.png"))) == 2
    assert "no such file" in refusal(capsys, "render", str(tmp_path / "gone.spz"))


def test_load_opens_a_file(file):
    run = diorama.load(file)
    assert run.path == file
    assert run.config.method == "splat"
    view = run.render(run.scene.cameras[0].rescaled(0.05))
    assert view.rgb.shape == (30, 40, 3)
    assert float(view.alpha.max()) > 0.1


def test_what_is_left_out_of_a_file_is_said(tmp_path, capsys):
    path = tmp_path / "high.ply"
    path.write_bytes(ply_of_degree_4())
    said = f"{path}: its colours have harmonics beyond degree 3, which are left out."
    small = ["--path", "orbit", "--frames", "1", "--scale", "0.05", "--no-video"]
    main(["render", str(path), *small])
    assert capsys.readouterr().err.splitlines()[:1] == [said]
    main(["export", str(path), "splats", "-o", str(tmp_path / "x.spz")])
    assert capsys.readouterr().err.splitlines() == [said]
    main(["render", str(path), *small, "--quiet"])
    assert capsys.readouterr().err == ""
    assert diorama.load(path).notes == (said,)
    config = SplatConfig(init_file=path)
    assert SplatModel(config, tiny_scene()).notes == (said,)
