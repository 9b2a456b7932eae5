# SPDX-License-Identifier: Apache-2.0
"""Reading images, masks and depths: every kind of file, every kind of damage."""

import contextlib
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from diorama.data.images import image_size, read_depth, read_image, read_mask, resize_area
from diorama.data.resize import resize_nearest
from diorama.errors import UserError


def _chunk(tag: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))


def write_png(path: Path, values: np.ndarray, declared: tuple[int, int] | None = None) -> Path:
    """A 16-bit PNG of 1 to 4 channels, which Pillow cannot write."""
    height, width, channels = values.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    header = struct.pack(">IIBBBBB", *(declared or (width, height)), 16, kind, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks))
    return path


@pytest.fixture
def noise() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (6, 9, 4)).astype(np.uint8)


def test_rgb_and_rgba_come_back_as_written(tmp_path, noise):
    for channels in (3, 4):
        path = tmp_path / f"ünï code {channels}%03d.png"
        Image.fromarray(noise[..., :channels]).save(path)
        assert image_size(path) == (9, 6)
        assert torch.equal(read_image(path), torch.from_numpy(noise[..., :channels].copy()))


@pytest.mark.parametrize("mode", ["1", "L", "P", "CMYK", "YCbCr"])
def test_other_modes_become_rgb(tmp_path, noise, mode):
    image = Image.fromarray(noise[..., :3]).convert(mode)
    path = tmp_path / ("a.png" if mode in "1LP" else "a.tiff")
    image.save(path)
    expected = torch.from_numpy(np.array(image.convert("RGB")))
    assert torch.equal(read_image(path), expected)


def test_transparency_of_grey_and_palette_images_is_kept(tmp_path, noise):
    grey = Image.fromarray(noise[..., 2:], "LA")
    grey.save(tmp_path / "grey.png")
    assert torch.equal(read_image(tmp_path / "grey.png")[..., 3], torch.from_numpy(noise[..., 3]))
    palette = Image.fromarray(noise[..., :3]).quantize(8)
    palette.save(tmp_path / "palette.png", transparency=0)
    alpha = read_image(tmp_path / "palette.png")[..., 3].numpy()
    np.testing.assert_array_equal(alpha == 0, np.asarray(palette) == 0)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_sixteen_bits_are_rounded_not_cut(tmp_path, channels):
    values = np.random.default_rng(1).integers(0, 65536, (5, 7, channels)).astype(np.uint16)
    read = read_image(write_png(tmp_path / "deep %03d.png", values)).numpy()
    layout = {1: [0, 0, 0], 2: [0, 0, 0, 1], 3: [0, 1, 2], 4: [0, 1, 2, 3]}[channels]
    np.testing.assert_array_equal(read, np.round(values / 257)[..., layout])


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", [".jpg", ".png"])
def test_exif_orientation_is_applied(tmp_path, orientation, suffix):
    from PIL import ImageOps

    picture = np.zeros((16, 24, 3), np.uint8)
    picture[:8, :8] = 255
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"a{suffix}"
    Image.fromarray(picture).save(path, exif=exif, **({"quality": 100} if suffix == ".jpg" else {}))
    upright = ImageOps.exif_transpose(Image.open(path)).convert("RGB")
    assert image_size(path) == upright.size
    assert torch.equal(read_image(path), torch.from_numpy(np.array(upright)))


def test_broken_exif_counts_as_upright(tmp_path):
    path = tmp_path / "a.jpg"
    Image.new("RGB", (5, 4)).save(path, exif=b"Exif\0\0II*\0\xff\xff\xff\xff\x01\0")
    assert image_size(path) == (5, 4)
    assert read_image(path).shape == (4, 5, 3)


