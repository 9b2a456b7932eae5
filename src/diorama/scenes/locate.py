# SPDX-License-Identifier: Apache-2.0
"""`scene:NAME` wherever a data set is asked for."""

from pathlib import Path

PREFIX = "scene:"


def data_folder(path: Path) -> Path:
    """The folder that `--data` means; a procedural scene is made (once) and found in its cache."""
    if not str(path).startswith(PREFIX):
        return path
    from diorama.scenes import make_scene

    return make_scene(str(path).removeprefix(PREFIX))
