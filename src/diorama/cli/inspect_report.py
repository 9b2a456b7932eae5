# SPDX-License-Identifier: Apache-2.0
"""The lines of `diorama inspect`: a label and a text for each thing worth knowing."""

import math
from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from diorama.cameras import CameraModel
from diorama.config import DataConfig
from diorama.data.image_store import GIGABYTE, bytes_per_pixel, has_loss_mask
from diorama.data.scene import Scene
from diorama.data.survey import ImageFacts

_MODELS = {
    CameraModel.PERSPECTIVE: "perspective",
    CameraModel.FISHEYE: "fisheye",
    CameraModel.EQUIRECTANGULAR: "equirectangular",
}


def report_lines(
    scene: Scene, facts: Sequence[ImageFacts], config: DataConfig
) -> list[tuple[str, str]]:
    """(label, text) for each line of the report."""
    lines = [("format", f"{scene.format}, read as {_kind(scene)}")]
    lines += [("" if k else "found", note) for k, note in enumerate(scene.notes)]
    lines += [
        ("images", _counts(scene)),
        ("", _decoded(scene, facts)),
        ("size", _sizes(scene)),
        ("content", _content(scene, facts)),
        ("lens", _lens(scene)),
        ("", _distortion(scene)),
        ("cameras", _placement(scene)),
        ("bounds", _bounds(scene)),
        ("depth", f"near {scene.bounds.near:.4g}, far {scene.bounds.far:.4g}"),
        ("points", f"{len(scene.points):,} sparse points" if scene.points else "none"),
        ("scale", _scale(scene)),
        ("memory", _memory(scene, config)),
    ]
    return [(label, text) for label, text in lines if text]


def _kind(scene: Scene) -> str:
    return {
        "object": "an object seen from around it",
        "forward-facing": "a scene seen from the front",
        "unbounded": "an open scene with a background",
    }[scene.kind]


def _counts(scene: Scene) -> str:
    splits = scene.splits
    held_out = ", ".join(f"{len(splits[name])} {name}" for name in ("val", "test") if splits[name])
    if splits["val"] == splits["test"] and splits["test"]:
        held_out = f"{len(splits['test'])} test (used as val too)"
    used = set().union(*splits.values())
    unused = len(scene.frames) - len(used)
    parts = [f"{len(scene.frames)}: {len(splits['train'])} train", held_out or "none held out"]
    return ", ".join(parts + ([f"{unused} unused"] if unused else []))


def _decoded(scene: Scene, facts: Sequence[ImageFacts]) -> str:
    if len(facts) == len(scene.frames):
        return "all were decoded and are intact"
    return f"{len(facts)} were decoded, evenly chosen, and are intact (--full decodes all)"


def _sizes(scene: Scene) -> str:
    sizes = Counter(tuple(size) for size in scene.cameras.size.tolist())
    (width, height), count = sizes.most_common(1)[0]
    text = f"{width} x {height}"
    raw = scene.frames[0].raw_size
    if len(sizes) == 1:
        return text if raw in ((width, height), (0, 0)) else f"{text} (on disk {raw[0]} x {raw[1]})"
    return f"{text} for {count} images, {len(sizes) - 1} other sizes"


def _content(scene: Scene, facts: Sequence[ImageFacts]) -> str:
    coverage = _mean([fact.coverage for fact in facts])
    parts = [f"alpha covers {coverage:.0%}" if scene.has_alpha else "no alpha"]
    masks = [fact.mask_coverage for fact in facts if fact.mask_coverage is not None]
    if masks:
        num = sum(has_loss_mask(scene, i) for i in range(len(scene.frames)))
        parts.append(f"{num} masks keep {_mean(masks):.0%}")
    depths = [fact.depth_coverage for fact in facts if fact.depth_coverage is not None]
    if depths:
        num = sum(frame.depth_path is not None for frame in scene.frames)
        parts.append(f"{num} depth maps know {_mean(depths):.0%}")
    light = [fact.brightness for fact in facts]
    parts.append(
        f"brightness {_mean(light):.2f} on average, from {min(light):.2f} to {max(light):.2f}"
    )
    if any(frame.time is not None for frame in scene.frames):
        parts.append("with times")
    return ", ".join(parts)


