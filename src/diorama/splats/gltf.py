# SPDX-License-Identifier: Apache-2.0
"""glTF with KHR_gaussian_splatting: splats as points with attributes, in left-up-forward axes."""

import base64
import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from diorama.splats.arrays import SplatArrays, cut_notes, logit, sigmoid, unit_quaternions
from diorama.splats.disk import check_inflation
from diorama.splats.gltf_container import (
    BINARY_CHUNK,
    GLB_MAGIC,
    JSON_CHUNK,
    Gltf,
    parse_gltf,
)
from diorama.splats.gltf_nodes import placed_meshes
from diorama.splats.sh_basis import SH_DC
from diorama.splats.splats import Splats
from diorama.splats.transform import flip_axes, transform_splats

EXTENSION = "KHR_gaussian_splatting"
_HARMONIC = f"{EXTENSION}:SH_DEGREE_"
_LEFT_UP_FORWARD = (-1, -1, 1)
_BYTES_PER_SPLAT = 56
_MAX_COPIES = 16
# float32 cannot tell opacities nearer to 1 than this from 1.
_OPACITY_MARGIN = 1e-7


def decode_gltf(raw: bytes, path: Path) -> Splats:
    """All splats of the scene, moved by their nodes, in .ply axes (right, down, forward)."""
    gltf = parse_gltf(raw, path)
    parts, total = [], 0
    for mesh, world_from_mesh in placed_meshes(gltf):
        for primitive in _splat_primitives(gltf, mesh):
            parts.append(transform_splats(world_from_mesh, _read(gltf, primitive)))
            # Many nodes may show the same mesh, so a small file may ask for any number of splats.
            total += len(parts[-1])
            check_inflation(path, total * _BYTES_PER_SPLAT, gltf.num_bytes(), _MAX_COPIES)
    if not parts:
        raise gltf.refuse(f"no mesh of the scene has splats in the extension {EXTENSION}")
    return flip_axes(Splats.cat(parts), _LEFT_UP_FORWARD)


def encode_gltf(splats: Splats, is_binary: bool = True) -> bytes:
    """One node without a transform: .glb, or .gltf with the numbers embedded as base64."""
    data, binary = _document(_attributes(flip_axes(splats, _LEFT_UP_FORWARD)))
    if not is_binary:
        data["buffers"][0]["uri"] = (
            "data:application/octet-stream;base64," + base64.b64encode(binary).decode()
        )
        return json.dumps(data).encode()
    text = json.dumps(data).encode()
    text += b" " * (-len(text) % 4)
    length = 12 + 8 + len(text) + 8 + len(binary)
    header = GLB_MAGIC + struct.pack("<II", 2, length)
    chunks = ((JSON_CHUNK, text), (BINARY_CHUNK, binary))
    return header + b"".join(struct.pack("<II", len(part), kind) + part for kind, part in chunks)


def _splat_primitives(gltf: Gltf, mesh: dict[str, Any]) -> list[dict[str, Any]]:
    primitives = mesh.get("primitives")
    if not isinstance(primitives, list) or not all(isinstance(item, dict) for item in primitives):
        raise gltf.refuse("a mesh has no list of primitives")
    found = []
    for primitive in primitives:
        extensions = primitive.get("extensions")
        extension = extensions.get(EXTENSION) if isinstance(extensions, dict) else None
        if isinstance(extension, dict):
            _check_kind(gltf, extension)
            found.append(primitive)
    return found


def _check_kind(gltf: Gltf, extension: dict[str, Any]) -> None:
    """Refuse what would be drawn wrongly: other kernels, colour spaces, and packed data."""
    known = {
        "kernel": "ellipse",
        "colorSpace": "srgb_rec709_display",
        "projection": "perspective",
        "sortingMethod": "cameraDistance",
    }
    for key, value in known.items():
        if extension.get(key, value) != value:
            raise gltf.refuse(
                f"its splats have the {key} {extension[key]!r:.40}, only {value} is read"
            )
    if packers := extension.get("extensions"):
        raise gltf.refuse(f"its splats are packed ({packers!s:.60}), which is not read")


def _accessor_of(gltf: Gltf, primitive: dict[str, Any], name: str) -> dict[str, Any]:
    attributes = primitive.get("attributes")
    if not isinstance(attributes, dict) or name not in attributes:
        raise gltf.refuse(f"its splats have no attribute {name}")
    return gltf.item("accessors", attributes[name])


