# SPDX-License-Identifier: Apache-2.0
"""Every example runs and prints what its docstring says; the documents quote real files."""

import ast
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9][0-9]_*.py"))
NUMBER = re.compile(r"\d+(\.\d+)?")


def promised_output(example: Path) -> str:
    """The indented block at the end of the docstring."""
    docstring = ast.get_docstring(ast.parse(example.read_text()))
    assert docstring is not None
    return textwrap.dedent(docstring.split("and prints\n")[1]).strip()


def promised_files(example: Path) -> list[str]:
    """File names in the docstring's sentence that begins with `writes`."""
    text = example.read_text().split("\nwrites ")[1].split("and prints\n")[0]
    return re.findall(r"[\w/]+\.(?:png|json|mp4)", text)


def test_there_are_examples():
    assert [path.name[:2] for path in EXAMPLES] == [f"{i:02d}" for i in range(1, 6)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_does_what_it_says(example: Path, tmp_path: Path):
    result = subprocess.run(
        [sys.executable, str(example), str(tmp_path / "given")],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert result.returncode == 0, result.stderr
    # Other machines round differently: the words must agree, and how many numbers there are.
    assert NUMBER.sub("#", result.stdout.strip()) == NUMBER.sub("#", promised_output(example))
    for name in promised_files(example):
        assert (tmp_path / "given" / name).stat().st_size > 0
    assert [path.name for path in tmp_path.iterdir()] == ["given"]


def test_adding_a_method_quotes_the_plug_in():
    document = (ROOT / "docs/adding-a-method.md").read_text()
    plugin = ROOT / "examples/plugin"
    for path in [plugin / "pyproject.toml", *plugin.glob("src/diorama_panorama/[!_]*.py")]:
        code = path.read_text().replace("# SPDX-License-Identifier: Apache-2.0\n", "")
        assert code.strip() in document, f"{path.relative_to(ROOT)} is quoted differently"


@pytest.mark.parametrize(
    "document",
    ["README.md", "CONTRIBUTING.md", "docs/tour.md", "docs/adding-a-method.md",
     "src/diorama/methods/nerf/README.md"],
)  # fmt: skip
def test_documents_name_files_that_exist(document: str):
    text = (ROOT / document).read_text()
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    paths = re.findall(r"`((?:src|docs|tests|examples|csrc|tools)/[\w./-]+\w)`", text)
    targets = [(ROOT / document).parent / link for link in links] + [ROOT / path for path in paths]
    missing = [str(target) for target in targets if not target.exists()]
    assert not missing
