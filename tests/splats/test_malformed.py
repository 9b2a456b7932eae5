# SPDX-License-Identifier: Apache-2.0
"""Every damaged file gets one sentence that names it, quickly and without filling the memory."""

import resource
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diorama.errors import UserError
from diorama.splats import read_points, read_splats
from diorama.splats.files import decode_splats
from tests.splats.malformed_cases import CASES, COMPRESSED, GLB, PLY, SPLAT, SPZ, SPZ_2, TAICHI

WHOLE = {
    "x.ply": PLY,
    "y.ply": COMPRESSED,
    "x.splat": SPLAT,
    "x.spz": SPZ,
    "y.spz": SPZ_2,
    "x.parquet": TAICHI,
    "x.glb": GLB,
}


@pytest.mark.parametrize(("name", "raw", "words"), CASES, ids=[name for name, _, _ in CASES])
def test_one_sentence(tmp_path: Path, name: str, raw: bytes, words: str):
    path = tmp_path / name
    path.write_bytes(raw)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UserError) as refused:
        read_splats(path)
    sentence = str(refused.value)
    assert words in sentence
    assert sentence.startswith(str(tmp_path))
    assert sentence.endswith((".", "?"))
    assert "\n" not in sentence
    assert len(sentence) < 320 + len(str(path))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def check_reading(raw: bytes, name: str) -> None:
    sentence, splats = "", None
    try:
        splats = decode_splats(raw, Path(name))
    except UserError as error:
        sentence = str(error)
    if splats is None:
        assert sentence.startswith(name)
    else:
        assert len(splats) > 0
        assert bool(splats.means.isfinite().all())


@settings(max_examples=200)
@given(
    name=st.sampled_from(sorted(WHOLE)),
    place=st.floats(0, 1, exclude_max=True),
    junk=st.binary(min_size=1, max_size=8),
    cut=st.booleans(),
)
def test_random_damage_never_escapes(name: str, place: float, junk: bytes, cut: bool):
    """Any bytes anywhere: either splats come out, or the sentence does."""
    raw = bytearray(WHOLE[name])
    at = int(place * len(raw))
    raw[at : at + len(junk)] = junk
    data = bytes(raw[:at] if cut else raw)
    check_reading(data, name)


@settings(max_examples=100)
@given(name=st.sampled_from(sorted(WHOLE)), place=st.floats(0, 1), junk=st.binary(max_size=6))
def test_random_damage_near_the_beginning(name: str, place: float, junk: bytes):
    """Headers are where the sizes stand."""
    raw = bytearray(WHOLE[name])
    at = int(place * 120)
    raw[at : at + len(junk)] = junk
    check_reading(bytes(raw), name)


@pytest.mark.parametrize("name", ["x.ply", "x.parquet", "x.spz"])
def test_points_refuse_what_is_no_cloud(tmp_path: Path, name: str):
    (tmp_path / name).write_bytes(WHOLE[name][:50])
    with pytest.raises(UserError, match=name):
        read_points(tmp_path / name)
