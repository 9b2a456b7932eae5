# SPDX-License-Identifier: Apache-2.0
"""Wrong flags and files of the splat methods: one sentence with the flag or file, exit code 2."""

from pathlib import Path

import pytest

import diorama
from diorama.cli.main import main
from diorama.scenes import make_scene
from diorama.splats import write_splats
from tests.cli.test_verbs import refusal
from tests.export.test_splats import made_splats


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A data set, a good splat file and bad ones."""
    folder = tmp_path_factory.mktemp("refused")
    make_scene("spheres", folder / "data", size=8, num_train=3, num_val=0, num_test=1)
    write_splats(made_splats(40), folder / "good.ply")
    write_splats(made_splats(40), folder / "good.spz")
    (folder / "cut.ply").write_bytes((folder / "good.ply").read_bytes()[:2000])
    (folder / "cut.spz").write_bytes((folder / "good.spz").read_bytes()[:40])
    (folder / "junk.ply").write_text("hello")
    (folder / "empty.splat").touch()
    return folder


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--model.init file", "--model.init file needs a file: add --model.init-file PATH"),
        ("--model.init-file {}/none.ply", "none.ply: no such file"),
        ("--model.init-file {}/data", "data: a folder, not a file"),
        ("--model.init-file {}/junk.ply", "junk.ply: not a PLY file"),
        ("--model.init-file {}/cut.ply", "cut.ply: declares 40 rows of vertex but"),
        ("--model.init-file {}/cut.spz", "cut.spz: the .spz file is cut off"),
        ("--model.init-file {}/good.ply --model.max-gaussians 9", "than --model.max-gaussians 9"),
        ("--model.init-file {}/good.ply --model.color sigmoid", "use --model.color shifted"),
        ("--model.max-gaussians 0", "--model.max-gaussians must be from 1"),
        ("--model.sh-degree 9", "--model.sh-degree must be from 0 to 3, got 9"),
        ("--model.sphere-points 7 --model.init-count 7", "--model.sphere-points 7 leaves no"),
        ("--model.depth-loss 1", "--model.depth-loss 1: no training image of"),
        ("--mcmc.every 0", "--mcmc.every must be from 1"),
        ("--mcmc.noise -1", "--mcmc.noise must be from 0"),
        ("--mcmc.noise nan", "--mcmc.noise: must be a finite number"),
        ("--model.mcmc.every 5", "did you mean --mcmc.every?"),
        ("--model.density foo", "diorama: invalid choice 'foo' for argument '--model.density'"),
    ],
)
def test_training(folder: Path, capsys, flags: str, words: str):
    fixed = ["--data", str(folder / "data"), "--output-dir", str(folder / "runs")]
    told = refusal(capsys, "train", "splat-fast", *fixed, *flags.format(folder).split())
    assert words in told and "--------" not in told
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("render {}/good.ply --path nonsense", "--path nonsense: choose from auto, orbit"),
        ("render {}/good.ply --path val", "--path val: this scene has no val images"),
        ("render {}/good.ply --up w", "diorama: invalid choice 'w' for argument '--up'"),
        ("render {}/cut.ply --path orbit", "cut.ply: declares 40 rows"),
        ("render {}/empty.splat", "empty.splat: "),
        ("export {}/good.ply splats -o {}/x.unknown", "cannot be written as .unknown; use one of"),
        ("export {}/good.ply splats", "name the file to write; add -o FILE"),
        ("export {}/junk.ply splats -o {}/x.ply", "junk.ply: not a PLY file"),
    ],
)
def test_files(folder: Path, capsys, command: str, words: str):
    arguments = [part.replace("{}", str(folder)) for part in command.split()]
    assert words in refusal(capsys, *arguments)


def test_a_run_does_not_need_the_file_that_it_began_with(folder, tmp_path, capsys):
    first = tmp_path / "first.ply"
    write_splats(made_splats(40), first)
    main([
        "train", "splat", "--data", str(folder / "data"), "--max-steps", "4", "--quiet",
        "--model.init-file", str(first), "--output-dir", str(tmp_path), "--name", "run",
    ])  # fmt: skip
    run = capsys.readouterr().out.strip().splitlines()[-1]
    first.unlink()
    main(["eval", run, "--quiet"])
    main(["resume", run, "--max-steps", "6", "--quiet"])
    assert len(diorama.load(run).model.gaussians) == 40
