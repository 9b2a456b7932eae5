# SPDX-License-Identifier: Apache-2.0
"""Videos: what was written is what plays."""

import av
import pytest
import torch

from diorama.errors import UserError
from diorama.export import video
from diorama.export.video import write_video


def ramp(count: int, height: int, width: int):
    for k in range(count):
        frame = torch.full((height, width, 3), 40 + 20 * k, dtype=torch.uint8)
        frame[:, : width // 2, 0] = 200
        yield frame


@pytest.mark.parametrize("size", [(48, 64), (33, 47), (1, 1)])
def test_frames_come_back(tmp_path, size):
    path = tmp_path / "new" / "a.mp4"
    codec = write_video(path, ramp(6, *size), fps=12)
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)]
        assert stream.average_rate == 12
        assert stream.codec_context.pix_fmt == "yuv420p"
    assert codec in ("libx264", "libopenh264", "mpeg4")
    assert len(frames) == 6
    assert frames[0].shape == (size[0] + size[0] % 2, size[1] + size[1] % 2, 3)
    for k, frame in enumerate(frames):
        assert abs(float(frame[..., 1].mean()) - (40 + 20 * k)) < 12
    assert [path.name for path in path.parent.iterdir()] == ["a.mp4"]


def test_without_x264_there_is_mpeg4(tmp_path, monkeypatch):
    monkeypatch.setattr(video, "_CODECS", ("no-such-codec", "mpeg4"))
    assert write_video(tmp_path / "a.mp4", ramp(3, 32, 32)) == "mpeg4"
    with av.open(str(tmp_path / "a.mp4")) as container:
        assert sum(1 for _ in container.decode(video=0)) == 3
    monkeypatch.setattr(video, "_CODECS", ("no-such-codec",))
    with pytest.raises(UserError, match="no video encoder"):
        write_video(tmp_path / "b.mp4", ramp(3, 32, 32))


def test_refusals_leave_nothing_behind(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"a\.mp4: the video cannot be written"):
        write_video(tmp_path / "file" / "a.mp4", ramp(2, 8, 8))
    with pytest.raises(ValueError, match="at least one frame"):
        write_video(tmp_path / "a.mp4", [])
    with pytest.raises(ValueError, match="fps"):
        write_video(tmp_path / "a.mp4", ramp(2, 8, 8), fps=0.0)
    uneven = [torch.zeros(8, 8, 3, dtype=torch.uint8), torch.zeros(8, 6, 3, dtype=torch.uint8)]
    with pytest.raises(ValueError, match="all frames must be"):
        write_video(tmp_path / "a.mp4", uneven)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
