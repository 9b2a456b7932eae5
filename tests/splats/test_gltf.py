# SPDX-License-Identifier: Apache-2.0
"""KHR_gaussian_splatting as other programs write it: nodes, integers, side files, strides."""

import base64
import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from diorama.cameras import Similarity
from diorama.errors import UserError
from diorama.splats import Splats, flip_axes, read_splats, transform_splats
from diorama.splats.gltf import decode_gltf, encode_gltf
from tests.splats.random_splats import (
    colors_seen,
    covariances,
    random_directions,
    random_rotation,
    random_splats,
)

NAME = "KHR_gaussian_splatting"
HERE = Path("x.gltf")


def document(splats: Splats) -> dict[str, Any]:
    return json.loads(encode_gltf(splats, is_binary=False))


def decode(data: dict[str, Any]) -> Splats:
    return decode_gltf(json.dumps(data).encode(), HERE)


def buffer_of(data: dict[str, Any]) -> bytes:
    return base64.b64decode(data["buffers"][0]["uri"].split(",")[1])


def assert_same_look(got: Splats, expected: Splats) -> None:
    torch.testing.assert_close(got.means, expected.means, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(covariances(got), covariances(expected), atol=1e-5, rtol=1e-4)
    directions = random_directions(10)
    torch.testing.assert_close(
        colors_seen(got, directions), colors_seen(expected, directions), atol=1e-4, rtol=0
    )
    torch.testing.assert_close(
        got.opacity_logits.sigmoid(), expected.opacity_logits.sigmoid(), atol=1e-6, rtol=0
    )


def test_glb_layout():
    """What the specification asks for, looked up by hand."""
    splats = random_splats(3, degree=1)
    raw = encode_gltf(splats)
    magic, version, length, size, kind = struct.unpack_from("<4sIIII", raw)
    assert (magic, version, length, kind) == (b"glTF", 2, len(raw), 0x4E4F534A)
    data = json.loads(raw[20 : 20 + size])
    assert data["extensionsUsed"] == [NAME]
    primitive = data["meshes"][0]["primitives"][0]
    assert primitive["mode"] == 0
    assert primitive["extensions"][NAME] == {
        "kernel": "ellipse",
        "colorSpace": "srgb_rec709_display",
    }
    names = [f"{NAME}:{end}" for end in ("ROTATION", "SCALE", "OPACITY", "SH_DEGREE_0_COEF_0")]
    names += [f"{NAME}:SH_DEGREE_1_COEF_{order}" for order in range(3)]
    assert list(primitive["attributes"]) == ["POSITION", "COLOR_0", *names]
    start = 20 + size + 8
    assert struct.unpack_from("<II", raw, 20 + size) == (len(raw) - start, 0x004E4942)
    x, y, z = struct.unpack_from("<3f", raw, start)
    assert (-x, -y, z) == tuple(splats.means[0].tolist())
    view = data["bufferViews"][data["accessors"][3]["bufferView"]]
    scale = struct.unpack_from("<3f", raw, start + view["byteOffset"])
    assert scale == pytest.approx(splats.log_scales[0].exp().tolist())


@pytest.mark.parametrize("as_matrix", [True, False])
def test_nodes_move_the_splats(as_matrix: bool):
    """Two nodes deep, with rotation, scale and translation; the harmonics turn with them."""
    splats = random_splats(6)
    rotation, quaternion = random_rotation(4), None
    outer = Similarity(3.0, rotation, torch.tensor([1.0, 2.0, 3.0]).double())
    inner = Similarity(1.0, torch.eye(3).double(), torch.tensor([0.5, 0, 0]).double())
    data = document(splats)
    if as_matrix:
        parent: dict[str, Any] = {"matrix": outer.matrix().T.reshape(-1).tolist()}
    else:
        # Half the angle about the axis, x y z w.
        angle = math.acos((float(rotation.trace()) - 1) / 2)
        skew = (rotation - rotation.T) / (2 * math.sin(angle))
        axis = torch.tensor([skew[2, 1], skew[0, 2], skew[1, 0]]) * math.sin(angle / 2)
        quaternion = [*axis.tolist(), math.cos(angle / 2)]
        parent = {"rotation": quaternion, "scale": [3, 3, 3], "translation": [1, 2, 3]}
    data["nodes"] = [{"mesh": 0, "translation": [0.5, 0, 0]}, {**parent, "children": [0]}]
    data["scenes"] = [{"nodes": [1]}]
    in_gltf = transform_splats(outer.compose(inner), flip_axes(splats, (-1, -1, 1)))
    assert_same_look(decode(data), flip_axes(in_gltf, (-1, -1, 1)))


def test_without_scenes_all_roots_are_shown():
    data = document(random_splats(2))
    del data["scenes"], data["scene"]
    data["nodes"] = [{"mesh": 0}, {"mesh": 0, "translation": [0, 0, 5]}]
    splats = decode(data)
    assert len(splats) == 4
    torch.testing.assert_close(splats.means[2:, 2], splats.means[:2, 2] + 5)


def replace_attribute(data: dict[str, Any], name: str, values: np.ndarray, kind: int) -> None:
    """Put integers (normalised) in place of an attribute's floats, in a buffer of their own."""
    index = data["meshes"][0]["primitives"][0]["attributes"][name]
    uri = "data:application/octet-stream;base64," + base64.b64encode(values.tobytes()).decode()
    data["buffers"].append({"byteLength": values.nbytes, "uri": uri})
    view = {"buffer": len(data["buffers"]) - 1, "byteLength": values.nbytes}
    data["bufferViews"].append(view)
    data["accessors"][index] |= {
        "bufferView": len(data["bufferViews"]) - 1,
        "componentType": kind,
        "normalized": True,
    }


def test_normalised_integers():
    splats = random_splats(1)
    data = document(splats)
    replace_attribute(data, f"{NAME}:ROTATION", np.array([[0, -32767, 0, 32767]], "<i2"), 5122)
    replace_attribute(data, f"{NAME}:SCALE", np.array([[255, 51, 102]], "u1"), 5121)
    replace_attribute(data, f"{NAME}:OPACITY", np.array([[13107]], "<u2"), 5123)
    got = decode(data)
    # (x, y, z, w) = (0, -1, 0, 1); half a turn about z negates x and y.
    assert got.quaternions.tolist() == [[1, 0, 1, 0]]
    torch.testing.assert_close(got.log_scales.exp(), torch.tensor([[1.0, 0.2, 0.4]]))
    torch.testing.assert_close(got.opacity_logits.sigmoid(), torch.tensor([0.2]))


def test_interleaved_attributes_with_a_stride():
    splats = random_splats(4)
    data = document(splats)
    raw = buffer_of(data)
    view = data["bufferViews"][0]
    packed = np.frombuffer(raw, "<f4", 12, view["byteOffset"]).reshape(4, 3)
    wide = np.zeros((4, 5), "<f4")
    wide[:, 1:4] = packed
    uri = "data:application/octet-stream;base64," + base64.b64encode(wide.tobytes()).decode()
    data["buffers"].append({"byteLength": wide.nbytes, "uri": uri})
    data["bufferViews"].append({"buffer": 1, "byteLength": wide.nbytes, "byteStride": 20})
    data["accessors"][0] |= {"bufferView": len(data["bufferViews"]) - 1, "byteOffset": 4}
    assert torch.equal(decode(data).means, splats.means)


def test_side_file(tmp_path: Path):
    splats = random_splats(20)
    data = document(splats)
    (tmp_path / "my data.bin").write_bytes(buffer_of(data))
    data["buffers"][0]["uri"] = "my%20data.bin"
    (tmp_path / "x.gltf").write_text(json.dumps(data))
    assert torch.equal(read_splats(tmp_path / "x.gltf").means, splats.means)


@pytest.mark.parametrize(
    "name",
    [
        *("../secret.bin", "%2e%2e/secret.bin", "/etc/passwd", "link.bin", ".."),
        *("file:///etc/passwd", "sub/x.bin", "a\\b.bin", ""),
    ],
)
def test_files_elsewhere_are_refused(tmp_path: Path, name: str):
    data = document(random_splats(1))
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(buffer_of(data))
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    data["buffers"][0]["uri"] = name
    (folder / "x.gltf").write_text(json.dumps(data))
    with pytest.raises(UserError, match="is not a file beside it"):
        read_splats(folder / "x.gltf")


def test_logarithmic_sizes_of_the_draft():
    splats = random_splats(2)
    data = document(splats)
    logs = np.ascontiguousarray(splats.log_scales.numpy(), dtype="<f4")
    replace_attribute(data, f"{NAME}:SCALE", logs, 5126)
    assert torch.equal(decode(data).log_scales, splats.log_scales)


def test_one_mesh_shown_again_and_again_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("diorama.splats.disk._ALWAYS_FINE", 10**6)
    data = document(random_splats(1000, degree=0))
    data["nodes"] = [{"mesh": 0}] * 20
    data["scenes"] = [{"nodes": list(range(20))}]
    with pytest.raises(UserError, match="which no scene does"):
        decode(data)


def test_degree_4_is_cut_off():
    data = document(random_splats(3, degree=3))
    assert decode(data).notes == ()
    attributes = data["meshes"][0]["primitives"][0]["attributes"]
    for order in range(9):
        attributes[f"{NAME}:SH_DEGREE_4_COEF_{order}"] = attributes[f"{NAME}:SH_DEGREE_3_COEF_0"]
    splats = decode(data)
    assert splats.degree == 3
    assert splats.notes == (
        "x.gltf: its colours have harmonics beyond degree 3, which are left out.",
    )
