# SPDX-License-Identifier: Apache-2.0
"""The check of import directions finds what it is there to find, in planted packages."""

from pathlib import Path

import pytest

from tools.layers import check

FINE = {
    "diorama/__init__.py": "def load():\n    from diorama.api import load_run\n",
    "diorama/api.py": "import torch\nfrom diorama.methods.nerf import model\n",
    "diorama/ops/composite.py": "import torch\nfrom diorama import native\n",
    "diorama/native.py": "import torch\n",
    "diorama/methods/registry.py": "from diorama.methods.nerf.config import CONFIG\n",
    "diorama/methods/nerf/__init__.py": "",
    "diorama/methods/nerf/config.py": "def lazy():\n    import torch\n",
    "diorama/methods/nerf/model.py": "import torch\nfrom diorama.methods.nerf import config\n",
    "diorama/methods/splat/__init__.py": "",
}


def complaints(root: Path, **planted: str) -> list[str]:
    for name, text in {**FINE, **planted}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return check(root)


def test_good_package_passes(tmp_path: Path):
    assert complaints(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("native.py", "from diorama.ops import composite\n", "native must not import ops"),
        ("native.py", "from diorama import ops\n", "native must not import ops"),
        ("native.py", "def f():\n    import diorama.cli\n", "native must not import cli"),
        ("utils.py", "", "`utils` is not a layer"),
        ("methods/splat/model.py", "import diorama.methods.nerf\n", "method splat must not"),
        ("engine/trainer.py", "from diorama.methods.nerf import model\n", "by name"),
        ("config/base.py", "import torch\n", "imports torch when imported"),
        ("cli/main.py", "from diorama import native\n", "imports diorama.native -> torch when"),
        ("methods/nerf/config.py", "from diorama.methods.nerf import model\n", "-> torch when"),
    ],
)
def test_planted_mistake_is_found(tmp_path: Path, name: str, text: str, message: str):
    found = complaints(tmp_path, **{f"diorama/{name}": text})
    assert any(message in complaint and name in complaint for complaint in found)