def _lens(scene: Scene) -> str:
    cameras = scene.cameras
    models = [_MODELS[CameraModel(m)] for m in cameras.model.unique().tolist()]
    text = " and ".join(models)
    is_lens = cameras.model != int(CameraModel.EQUIRECTANGULAR)
    if not bool(is_lens.any()):
        return text
    lens, size = cameras.intrinsics[is_lens].double(), cameras.size[is_lens].double()
    if bool((cameras.model == int(CameraModel.PERSPECTIVE)).all()):
        fov = 2 * torch.atan(size / 2 / lens[:, :2]) * (180 / math.pi)
        text += f", field of view {_span(fov[:, 0], '.1f')}° x {_span(fov[:, 1], '.1f')}°"
    text += f", focal length {_span(lens[:, 0], '.5g')} px"
    # Tenths of a pixel are noise of calibration, not another lens.
    lenses = torch.cat([(lens * 5).round(), cameras.distortion[is_lens].double()], dim=1)
    num_lenses = len(lenses.unique(dim=0))
    shift = float((lens[:, 2:] - size / 2).abs().max())
    text += ", centred" if shift < 0.5 else f", up to {shift:.1f} px off centre"
    return f"{text}; {'one lens for all' if num_lenses == 1 else f'{num_lenses} different lenses'}"


def _distortion(scene: Scene) -> str:
    """How many images are distorted, and the middle value of each coefficient."""
    cameras = scene.cameras
    is_bent = (cameras.distortion != 0).any(-1)
    if not bool(is_bent.any()):
        return "no distortion"
    bent = cameras[is_bent]
    names = ("k1", "k2", "k3", "k4", "p1", "p2", "d1", "d2", "d3")
    values = bent.distortion.double().median(0).values.tolist()
    terms = ", ".join(f"{n} {v:.3g}" for n, v in zip(names, values, strict=True) if v != 0)
    return f"distortion in {int(is_bent.sum())} images ({terms})"


def _placement(scene: Scene) -> str:
    centers = scene.cameras.world_from_camera[:, :, 3].double()
    distance = (centers - torch.tensor(scene.bounds.center).double()).norm(dim=-1)
    return (
        f"{float(distance.median()):.3g} from the scene's centre"
        f" ({float(distance.min()):.3g} to {float(distance.max()):.3g})"
    )


def _bounds(scene: Scene) -> str:
    bounds = scene.bounds
    center = ", ".join(f"{x:.3g}" for x in bounds.center)
    low = ", ".join(f"{x:.3g}" for x in bounds.aabb_min)
    high = ", ".join(f"{x:.3g}" for x in bounds.aabb_max)
    return f"sphere of radius {bounds.radius:.3g} at ({center}), box ({low}) to ({high})"


def _scale(scene: Scene) -> str:
    scale = float(scene.scene_from_user.scale)
    if scale == 1:
        return "lengths are those of the data set"
    return f"1 here is {1 / scale:.4g} in the data set's own unit"


def _memory(scene: Scene, config: DataConfig) -> str:
    train = scene.splits["train"]
    pixels = int(scene.cameras.size[list(train)].prod(-1).sum()) if train else 0
    num_bytes = pixels * bytes_per_pixel(scene, train)
    text = f"{num_bytes / 1e6:,.0f} MB of training images"
    if num_bytes <= config.cache_gb * GIGABYTE:
        return f"{text}, within the cache of {config.cache_gb:g} GB"
    return f"{text} stream through the cache of {config.cache_gb:g} GB (--data.cache-gb)"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _span(values: Tensor, form: str) -> str:
    low, high = format(float(values.min()), form), format(float(values.max()), form)
    return low if low == high else f"{low} to {high}"
