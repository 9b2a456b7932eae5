# SPDX-License-Identifier: Apache-2.0
"""Fails when imports inside `src/diorama` do not point one way, or the command line turns heavy.

A layer may import itself and the layers before it, also inside functions. A method never imports
another, and nothing below `api` knows a method by name. What `diorama --help` needs must not
import anything heavy when it is itself imported, directly or through others.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

LAYERS = (
    *("errors", "config", "cameras", "splats", "data", "scenes", "native", "ops", "metrics", "nn"),
    *("model", "methods", "engine", "export", "viewer", "api", "bench", "cli"),
)
LIGHT = (
    *("diorama", "diorama.config*", "diorama.cli.main"),
    *("diorama.methods.registry", "diorama.methods.*.config"),
)
HEAVY = (
    *("torch", "numpy", "PIL", "av", "tensorboard", "scipy", "skimage", "trimesh"),
    *("pyarrow", "zstandard"),
)


@dataclass(frozen=True)
class Import:
    """One imported module or name, `target`, at a line of the file of module `source`."""

    source: str
    target: str
    line: int
    is_at_import_time: bool


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path, root: Path) -> Iterator[Import]:
    """Every import in a file; those in functions or under TYPE_CHECKING come later, or never."""
    source = module_name(path, root)

    def walk(node: ast.AST, now: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            yield from (Import(source, alias.name, node.lineno, now) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield from (
                Import(source, f"{module}.{alias.name}", node.lineno, now) for alias in node.names
            )
        is_later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for child in node.body:
                yield from walk(child, False)
            for child in node.orelse:
                yield from walk(child, now)
            return
        for child in ast.iter_child_nodes(node):
            yield from walk(child, now and not is_later)

    yield from walk(ast.parse(path.read_text(), str(path)), True)


def layer_error(found: Import, methods: set[str]) -> str | None:
    """Why this import is not allowed, if it is not; `methods` are the names of their folders."""
    source, target = found.source.split("."), [*found.target.split("."), ""]
    if len(source) < 2 or source[1] not in LAYERS or target[0] != "diorama":
        return None
    if target[1] in LAYERS and LAYERS.index(target[1]) > LAYERS.index(source[1]):
        return f"{source[1]} must not import {target[1]}, a later layer"
    if target[1] != "methods" or target[2] not in methods or source[1] in ("api", "cli"):
        return None
    if source[1] != "methods":
        return f"{source[1]} must not know a method by name"
    is_method = len(source) > 2 and source[2] in methods
    if is_method and source[2] != target[2]:
        return f"method {source[2]} must not import method {target[2]}"
    return None


def heavy_chain(module: str, graph: dict[str, list[str]]) -> list[str] | None:
    """A shortest chain of imports from the module to something heavy."""
    chains, seen = [[module]], {module}
    for chain in chains:
        for target in graph.get(chain[-1], []):
            if target.split(".")[0] in HEAVY:
                return [*chain, target.split(".")[0]]
            if target not in seen:
                seen.add(target)
                chains.append([*chain, target])
    return None


def check(root: Path) -> list[str]:
    """All complaints about the package `diorama` in the folder `root`."""
    files = {module_name(path, root): path for path in sorted(root.glob("diorama/**/*.py"))}
    methods = {path.parent.name for path in root.glob("diorama/methods/*/__init__.py")}
    complaints, graph = [], {}
    for module, path in files.items():
        layer = [*module.split("."), ""][1]
        if layer not in LAYERS and layer.strip("_") not in ("", "main", "native"):
            complaints.append(f"{path}: `{layer}` is not a layer; tools/layers.py lists them")
        reached: list[str] = []
        for found in imports_of(path, root):
            if error := layer_error(found, methods):
                complaints.append(f"{path}:{found.line}: {error}")
            if found.is_at_import_time:
                parts = found.target.split(".")
                prefixes = [".".join(parts[:n]) for n in range(1, len(parts) + 1)]
                reached += [p for p in prefixes if p in files or p.split(".")[0] in HEAVY]
        graph[module] = reached
    for module in (m for m in files if any(fnmatch(m, pattern) for pattern in LIGHT)):
        if chain := heavy_chain(module, graph):
            complaints.append(f"{files[module]}: imports {' -> '.join(chain[1:])} when imported")
    return complaints


if __name__ == "__main__":
    found_complaints = check(Path(__file__).parents[1] / "src")
    sys.exit("\n".join(found_complaints) or 0)
