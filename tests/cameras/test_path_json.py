# SPDX-License-Identifier: Apache-2.0
"""Path files: round trips, the two schemas, and one sentence for every malformed one."""

import json

import pytest
import torch

from diorama.cameras import (
    CameraModel,
    Cameras,
    Similarity,
    flip_yz,
    look_at,
    orbit,
    path_from_json,
    path_to_json,
    read_path,
)
from diorama.errors import UserError
from tests.cameras.strategies import mixed_cameras, random_poses

EYE = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
OWN = {"width": 64, "height": 48, "fov": 50, "cameras": [{"eye": [4, 0, 2], "target": [0, 0, 0]}]}
NERFSTUDIO = {
    "render_width": 64,
    "render_height": 48,
    "camera_path": [
        {"camera_to_world": [*EYE[0], *EYE[1], *EYE[2], 0, 0, 0, 1], "fov": 50, "aspect": 1.33}
    ],
}


def write(folder, plain):
    path = folder / "path.json"
    path.write_text(plain if isinstance(plain, str) else json.dumps(plain))
    return path


def test_round_trip_in_the_users_coordinates(tmp_path):
    pose = random_poses(1, 1)[0]
    scene_from_user = Similarity(0.3, pose[:, :3], pose[:, 3])
    cameras = mixed_cameras(0)
    path_to_json(cameras, tmp_path / "path.json", fps=30, scene_from_user=scene_from_user)
    again = read_path(tmp_path / "path.json", scene_from_user)
    assert again.fps == 30
    for name in ("world_from_camera", "intrinsics", "distortion"):
        a, b = getattr(again.cameras, name), getattr(cameras, name).float()
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5)
    assert torch.equal(again.cameras.model, cameras.model)
    assert torch.equal(again.cameras.size, cameras.size)
    # On disk it is where the user has it, not where the scene has it.
    on_disk = path_from_json(tmp_path / "path.json").world_from_camera[:, :, 3]
    expected = scene_from_user.inverse().apply(cameras.world_from_camera[:, :, 3])
    torch.testing.assert_close(on_disk, expected.float())
    assert [entry.name for entry in tmp_path.iterdir()] == ["path.json"]


def test_a_hand_written_path(tmp_path):
    keys = [{"eye": [4, 0, 2], "target": [0, 0, 0]}, {"world_from_camera": EYE, "fov": 30}]
    plain = OWN | {"cameras": keys, "num_frames": 9}
    cameras = path_from_json(write(tmp_path, plain))
    assert len(cameras) == 9
    torch.testing.assert_close(cameras.world_from_camera[0], look_at((4, 0, 2), (0, 0, 0)))
    torch.testing.assert_close(cameras.world_from_camera[8], torch.eye(3, 4))
    torch.testing.assert_close(
        cameras.intrinsics[8], Cameras.from_fov(torch.eye(3, 4), 30, 64, 48).intrinsics[0]
    )
    assert len(path_from_json(write(tmp_path, plain | {"loop": True}))) == 9


def test_nerfstudio_path(tmp_path):
    pose = orbit((0, 0, 0), 2.0, 20.0, 3)[1]
    matrix = torch.cat([flip_yz(pose), torch.tensor([[0.0, 0, 0, 1]])]).flatten().tolist()
    frame = {"camera_to_world": matrix, "fov": 50, "aspect": 64 / 48}
    plain = NERFSTUDIO | {"camera_path": [frame], "fps": 12, "seconds": 4}
    path = read_path(write(tmp_path, plain))
    assert path.fps == 12
    torch.testing.assert_close(path.cameras.world_from_camera[0], pose)
    expected = Cameras.from_fov(pose, 50, 64, 48)
    torch.testing.assert_close(path.cameras.intrinsics, expected.intrinsics)
    panorama = path_from_json(write(tmp_path, plain | {"camera_type": "equirectangular"}))
    assert int(panorama.model[0]) == CameraModel.EQUIRECTANGULAR


def own(**entry):
    return OWN | {"cameras": [entry]}