def _read(gltf: Gltf, primitive: dict[str, Any]) -> Splats:
    count = gltf.count(_accessor_of(gltf, primitive, "POSITION"), "count")

    def attribute(name: str, width: int) -> np.ndarray:
        _accessor_of(gltf, primitive, name)
        values = gltf.accessor(primitive["attributes"][name], name, width)
        if len(values) != count:
            raise gltf.refuse(f"the attribute {name} has {len(values)} values for {count} splats")
        return values

    names = [name for name in _harmonic_names(3) if name in primitive["attributes"]]
    if names != _harmonic_names({1: 0, 4: 1, 9: 2, 16: 3}.get(len(names), 0)):
        raise gltf.refuse(f"its spherical harmonics are incomplete ({len(names)} of 1, 4, 9 or 16)")
    arrays = SplatArrays(
        means=attribute("POSITION", 3),
        quaternions=attribute(f"{EXTENSION}:ROTATION", 4)[:, [3, 0, 1, 2]],
        log_scales=_log_scales(attribute(f"{EXTENSION}:SCALE", 3)),
        opacity_logits=logit(attribute(f"{EXTENSION}:OPACITY", 1)[:, 0], _OPACITY_MARGIN),
        sh=np.stack([attribute(name, 3) for name in names], axis=1),
    )
    splats = arrays.to_splats(gltf.path)
    stored = [name for name in primitive["attributes"] if name.startswith(_HARMONIC)]
    return splats if len(stored) == len(names) else replace(splats, notes=cut_notes(gltf.path))


def _log_scales(scales: np.ndarray) -> np.ndarray:
    """Sizes are linear; in drafts of 2025 they were logarithms, which negative values give away."""
    if (scales < 0).any():
        return scales
    with np.errstate(divide="ignore"):
        return np.log(scales.astype(np.float64))


def _harmonic_names(degree: int) -> list[str]:
    orders = [(band, order) for band in range(degree + 1) for order in range(2 * band + 1)]
    return [f"{_HARMONIC}{band}_COEF_{order}" for band, order in orders]


def _attributes(splats: Splats) -> dict[str, np.ndarray]:
    arrays = SplatArrays.of(splats)
    opacity = sigmoid(arrays.opacity_logits.astype(np.float64))
    values = {
        "POSITION": arrays.means,
        "COLOR_0": _fallback_colors(arrays.sh[:, 0], opacity),
        f"{EXTENSION}:ROTATION": unit_quaternions(arrays.quaternions)[:, [1, 2, 3, 0]],
        f"{EXTENSION}:SCALE": np.exp(arrays.log_scales),
        f"{EXTENSION}:OPACITY": opacity[:, None],
    }
    for index, name in enumerate(_harmonic_names(splats.degree)):
        values[name] = arrays.sh[:, index]
    return {
        name: np.ascontiguousarray(data, dtype="<u2" if name == "COLOR_0" else "<f4")
        for name, data in values.items()
    }


def _fallback_colors(constant: np.ndarray, opacity: np.ndarray) -> np.ndarray:
    """Linear colours and alpha for programs that know only points; linear as glTF wants them."""
    srgb = np.clip(0.5 + SH_DC * constant, 0, 1)
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    return np.rint(np.concatenate([linear, opacity[:, None]], axis=1) * 65535)


def _document(attributes: dict[str, np.ndarray]) -> tuple[dict[str, Any], bytes]:
    """The JSON object and its one buffer, in which every attribute has its own part."""
    views, accessors, offset = [], [], 0
    for name, values in attributes.items():
        size = values.nbytes
        views.append({"buffer": 0, "byteOffset": offset, "byteLength": size, "target": 34962})
        accessor: dict[str, Any] = {"bufferView": len(views) - 1, "count": len(values)}
        accessor["type"] = "SCALAR" if values.shape[1] == 1 else f"VEC{values.shape[1]}"
        accessor["componentType"] = 5123 if name == "COLOR_0" else 5126
        if name == "COLOR_0":
            accessor["normalized"] = True
        if name == "POSITION":
            accessor["min"] = values.min(axis=0).tolist()
            accessor["max"] = values.max(axis=0).tolist()
        accessors.append(accessor)
        offset += size
    kind = {"kernel": "ellipse", "colorSpace": "srgb_rec709_display"}
    primitive = {
        "mode": 0,
        "attributes": {name: index for index, name in enumerate(attributes)},
        "extensions": {EXTENSION: kind},
    }
    data = {
        "asset": {"version": "2.0", "generator": "Diorama"},
        "extensionsUsed": [EXTENSION],
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [primitive]}],
        "buffers": [{"byteLength": offset}],
        "bufferViews": views,
        "accessors": accessors,
    }
    return data, b"".join(values.tobytes() for values in attributes.values())
