# SPDX-License-Identifier: Apache-2.0
"""Run folders: found again by any handle, wherever they lie, with a config that is plain data."""

import json
import os
from pathlib import Path

import pytest

from diorama.engine.run_config import read_config, write_config
from diorama.engine.run_folder import RunFolder, create_run, find_run
from diorama.errors import UserError
from tests.engine.tiny import default_for, tiny_config


@pytest.fixture
def run(tmp_path) -> RunFolder:
    folder = create_run(tmp_path / "outputs", "lego", "tiny", "a")
    (folder.checkpoints / "step-000000010.safetensors").touch()
    write_config(tiny_config(max_steps=123, data={"path": tmp_path / "data"}), folder)
    return folder


def edit(run: RunFolder, change) -> None:
    content = json.loads(run.config_file.read_text())
    change(content)
    run.config_file.write_text(json.dumps(content))


def test_a_config_comes_back_as_it_was_written(run, tmp_path):
    config, warnings = read_config(run, default_for)
    expected = tiny_config(max_steps=123, data={"path": tmp_path / "data"})
    assert (config, warnings) == (expected, [])
    content = json.loads(run.config_file.read_text())
    assert (content["schema_version"], content["method"]) == (1, "tiny")


def test_data_that_moved_with_the_run_is_found(run, tmp_path):
    (tmp_path / "data").mkdir()
    moved = tmp_path / "moved"
    moved.mkdir()
    (tmp_path / "data").rename(moved / "data")
    (tmp_path / "outputs").rename(moved / "outputs")
    here = RunFolder(moved / "outputs" / "lego" / "tiny" / "a")
    config, _ = read_config(here, default_for)
    assert config.data.path == moved / "data"


def test_data_that_is_gone_keeps_its_path(run, tmp_path):
    assert read_config(run, default_for)[0].data.path == tmp_path / "data"


def test_a_relative_data_path_is_written_absolute(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_config(tiny_config(data={"path": Path("data")}), run)
    assert read_config(run, default_for)[0].data.path == tmp_path / "data"


def test_unknown_keys_are_reported_and_missing_ones_defaulted(run):
    def change(content):
        content["config"]["model"]["colour"] = "red"
        del content["config"]["optim"]

    edit(run, change)
    config, warnings = read_config(run, default_for)
    assert config.optim == default_for("tiny").optim
    assert len(warnings) == 1
    assert "unknown key config.model.colour is ignored" in warnings[0]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda c: c.update(schema_version=99), "written by a newer Diorama"),
        (lambda c: c.pop("schema_version"), "schema_version is missing"),
        (lambda c: c.update(method=7), "'method' must name"),
        (lambda c: c.pop("config"), "expected an object"),
        (lambda c: c["config"].update(max_steps="many"), "config.max_steps: expected int"),
    ],
)
def test_a_broken_config_gives_one_sentence(run, change, sentence):
    edit(run, change)
    with pytest.raises(UserError, match=sentence) as caught:
        read_config(run, default_for)
    assert str(run.config_file) in str(caught.value)


def test_a_config_that_is_no_json_gives_one_sentence(run):
    run.config_file.write_text("{")
    with pytest.raises(UserError, match="not readable as JSON"):
        read_config(run, default_for)


@pytest.mark.parametrize("handle", [".", "config.json", "checkpoints"])
def test_a_run_is_found_by_its_parts(run, handle):
    found = find_run(run.path / handle)
    assert (found.folder, found.checkpoint, found.notes) == (run, None, ())


def test_a_checkpoint_file_names_its_run_and_itself(run):
    checkpoint = run.checkpoints / "step-000000010.safetensors"
    found = find_run(checkpoint)
    assert (found.folder, found.checkpoint) == (run, checkpoint)


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_above_several_runs_the_latest_is_taken_and_said(run, levels):
    other = create_run(run.path.parents[2], "lego", "tiny", "b")
    write_config(tiny_config(), other)
    (other.checkpoints / "step-000000005.safetensors").touch()
    os.utime(run.checkpoints / "step-000000010.safetensors", (2e9, 2e9))
    found = find_run(run.path.parents[levels - 1])
    assert found.folder == run
    assert "2 runs; taking the latest" in found.notes[0]


def test_what_is_no_run_is_refused(tmp_path, run):
    with pytest.raises(UserError, match="no such run folder"):
        find_run(tmp_path / "nowhere")
    with pytest.raises(UserError, match="cannot be opened"):
        find_run(tmp_path / ("long" * 200))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no run in here"):
        find_run(tmp_path / "empty")
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UserError, match=r"name a run folder, its config.json"):
        find_run(tmp_path / "notes.txt")


def test_runs_of_the_same_second_get_different_folders(tmp_path):
    folders = {create_run(tmp_path, "lego", "tiny", None).path for _ in range(3)}
    assert len(folders) == 3


def test_strange_scene_names_stay_inside_the_output_folder(tmp_path):
    for name in ("../../etc", "..", "a/b", "", "con:1"):
        run = create_run(tmp_path, name, "tiny", None)
        assert run.path.resolve().is_relative_to(tmp_path)
        assert len(run.path.relative_to(tmp_path).parts) == 3


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "out").touch()
    with pytest.raises(UserError, match="a file is in the way"):
        create_run(tmp_path / "out", "lego", "tiny", None)
