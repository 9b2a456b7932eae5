# SPDX-License-Identifier: Apache-2.0
"""Splats from and to files: the format is found by looking, and nothing is dropped unsaid."""

from dataclasses import dataclass
from pathlib import Path

import torch

from diorama.errors import UserError
from diorama.splats.compressed_ply import decode_compressed_ply, encode_compressed_ply
from diorama.splats.disk import read_file, write_file
from diorama.splats.gltf import decode_gltf, encode_gltf
from diorama.splats.ply import decode_ply, encode_ply
from diorama.splats.ply_table import MAX_HEADER
from diorama.splats.sigmoid_to_shifted import shifted_to_sigmoid, sigmoid_to_shifted
from diorama.splats.splat import decode_splat, encode_splat
from diorama.splats.splats import Splats
from diorama.splats.spz import SpzVersion, decode_spz, encode_spz, spz_losses
from diorama.splats.taichi_parquet import decode_taichi, encode_taichi


@dataclass(frozen=True)
class _Format:
    """What a format is called, how its files end, and what it cannot hold."""

    title: str
    suffixes: tuple[str, ...]
    has_harmonics: bool = True
    has_antialiased: bool = True


_FORMATS = {
    "ply": _Format("3DGS .ply", (".ply",)),
    "compressed": _Format("compressed .ply", (".ply",)),
    "spz": _Format(".spz", (".spz",)),
    "splat": _Format(".splat", (".splat",), has_harmonics=False, has_antialiased=False),
    "glb": _Format(".glb", (".glb",), has_antialiased=False),
    "gltf": _Format(".gltf", (".gltf",), has_antialiased=False),
    "taichi": _Format("taichi .parquet", (".parquet",)),
}
_DECODERS = {
    "ply": decode_ply,
    "compressed": decode_compressed_ply,
    "spz": decode_spz,
    "splat": decode_splat,
    "glb": decode_gltf,
    "gltf": decode_gltf,
    "taichi": decode_taichi,
}
SUFFIXES = (".ply", ".compressed.ply", ".spz", ".splat", ".glb", ".gltf", ".parquet")


def read_splats(path: Path) -> Splats:
    """The splats in a file of any format of docs/formats.md, in .ply axes."""
    return decode_splats(read_file(path), path)


def decode_splats(raw: bytes, path: Path) -> Splats:
    """The splats in the bytes of a file; the path is for messages and for files beside it."""
    return _DECODERS[sniff(raw, path)](raw, path)


def write_splats(splats: Splats, path: Path, *, spz_version: SpzVersion = 4) -> list[str]:
    """Write in the format that the name's ending asks for; say what could not be kept.

    The list holds one sentence for everything that the format cannot hold and that was left out,
    converted or clipped. Rounding to the format's precision (docs/formats.md) is not mentioned.
    """
    name = _format_of_name(path)
    is_finite = torch.ones(len(splats), dtype=torch.bool, device=splats.means.device)
    for values in (splats.means, splats.quaternions, splats.log_scales, splats.sh):
        is_finite &= values.flatten(1).isfinite().all(dim=1)
    is_finite &= splats.opacity_logits.isfinite()
    notes, num_bad = [], len(splats) - int(is_finite.sum())
    if num_bad == len(splats):
        raise UserError(f"{path}: there is no splat to write; train the scene further.")
    if num_bad:
        notes.append(f"{num_bad} splats with numbers that are not finite are left out.")
        splats = splats.select(is_finite)
    splats, more = _fitted(splats, name)
    notes += more
    if name == "spz":
        notes += spz_losses(splats)
        data = encode_spz(splats, spz_version)
    elif name in ("glb", "gltf"):
        data = encode_gltf(splats, is_binary=name == "glb")
    else:
        encoders = {"ply": encode_ply, "compressed": encode_compressed_ply}
        encoders |= {"splat": encode_splat, "taichi": encode_taichi}
        data = encoders[name](splats)
    write_file(path, data)
    return notes


def sniff(raw: bytes, path: Path) -> str:
    """The format of a file by its first bytes, or else by its name; they must not disagree."""
    named = [name for name, kind in _FORMATS.items() if path.suffix.lower() in kind.suffixes]
    found = _content(raw)
    if found is not None and named and found not in named:
        raise UserError(
            f"{path}: by its content this is a {_FORMATS[found].title} file; rename it to end in"
            f" {_FORMATS[found].suffixes[0]}."
        )
    if found is None and not named:
        raise UserError(
            f"{path}: not a splat file that can be read; convert it to {' or '.join(SUFFIXES)}."
        )
    return found or named[0]


def _content(raw: bytes) -> str | None:
    if raw.startswith(b"ply"):
        is_packed = b"packed_position" in raw[:MAX_HEADER].partition(b"end_header")[0]
        return "compressed" if is_packed else "ply"
    if raw.startswith((b"\x1f\x8b", b"NGSP")):
        return "spz"
    if raw.startswith(b"glTF"):
        return "glb"
    if raw.startswith(b"PAR1"):
        return "taichi"
    is_json = raw[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    return "gltf" if is_json and b'"asset"' in raw else None


def _format_of_name(path: Path) -> str:
    if path.name.lower().endswith(".compressed.ply"):
        return "compressed"
    for name, kind in _FORMATS.items():
        if path.suffix.lower() in kind.suffixes:
            return name
    raise UserError(
        f"{path}: splats cannot be written as {path.suffix or 'a file without ending'};"
        f" use one of {', '.join(SUFFIXES)}."
    )


def _fitted(splats: Splats, name: str) -> tuple[Splats, list[str]]:
    """The splats as the format can hold them, and what that changed."""
    kind, notes = _FORMATS[name], []
    if name == "taichi" and splats.color == "shifted":
        splats, error = shifted_to_sigmoid(splats)
        notes.append(f"Colours were fitted anew for the sigmoid of {kind.title}: {_off_by(error)}.")
    elif name != "taichi" and splats.color == "sigmoid":
        splats, error = sigmoid_to_shifted(splats)
        notes.append(
            f"Colours through a sigmoid were fitted anew for {kind.title}: {_off_by(error)}."
        )
    if splats.degree and not kind.has_harmonics:
        notes.append(
            f"Colours that change with the view (degree {splats.degree}) are left out:"
            f" {kind.title} has one colour per splat."
        )
        splats = splats.with_degree(0)
    if splats.antialiased and not kind.has_antialiased:
        notes.append(
            f"Trained with antialiasing, which {kind.title} cannot say: viewers will draw fine"
            " detail too thick."
        )
    if name == "taichi" and not splats.antialiased:
        notes.append(
            f"Trained without antialiasing, which {kind.title} always has: fine detail will be"
            " drawn too thin."
        )
    return splats, notes


def _off_by(error: float) -> str:
    return f"off by up to {255 * error:.1f} of 255"
