# SPDX-License-Identifier: Apache-2.0
"""Make camera paths, write one to a file, and fly it.

    python examples/03_camera_paths.py [FOLDER]

writes path.json and flight.mp4 and prints

    orbit: 12 poses, all 4.00 from the centre
    flight: 12 cameras through 3 keyframes, focal lengths from 53 to 90 pixels
    path.json flight.mp4
"""

import sys
from pathlib import Path

from diorama.cameras import Cameras, interpolate_cameras, look_at, orbit, path_to_json, read_path
from diorama.export.png import to_bytes
from diorama.export.video import write_video
from diorama.scenes import load_procedural

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "outputs/examples")
folder.mkdir(parents=True, exist_ok=True)

poses = orbit(center=(0, 0, 0), radius=4, elevation_degrees=25, num=12)
print(f"orbit: {len(poses)} poses, all {poses[:, :, 3].norm(dim=1).max():.2f} from the centre")

stops = [((4, 0, 1), 30), ((0, -4, 2), 50), ((-3, -2, 3), 40)]
keys = Cameras.cat([Cameras.from_fov(look_at(eye, (0, 0, 0)), fov, 48, 48) for eye, fov in stops])
flight = interpolate_cameras(keys, 12, loop=False)
focal = flight.intrinsics[:, 0]
print(f"flight: {len(flight)} cameras through {len(keys)} keyframes,", end=" ")
print(f"focal lengths from {focal.min():.0f} to {focal.max():.0f} pixels")

path_to_json(flight, folder / "path.json", fps=12)  # diorama render RUN --path path.json
path = read_path(folder / "path.json")
rgba = load_procedural("spheres").render_rgba(path.cameras, supersampling=1)
over_white = rgba[..., :3] * rgba[..., 3:] + 1 - rgba[..., 3:]
write_video(folder / "flight.mp4", (to_bytes(frame) for frame in over_white), fps=path.fps)
print("path.json flight.mp4")
