# SPDX-License-Identifier: Apache-2.0
"""Which file of an image is read and at which size it is used: downscaled copies and area sizes."""

import re
from pathlib import Path
from typing import NamedTuple

from diorama.data.draft import DraftFrame
from diorama.data.images import image_size
from diorama.data.paths import IMAGE_SUFFIXES, is_file, is_folder, list_folder

_FACTOR = re.compile(r"^(.*?)_(\d{1,3})$")


class Sized(NamedTuple):
    """One image: the file to read, that file's size, the full-size image's, and the one used."""

    path: Path
    raw: tuple[int, int]
    full: tuple[int, int]
    target: tuple[int, int]


def sized_images(
    frames: list[DraftFrame], root: Path, downscale: float
) -> tuple[list[Sized], list[str]]:
    """The files to read for a downscale of the images on disk, and notes.

    A folder `images_N` beside `images` serves when it holds every image at the wanted size;
    otherwise the full images are read and reduced by area.
    """
    full = [image_size(frame.image_path) for frame in frames]
    if downscale == 1:
        return [Sized(f.image_path, s, s, s) for f, s in zip(frames, full, strict=True)], []
    targets = [(_divided(w, downscale), _divided(h, downscale)) for w, h in full]
    copies = [downscaled_copy(frame.image_path, root, downscale) for frame in frames]
    if all(copies):
        found = [(path, image_size(path)) for path in copies if path]
        # Shrinking tools round differently; the file's own size then is the one to use.
        if all(_is_near(s, t) for (_, s), t in zip(found, targets, strict=True)):
            folder = found[0][0].parent.relative_to(root).as_posix()
            sized = [Sized(p, s, f, s) for (p, s), f in zip(found, full, strict=True)]
            return sized, [f"Images come from {folder}, already {downscale:g} times smaller."]
    sized = [
        Sized(frame.image_path, size, size, target)
        for frame, size, target in zip(frames, full, targets, strict=True)
    ]
    return sized, []


def within_side(sized: list[Sized], max_side: int | None) -> tuple[list[Sized], list[str]]:
    """The images, used at a size whose longer side is at most `max_side`, and a note."""
    if max_side is None or all(max(size.target) <= max_side for size in sized):
        return sized, []
    result = []
    for size in sized:
        factor = max(1.0, max(size.target) / max_side)
        width, height = (_divided(side, factor) for side in size.target)
        result.append(size._replace(target=(width, height)))
    largest = max(max(size.target) for size in sized)
    return result, [f"Images are reduced from {largest} to {max_side} pixels (--data.max-side)."]


def downscaled_copy(path: Path, root: Path, downscale: float) -> Path | None:
    """The file of the same name (or stem) in the folder whose name carries the factor."""
    if downscale != int(downscale) or not path.is_relative_to(root):
        return None
    first, *rest = path.relative_to(root).parts
    if not rest:
        return None
    match = _FACTOR.match(first)
    stem, factor = (match[1], int(match[2])) if match else (first, 1)
    copy = root.joinpath(f"{stem}_{factor * int(downscale)}", *rest)
    if is_file(copy):
        return copy
    others = (copy.with_suffix(suffix) for suffix in sorted(IMAGE_SUFFIXES))
    return next((other for other in others if is_file(other)), None)


def image_folders(root: Path) -> list[tuple[int, Path]]:
    """The folders images, images_2, ... under `root` with their factors, smallest first."""
    found = []
    for folder in list_folder(root):
        if not is_folder(folder):
            continue
        match = _FACTOR.match(folder.name)
        stem, factor = (match[1], int(match[2])) if match else (folder.name, 1)
        if stem.lower() in ("images", "image", "rgb", "input") and factor > 0:
            found.append((factor, folder))
    return sorted(found)


def _divided(side: int, downscale: float) -> int:
    return max(1, int(side / downscale + 0.5))


def _is_near(size: tuple[int, int], target: tuple[int, int]) -> bool:
    return abs(size[0] - target[0]) <= 1 and abs(size[1] - target[1]) <= 1