def _damaged(folder: Path, damage: str) -> Path:
    path = folder / "a.png"
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)
    Image.fromarray(noise).save(path)
    whole = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "loop":
        path.unlink()
        path.symlink_to(path)
    elif damage == "folder":
        path.unlink()
        path.mkdir()
    elif damage == "pipe":
        path.unlink()
        os.mkfifo(path)
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "text":
        path.write_text("not an image")
    elif damage == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif damage == "flipped":
        middle = len(whole) // 2
        path.write_bytes(whole[:middle] + bytes(64) + whole[middle + 64 :])
    elif damage == "bomb":
        write_png(path, np.zeros((1, 1, 3), np.uint16), declared=(100_000, 100_000))
    elif damage == "float":
        path = folder / "a.tiff"
        Image.fromarray(np.zeros((4, 4), np.float32)).save(path)
    return path


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ("missing", "no such image file"),
        ("loop", "no such image file"),
        ("folder", "no such image file"),
        ("pipe", "no such image file"),
        ("empty", "not an image that can be read"),
        ("text", "not an image that can be read"),
        ("truncated", "truncated or corrupt"),
        ("flipped", "truncated or corrupt"),
        ("bomb", "megapixels"),
        ("float", "8 or 16 bits"),
    ],
)
def test_damage_is_named(tmp_path, damage, sentence):
    path = _damaged(tmp_path, damage)
    for read in (read_image, read_mask):
        with pytest.raises(UserError, match=sentence) as caught:
            read(path)
        assert str(caught.value).startswith(str(path))
        assert "\n" not in str(caught.value)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_flipped_byte_is_read_or_named(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("fuzz")
    suffix = data.draw(st.sampled_from([".png", ".jpg", ".tiff", ".bmp", ".webp"]))
    path = folder / f"a{suffix}"
    Image.fromarray(np.arange(12 * 10 * 3, dtype=np.uint8).reshape(12, 10, 3)).save(path)
    content = bytearray(path.read_bytes())
    for _ in range(3):
        where = data.draw(st.integers(0, min(len(content), 160) - 1))
        content[where] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    for read in (read_image, image_size):
        # Any other exception fails the test.
        with contextlib.suppress(UserError):
            read(path)


def test_masks_of_ones_are_scaled_and_soft_ones_kept(tmp_path):
    ones = np.array([[0, 1], [1, 0]], np.uint8)
    soft = np.array([[0, 100], [255, 7]], np.uint8)
    for values, expected in ((ones, ones * 255), (soft, soft), (ones * 0, ones * 0)):
        for written in (values, np.repeat(values[..., None], 3, 2)):
            Image.fromarray(written).save(tmp_path / "m.png")
            np.testing.assert_array_equal(read_mask(tmp_path / "m.png"), expected)
    write_png(tmp_path / "m.png", ones.astype(np.uint16)[..., None] * 65535)
    np.testing.assert_array_equal(read_mask(tmp_path / "m.png"), ones * 255)
    cut_out = np.full((2, 2, 4), 9, np.uint8)
    cut_out[..., 3] = soft
    Image.fromarray(cut_out).save(tmp_path / "m.png")
    np.testing.assert_array_equal(read_mask(tmp_path / "m.png"), soft)


def test_depth_of_png_and_npy(tmp_path):
    millimetres = np.array([[0, 1000], [40000, 65535]], np.uint16)
    write_png(tmp_path / "d.png", millimetres[..., None])
    expected = torch.from_numpy(millimetres.astype(np.float32)) * 1e-3
    torch.testing.assert_close(read_depth(tmp_path / "d.png", 1e-3), expected)
    metres = np.array([[np.nan, -1.0], [2.0, np.inf]])
    np.save(tmp_path / "d.npy", metres)
    assert read_depth(tmp_path / "d.npy").tolist() == [[0, 0], [2, 0]]
    Image.fromarray(millimetres.astype(np.int32) * 2).save(tmp_path / "d.tiff")
    torch.testing.assert_close(read_depth(tmp_path / "d.tiff", 5e-4), expected)


def test_depth_never_unpickles_and_never_trusts_a_header(tmp_path):
    path = tmp_path / "d.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match=r"not a plain \.npy array"):
        read_depth(path)
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000, 1000000), }\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    with pytest.raises(UserError, match=r"d\.npy"):
        read_depth(path)
    np.save(path, np.zeros((2, 3, 4)))
    with pytest.raises(UserError, match="one number per pixel"):
        read_depth(path)
    with pytest.raises(UserError, match="no such depth file"):
        read_depth(tmp_path / "none.npy")


@given(st.integers(1, 13), st.integers(1, 13), st.integers(1, 13), st.integers(1, 13))
@settings(max_examples=60, deadline=None)
def test_area_mean_is_that_of_a_common_refinement(height, width, new_height, new_width):
    image = torch.randint(0, 256, (height, width, 3), dtype=torch.uint8)
    fine = image.double().repeat_interleave(new_height, 0).repeat_interleave(new_width, 1)
    expected = fine.view(new_height, height, new_width, width, 3).mean((1, 3))
    resized = resize_area(image, new_width, new_height)
    assert (resized.double() - expected).abs().max() <= 0.5 + 1e-4


def test_transparent_pixels_do_not_bleed():
    image = torch.tensor([[[200, 100, 50, 255], [0, 0, 0, 0]]], dtype=torch.uint8)
    assert resize_area(image, 1, 1).tolist() == [[[200, 100, 50, 128]]]
    assert resize_area(image[:, 1:].repeat(2, 2, 1), 1, 1).tolist() == [[[0, 0, 0, 0]]]


def test_mask_and_depth_sizes():
    mask = torch.tensor([[0, 255], [255, 255]], dtype=torch.uint8)
    assert resize_area(mask, 1, 1).tolist() == [[191]]
    depth = torch.arange(12.0).view(3, 4)
    assert resize_nearest(depth, 2, 3).tolist() == [[1, 3], [5, 7], [9, 11]]
    with pytest.raises(ValueError, match="at least 1"):
        resize_area(mask, 0, 1)
