# SPDX-License-Identifier: Apache-2.0
"""Every verb as a user types it: what it prints, what it writes, how it refuses."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from diorama.cli.arguments import take_word
from diorama.cli.main import VERBS, main
from diorama.scenes import make_scene

TINY = [
    "--model.depth=2",
    "--model.width=16",
    "--model.grid-resolution=16",
    "--model.sample-budget=2048",
    "--model.grid-warmup=4",
    "--model.march-steps=32",
    "--model.march-warmup-steps=16",
    "--data.rays=64",
    "--log.no-tensorboard",
]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "balls"
    return make_scene("spheres", folder, size=24, num_train=6, num_val=1, num_test=2)


@pytest.fixture(scope="module")
def run(data, tmp_path_factory) -> Path:
    """A run of 8 steps, made by `diorama train` in this process."""
    outputs = tmp_path_factory.mktemp("outputs")
    train(data, outputs, "--name", "first", "--quiet")
    return outputs / "balls" / "nerf-small" / "first"


def train(data: Path, outputs: Path, *flags: str) -> None:
    fixed = ["--data", str(data), "--output-dir", str(outputs), "--max-steps", "8"]
    main(["train", "nerf-small", *fixed, *TINY, *flags])


def refusal(capsys, *arguments: str) -> str:
    """The one line on stderr of a command that must exit with 2."""
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    lines = capsys.readouterr().err.strip().splitlines()
    assert stopped.value.code == 2
    assert len(lines) == 1 and lines[0].startswith("diorama: "), lines
    return lines[0]


def test_help_is_there_within_a_second():
    started = time.perf_counter()
    told = subprocess.run(
        [sys.executable, "-m", "diorama", "--help"], capture_output=True, text=True, check=True
    ).stdout
    seconds = time.perf_counter() - started
    assert all(verb in told for verb in VERBS)
    assert seconds < 3.0  # one second on an idle machine; this one runs other tests too


def test_help_imports_no_torch():
    code = (
        "import sys; from diorama.cli.main import main; main(['--help']); "
        "from diorama.methods.registry import method_config; method_config('nerf'); "
        "sys.exit(bool({'torch', 'PIL', 'numpy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([verb, "--help"] if verb != "train" else [verb, "nerf", "--help"])
    assert not stopped.value.code
    assert "usage" in capsys.readouterr().out


def test_train_help_without_a_method_names_the_methods(capsys):
    main(["train", "--help"])
    assert "nerf-small" in capsys.readouterr().out


def test_the_last_line_of_train_is_the_run_folder(data, tmp_path, capsys):
    train(data, tmp_path)
    folder = Path(capsys.readouterr().out.strip().splitlines()[-1])
    assert folder.is_dir()
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["method"] == "nerf-small" and metrics["step"] == 8
    assert {image["name"] for image in metrics["images"]} == {"test/r_0.png", "test/r_1.png"}
    assert set(metrics["means"]) >= {"psnr", "ssim"}
    assert metrics["peak_memory_mb"] > 0 and metrics["training_seconds"] > 0
    assert "torch" in metrics["versions"]


def test_flags_may_stand_in_any_order(data, tmp_path, capsys):
    outputs = ["--output-dir", str(tmp_path), "--name", "x", "--quiet"]
    main(["train", *TINY, "--data", str(data), "--max-steps", "2", "nerf-small", *outputs])
    assert capsys.readouterr().out.strip().endswith("x")


@pytest.mark.parametrize(
    ("arguments", "word", "rest"),
    [
        ("nerf --data x", "nerf", "--data x"),
        ("--data x nerf", "nerf", "--data x"),
        ("--data nerf nerf", "nerf", "--data nerf"),
        ("--quiet nerf --data x", "nerf", "--quiet --data x"),
        ("--data=x nerf", "nerf", "--data=x"),
        ("unknown --data x", "unknown", "--data x"),
        ("--data x", None, "--data x"),
    ],
)
def test_the_method_is_found_among_the_flags(arguments, word, rest):
    assert take_word(arguments.split(), ["nerf", "nerf-small"]) == (word, rest.split())


def test_refusals_name_the_mistake_and_the_fix(data, tmp_path, capsys):
    assert "did you mean inspect" in refusal(capsys, "inspct")
    assert "did you mean nerf-small" in refusal(capsys, "train", "nerf-smal", "--data", "x")
    wrong_flag = refusal(capsys, "train", "nerf-small", "--data", str(data), "--model.widht", "3")
    assert "--model.widht" in wrong_flag and "--model.width" in wrong_flag
    assert "--max-steps" in refusal(capsys, "train", "nerf", "--max-steps", "many")
    assert "--data" in refusal(capsys, "train", "nerf")
    assert "which method" in refusal(capsys, "train", "--data", str(data))
    assert str(tmp_path) in refusal(capsys, "train", "nerf", "--data", str(tmp_path))
    assert "PATH is missing: the run folder, one of" in refusal(capsys, "render")
    assert "no such run" in refusal(capsys, "eval", str(tmp_path / "none"))
    assert "--path swing" in refusal_of_render(capsys, data, tmp_path)


def refusal_of_render(capsys, data: Path, tmp_path: Path) -> str:
    train(data, tmp_path, "--name", "r", "--quiet")
    capsys.readouterr()
    run = tmp_path / "balls" / "nerf-small" / "r"
    return refusal(capsys, "render", str(run), "--path", "swing")


def test_a_name_is_never_reused(run, data, capsys):
    outputs = run.parents[2]
    fixed = ["--data", str(data), "--output-dir", str(outputs), "--name", "first", "--quiet"]
    assert "exists already" in refusal(capsys, "train", "nerf-small", *fixed, *TINY)


def test_eval_prints_a_table_and_writes_pictures(run, capsys):
    main(["eval", str(run), "--save-images"])
    told = capsys.readouterr().out
    assert "test/r_0.png" in told and "mean of 2" in told
    assert len(list((run / "renders" / "eval").glob("*.png"))) == 2


@pytest.mark.parametrize("path", ["orbit", "spiral", "tour", "test", "auto"])
def test_render_along_named_paths(run, path, tmp_path, capsys):
    flags = ["--frames", "3", "--outputs", "rgb", "depth", "--scale", "0.5"]
    main(["render", str(run), "--path", path, *flags, "--output", str(tmp_path), "--no-video"])
    count = {"test": 2, "auto": 40}.get(path, 3)
    assert len(list((tmp_path / "rgb").glob("*.png"))) == count
    assert len(list((tmp_path / "depth").glob("*.png"))) == count


def test_render_writes_a_video_without_keeping_images(run, tmp_path):
    main(["render", str(run), "--frames", "4", "--path", "orbit", "--no-images",
          "--output", str(tmp_path), "--quiet"])  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["rgb.mp4"]


def test_a_run_renders_and_evaluates_after_both_it_and_its_data_moved(data, tmp_path, capsys):
    before, after = tmp_path / "before", tmp_path / "after"
    shutil.copytree(data, before / "balls")
    train(before / "balls", before / "outputs", "--name", "m", "--quiet")
    before.rename(after)
    run = after / "outputs" / "balls" / "nerf-small" / "m"
    main(["eval", str(run), "--quiet"])
    main(["resume", str(run), "--max-steps", "10", "--quiet"])
    shutil.rmtree(after / "balls")
    main(["render", str(run), "--frames", "1", "--path", "orbit", "--no-video", "--quiet"])
    assert (run / "renders" / "orbit" / "rgb" / "00000.png").is_file()
    assert json.loads((run / "metrics.json").read_text())["step"] == 10


def test_data_that_moved_alone_is_named_and_can_be_given_again(data, tmp_path, capsys):
    shutil.copytree(data, tmp_path / "here")
    train(tmp_path / "here", tmp_path / "out", "--name", "m", "--quiet")
    (tmp_path / "here").rename(tmp_path / "there")
    run = tmp_path / "out" / "here" / "nerf-small" / "m"
    capsys.readouterr()
    assert "here" in refusal(capsys, "eval", str(run))
    main(["eval", str(run), "--data", str(tmp_path / "there"), "--quiet"])


def test_methods_lists_the_built_in_ones(capsys):
    main(["methods"])
    told = capsys.readouterr().out
    assert all(name in told for name in ("nerf-small", "nerf ", "nerf-llff"))


def test_options_no_network_can_have_are_refused(data, capsys):
    for flags, name in (
        (["--model.depth", "0"], "--model.depth"),
        (["--model.samples", "2", "--model.sampler", "paper"], "--model.samples"),
        (["--model.grid-resolution", "100000"], "--model.grid-resolution"),
        (["--max-steps", "0"], "--max-steps"),
    ):
        assert name in refusal(capsys, "train", "nerf-small", "--data", str(data), *flags)


def test_a_shorter_path_leaves_no_frames_of_the_longer_one(run, tmp_path):
    for frames in ("3", "2"):
        main(["render", str(run), "--path", "orbit", "--frames", frames, "--no-video",
              "--output", str(tmp_path), "--quiet"])  # fmt: skip
    assert len(list((tmp_path / "rgb").glob("*.png"))) == 2


def test_a_run_with_a_time_budget_can_be_trained_further(data, tmp_path):
    flags = ["--max-minutes", "0.02", "--name", "budget", "--quiet"]
    main(["train", "nerf-small", "--data", str(data), "--output-dir", str(tmp_path), *TINY, *flags])
    run = tmp_path / "balls" / "nerf-small" / "budget"
    steps = json.loads((run / "metrics.json").read_text())["step"]
    main(["resume", str(run), "--max-steps", str(steps + 5), "--quiet"])
    assert json.loads((run / "metrics.json").read_text())["step"] == steps + 5
