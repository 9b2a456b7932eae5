# SPDX-License-Identifier: Apache-2.0
"""The positional encoding: order, values and width that published weights rely on."""

import math

import torch

from diorama.nn.frequency import frequency_encoding, frequency_width


def test_raw_input_then_sine_and_cosine_per_octave_without_pi():
    x = torch.tensor([[0.1, -0.2, 0.3]])
    expected = [0.1, -0.2, 0.3]
    for octave in range(2):
        for wave in (math.sin, math.cos):
            expected += [wave(2**octave * v) for v in (0.1, -0.2, 0.3)]
    torch.testing.assert_close(frequency_encoding(x, 2)[0], torch.tensor(expected))


def test_the_papers_widths():
    assert frequency_width(3, 10) == 63
    assert frequency_width(3, 4) == 27
    assert frequency_encoding(torch.zeros(5, 3), 10).shape == (5, 63)


def test_no_octaves_is_the_identity():
    x = torch.rand(4, 3)
    assert torch.equal(frequency_encoding(x, 0), x)