MALFORMED = {
    "not JSON": ("{'width': 3", "not a JSON camera path"),
    "empty": ("", "not a JSON camera path"),
    "NaN": ('{"width": NaN}', "NaN is not a number"),
    "deep": ("[" * 100_000, "not a JSON camera path"),
    "list": ("[]", "not a list"),
    "no cameras": ({"width": 3}, "neither 'cameras' nor"),
    "cameras no list": (OWN | {"cameras": 3}, "'cameras' must be a list of objects"),
    "cameras of numbers": (OWN | {"cameras": [3]}, "'cameras' must be a list of objects"),
    "zero cameras": (OWN | {"cameras": []}, "must list 1 to"),
    "no width": ({"height": 4, "fov": 5, "cameras": [{}]}, "'width' is missing"),
    "huge width": (OWN | {"width": 1e9}, "'width' must be a number from 1 to"),
    "half width": (OWN | {"width": 3.5}, "'width' must be a whole number"),
    "true width": (OWN | {"width": True}, "'width' must be a number"),
    "fov 180": (OWN | {"fov": 180}, "'fov' must be a number"),
    "fps text": (OWN | {"fps": "fast"}, "'fps' must be a number"),
    "many frames": (OWN | {"num_frames": 10**12}, "'num_frames' must be a number"),
    "loop text": (OWN | {"num_frames": 3, "loop": "yes"}, "'loop' must be true or false"),
    "no pose": (own(), r"cameras\[0\]: 'eye' is missing"),
    "no target": (own(eye=[1, 2, 3]), "'target' is missing"),
    "short eye": (own(eye=[1, 2], target=[0, 0, 0]), "'eye' must be 3 finite numbers"),
    "eye on target": (own(eye=[0, 0, 0], target=[0, 0, 0]), "must differ"),
    "matrix 2x4": (own(world_from_camera=EYE[:2]), "must be 3 x 4 or 4 x 4 finite numbers"),
    "ragged": (own(world_from_camera=[[1], [1, 2]]), "must be 3 x 4 or 4 x 4"),
    "infinite": ('{"width":9,"height":9,"fov":9,"cameras":[{"eye":[1e999,0,0],"target":[0,0,0]}]}',
                 "'eye' must be 3 finite numbers"),
    "huge integer": (own(eye=[10**400, 0, 0], target=[0, 0, 0]), "'eye' must be 3 finite"),
    "scaled": (own(world_from_camera=[[2 * x for x in row] for row in EYE]), "must be a rotation"),
    "mirrored": (own(world_from_camera=[[-1, 0, 0, 0], *EYE[1:]]), "must be a rotation"),
    "intrinsics": (own(world_from_camera=EYE, intrinsics=[1, 2]), "'intrinsics' must be 4 finite"),
    "focal": (own(world_from_camera=EYE, intrinsics=[0, 1, 1, 1]), "positive focal lengths"),
    "distortion": (own(world_from_camera=EYE, intrinsics=[1] * 4, distortion=[0]), "9 finite"),
    "model": (own(world_from_camera=EYE, intrinsics=[1] * 4, model="LENS"), "'model' must be one"),
    "nerfstudio size": ({"camera_path": []}, "'render_width' is missing"),
    "nerfstudio type": (NERFSTUDIO | {"camera_type": "vr180"}, "'camera_type' must be one of"),
    "nerfstudio frame": (NERFSTUDIO | {"camera_path": [{"fov": 3}]}, "'camera_to_world' is"),
}  # fmt: skip


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_paths_get_one_sentence(case, tmp_path):
    plain, message = MALFORMED[case]
    path = write(tmp_path, plain)
    with pytest.raises(UserError, match=message) as caught:
        read_path(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_unreadable_paths_get_one_sentence(tmp_path):
    with pytest.raises(UserError, match="cannot read the camera path \\(No such file"):
        read_path(tmp_path / "missing.json")
    with pytest.raises(UserError, match="cannot read the camera path \\(Is a directory"):
        read_path(tmp_path)
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(UserError, match="not a JSON camera path"):
        read_path(tmp_path / "binary.json")
    with pytest.raises(UserError, match="cannot write the camera path"):
        path_to_json(mixed_cameras(0), tmp_path / "no" / "folder.json")
    with pytest.raises(ValueError, match="same size for all"):
        path_to_json(mixed_cameras(0)[[]], tmp_path / "empty.json")
