# SPDX-License-Identifier: Apache-2.0
"""A Scene: posed photographs in one normalised frame, with bounds, splits and optional points."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from jaxtyping import Float, Int, UInt8
from torch import Tensor

from diorama.cameras import Cameras, Similarity
from diorama.errors import UserError

Vector = tuple[float, float, float]
Kind = Literal["object", "forward-facing", "unbounded"]
SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class Frame:
    """One photograph on disk; nothing of it is decoded here."""

    name: str
    """Unique, relative, with forward slashes; frames are sorted by it."""
    image_path: Path
    """The image file."""
    mask_path: Path | None = None
    """The mask file; `mask_is_alpha` says what it means."""
    depth_path: Path | None = None
    """The depth file (0 = unknown)."""
    depth_unit: float = 1e-3
    """A stored depth times this is a z-depth in the normalised frame."""
    time: float | None = None
    """Moment of the photograph in a dynamic scene, as the data set gives it."""
    mask_is_alpha: bool = False
    """True: the mask is the object's alpha. False: its black pixels carry no loss."""
    crop_radius: float | None = None
    """Pixels farther than this share of the width from the principal point carry no loss."""
    raw_size: tuple[int, int] = (0, 0)
    """Width and height of the file, after its EXIF rotation."""


@dataclass(frozen=True)
class SceneBounds:
    """Where to look, in the normalised frame."""

    center: Vector
    """Centre of the sphere of interest."""
    radius: float
    """Radius of the sphere of interest."""
    aabb_min: Vector
    """Lower corner of the box of interest."""
    aabb_max: Vector
    """Upper corner of the box of interest."""
    near: float
    """Nearest depth worth sampling."""
    far: float
    """Farthest depth worth sampling."""


@dataclass(frozen=True)
class PointCloud:
    """Sparse coloured points in the normalised frame."""

    xyz: Float[Tensor, "N 3"]
    rgb: UInt8[Tensor, "N 3"]
    sightings: Int[Tensor, "S 2"] | None = None
    """Which frame saw which point: indices of both; None if the data set does not tell."""

    def __len__(self) -> int:
        return len(self.xyz)


@dataclass(frozen=True)
class Scene:
    """Everything a method may know about its data set."""

    name: str
    """The data folder's name; runs are filed under it."""
    format: str
    """Which parser read it."""
    root: Path
    """The data folder."""
    frames: tuple[Frame, ...]
    """The photographs, sorted by name."""
    cameras: Cameras
    """One camera per frame, in the normalised frame, at the size training uses."""
    splits: dict[str, tuple[int, ...]]
    """Frame indices of train, val and test."""
    scene_from_user: Similarity
    """Maps the user's coordinates to the normalised frame; exporters apply its inverse."""
    bounds: SceneBounds
    """Sphere, box and depth range of interest."""
    points: PointCloud | None = None
    """Sparse points, where the data set has them."""
    kind: Kind = "object"
    """What was photographed, and from where."""
    has_alpha: bool = False
    """Whether images carry the object's alpha (in the file or as a mask)."""
    background: Vector | None = None
    """Conventional background colour in 0..1, where the format has one."""
    render_path: Cameras | None = None
    """The format's own camera path."""
    notes: tuple[str, ...] = field(default=())
    """What was found, and what a careful user should know, a sentence each."""

    has_files: bool = True
    """False for a description read back from a run folder: there are no images to open."""

    def to_plain(self) -> dict[str, Any]:
        """Lists, numbers and strings only: all that rendering needs, and no machine's paths."""
        bounds = self.bounds
        return {
            "schema_version": 1,
            "name": self.name,
            "format": self.format,
            "frames": [frame.name for frame in self.frames],
            "cameras": self.cameras.to_plain(),
            "splits": {name: list(indices) for name, indices in self.splits.items()},
            "scene_from_user": self.scene_from_user.to_plain(),
            "bounds": {
                "center": list(bounds.center),
                "radius": bounds.radius,
                "aabb_min": list(bounds.aabb_min),
                "aabb_max": list(bounds.aabb_max),
                "near": bounds.near,
                "far": bounds.far,
            },
            "kind": self.kind,
            "has_alpha": self.has_alpha,
            "background": None if self.background is None else list(self.background),
            "render_path": None if self.render_path is None else self.render_path.to_plain(),
            "notes": list(self.notes),
        }

    @staticmethod
    def from_plain(data: Any, where: str = "scene.json") -> "Scene":
        """The scene that `to_plain` wrote, without image files or points."""
        try:
            return _scene_from_plain(data)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise UserError(
                f"{where}: not a scene description ({type(error).__name__}: {error});"
                " restore the file from the run folder it came from."
            ) from error


def _scene_from_plain(data: Any) -> Scene:
    bounds = data["bounds"]
    path = data.get("render_path")
    background = data.get("background")
    cameras = Cameras.from_plain(data["cameras"])
    names = [str(name) for name in data["frames"]]
    if len(names) != len(cameras):
        raise ValueError(f"{len(names)} frames but {len(cameras)} cameras")
    splits = {name: tuple(int(i) for i in data["splits"][name]) for name in SPLITS}
    if any(not 0 <= i < len(names) for indices in splits.values() for i in indices):
        raise ValueError("a split names a frame that does not exist")
    if data["kind"] not in ("object", "forward-facing", "unbounded"):
        raise ValueError(f"kind {data['kind']!r}")
    return Scene(
        name=str(data["name"]),
        format=str(data["format"]),
        root=Path("."),
        has_files=False,
        frames=tuple(Frame(name=name, image_path=Path(name)) for name in names),
        cameras=cameras,
        splits=splits,
        scene_from_user=Similarity.from_plain(data["scene_from_user"]),
        bounds=SceneBounds(
            center=vector(bounds["center"]),
            radius=float(bounds["radius"]),
            aabb_min=vector(bounds["aabb_min"]),
            aabb_max=vector(bounds["aabb_max"]),
            near=float(bounds["near"]),
            far=float(bounds["far"]),
        ),
        kind=data["kind"],
        has_alpha=bool(data["has_alpha"]),
        background=None if background is None else vector(background),
        render_path=None if path is None else Cameras.from_plain(path),
        notes=tuple(str(note) for note in data.get("notes", [])),
    )


def vector(values: Any) -> Vector:
    """Three numbers as a tuple of floats."""
    x, y, z = (float(value) for value in values)
    return (x, y, z)
