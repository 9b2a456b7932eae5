// SPDX-License-Identifier: Apache-2.0
// Real spherical harmonics; diorama/ops/spherical_harmonics.py is their specification.
#pragma once

#include <cstdint>

namespace diorama {

constexpr int kMaxSphericalBands = 5;

// values[i num_bands^2 ..] of directions[3 i ..], with num_bands from 1 to kMaxSphericalBands.
template <class T>
void spherical_harmonics_forward(const T* directions, int64_t count, int num_bands, T* values,
                                 int num_threads);

template <class T>
void spherical_harmonics_backward(const T* directions, const T* grad_values, int64_t count,
                                  int num_bands, T* grad_directions, int num_threads);

}  // namespace diorama
