# SPDX-License-Identifier: Apache-2.0
"""Compositing: kernel against torch reference against what memory bandwidth allows.

python benchmarks/bench_composite.py [rays samples channels]
"""

import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

from diorama import native
from diorama.ops.composite import Composite, composite_dense, composite_dense_reference

Op = Callable[[Tensor, Tensor, Tensor], Composite]


def milliseconds(work: Callable[[], object], seconds: float = 0.7) -> float:
    """The shortest time of a call: what the code needs when no neighbour is busy."""
    for _ in range(3):
        work()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - start))
    return min(times)


def copy_gigabytes_per_second(num_bytes: int) -> float:
    """Read plus write bandwidth of a copy whose two buffers have this size together."""
    source, target = torch.ones(num_bytes // 8), torch.empty(num_bytes // 8)
    return num_bytes / milliseconds(lambda: target.copy_(source)) / 1e6


def step(op: Op, inputs: list[Tensor], cotangent: Tensor) -> list[Tensor]:
    """Forward, and backward to sigma and values as in training, where delta is fixed."""
    result = op(*inputs)
    wanted = [t for t in inputs if t.requires_grad]
    return list(torch.autograd.grad([result.values], wanted, [cotangent]))


def main() -> None:
    num_rays, num_samples, num_channels = (int(a) for a in sys.argv[1:4] or (4096, 64, 3))
    shape = (num_rays, num_samples)
    inputs = [8 * torch.rand(shape), 0.1 * torch.rand(shape), torch.rand(*shape, num_channels)]
    inputs[0].requires_grad_()
    inputs[2].requires_grad_()
    cotangent = torch.rand(num_rays, num_channels)

    # Floats per sample. Forward: sigma, delta, values in, weight and transmittance out. Backward:
    # these two, delta and values in, gradients of sigma and values out.
    num_bytes = 4 * num_rays * num_samples * ((2 + num_channels + 2) + (3 + 2 * num_channels + 1))
    threads = torch.get_num_threads()
    print(f"composite_dense {num_rays} x {num_samples} x {num_channels} float32, {threads} threads")
    reference = milliseconds(lambda: step(composite_dense_reference, inputs, cotangent))
    print(f"{'reference':>12}  {reference:7.3f} ms forward + backward")
    for build in native.runnable_builds():
        native.module = native.load(build)
        kernel = milliseconds(lambda: step(composite_dense, inputs, cotangent))
        speed = num_bytes / kernel / 1e6
        gain = f"{reference / kernel:.1f} x, {speed:.1f} GB/s"
        print(f"{'kernel ' + build:>12}  {kernel:7.3f} ms, {gain}")
    for name, size in (("this size", num_bytes), ("256 MB", 256 << 20)):
        bandwidth = copy_gigabytes_per_second(size)
        bound = num_bytes / bandwidth / 1e6
        print(f"{'roofline':>12}  {bound:7.3f} ms at {bandwidth:.1f} GB/s, a copy of {name}")


if __name__ == "__main__":
    main()
