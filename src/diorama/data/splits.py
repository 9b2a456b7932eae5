# SPDX-License-Identifier: Apache-2.0
"""Which images train and which are held out."""

import math

from diorama.config.data import DataConfig
from diorama.data.scene import SPLITS
from diorama.errors import UserError

Splits = dict[str, tuple[int, ...]]


def make_splits(
    count: int, own: dict[str, list[int]] | None, config: DataConfig
) -> tuple[Splits, list[str]]:
    """train, val and test as sorted indices into `count` name-sorted frames, and notes.

    `own` is the data set's own split, in its own order (`test_skip` counts in that order).
    """
    rule, notes = config.split, []
    if rule == "auto":
        rule = "files" if own else "every"
    if rule == "files":
        if not own:
            raise UserError(
                "--data.split files: this data set lists no split; use every or fraction."
            )
        lists = _completed(own, count)
    elif rule == "every":
        lists = _every(count, config.eval_every)
    elif rule == "fraction":
        lists = _fraction(count, config.train_fraction)
    else:
        lists = {name: list(range(count)) for name in SPLITS}
    if config.test_skip < 1:
        raise UserError(f"--data.test-skip must be at least 1, got {config.test_skip}.")
    for name in ("val", "test"):
        lists[name] = lists[name][:: config.test_skip]
    if not lists["train"]:
        if count > 1:
            raise UserError(
                f"The split rule {rule!r} leaves no image to train on; see --data.split."
            )
        lists["train"] = [0]
        notes.append("There is one image only; it is trained on and tested on.")
    if not lists["test"]:
        notes.append("No image is held out for testing.")
    return {name: tuple(sorted(set(lists[name]))) for name in SPLITS}, notes


def _every(count: int, step: int) -> dict[str, list[int]]:
    """Index % step == 0 is held out, index 0 included; val equals test."""
    if step < 1:
        raise UserError(f"--data.eval-every must be at least 1, got {step}.")
    held_out = list(range(0, count, step))
    train = [i for i in range(count) if i % step]
    return {"train": train, "val": held_out, "test": held_out}


def _fraction(count: int, fraction: float) -> dict[str, list[int]]:
    """ceil(fraction * count) training images, evenly spaced from first to last; val is test."""
    if not 0 < fraction <= 1:
        raise UserError(f"--data.train-fraction must lie in 0..1, got {fraction:g}.")
    num_train = math.ceil(fraction * count)
    steps = max(num_train - 1, 1)
    chosen = {round(k * (count - 1) / steps) for k in range(num_train)}
    held_out = [i for i in range(count) if i not in chosen]
    return {"train": sorted(chosen), "val": held_out, "test": held_out}


def _completed(own: dict[str, list[int]], count: int) -> dict[str, list[int]]:
    """The data set's lists with the missing ones filled in: val is test, train is the rest."""
    lists = {name: list(own.get(name, [])) for name in SPLITS}
    if not lists["train"] or not (lists["test"] or lists["val"]):
        used = {i for indices in lists.values() for i in indices}
        rest = [i for i in range(count) if i not in used]
        lists["test" if lists["train"] else "train"] = rest
    lists["test"] = lists["test"] or list(lists["val"])
    lists["val"] = lists["val"] or list(lists["test"])
    return lists
