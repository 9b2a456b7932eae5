// SPDX-License-Identifier: Apache-2.0
// Which samples of packed rays can be seen; diorama/ops/cull.py is its specification.
#pragma once

#include <cstdint>

namespace diorama {

template <class T>
struct CullSamples {
  const T* sigma;
  const T* delta;
  const int64_t* ray_offsets;
  int64_t num_rays;
};

// T >= min_transmittance as a bound on the optical depth in front, alpha >= min_alpha as one on the
// sample's own: no exponential is needed.
template <class T>
struct CullBounds {
  T max_depth;  // -log(min_transmittance)
  T min_tau;    // -log(1 - min_alpha)
};

// First pass: new_offsets (num_rays + 1).
template <class T>
void cull_count(const CullSamples<T>& samples, const CullBounds<T>& bounds, int64_t* new_offsets,
                int num_threads);

// Second pass: the indices of what is kept; a ray never writes outside its part of them.
template <class T>
void cull_write(const CullSamples<T>& samples, const CullBounds<T>& bounds,
                const int64_t* new_offsets, int64_t* kept, int num_threads);

}  // namespace diorama
