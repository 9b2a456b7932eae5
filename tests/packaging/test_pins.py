# SPDX-License-Identifier: Apache-2.0
"""What `constraints.txt` pins, `pyproject.toml` allows; nothing that it asks for is unpinned."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    split = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in split}


def requirements() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    return project["build-system"]["requires"] + project["project"]["dependencies"] + extras["dev"]


@pytest.mark.parametrize("requirement", sorted(set(requirements())))
def test_every_requirement_has_a_pin_in_its_range(requirement: str):
    wanted = Requirement(requirement)
    assert wanted.specifier.contains(pins()[canonicalize_name(wanted.name)])


def test_no_pin_names_a_local_build():
    """`2.13.0+cpu` would exist on one index only; `2.13.0` accepts it where it is what there is."""
    assert not [version for version in pins().values() if "+" in version]
