// SPDX-License-Identifier: Apache-2.0
// What vectors do not have as instructions of their own, one lane after the other.
#pragma once

#include <cmath>

#include "simd.h"

namespace diorama {

// f of every lane, for functions that vectors do not have.
template <class T, class Function>
inline Vec<T> map_lanes(Vec<T> v, const Function& f) {
  alignas(kVectorBytes) T lanes[kLanes<T>];
  store(lanes, v);
  for (int64_t k = 0; k < kLanes<T>; ++k) lanes[k] = f(lanes[k]);
  return load(lanes);
}

template <class T>
inline Vec<T> square_root(Vec<T> v) {
  return map_lanes<T>(v, [](T x) { return std::sqrt(x); });
}

// Whether any lane of a comparison holds.
template <class T>
inline bool any(Vec<SignedBits<T>> mask) {
  SignedBits<T> bits = 0;
  for (int64_t k = 0; k < kLanes<T>; ++k) bits |= mask[k];
  return bits != 0;
}

}  // namespace diorama
