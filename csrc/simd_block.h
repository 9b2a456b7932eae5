// SPDX-License-Identifier: Apache-2.0
// A few vectors side by side. Each operation goes through all of them before the next one begins:
// the vectors do not wait for one another, and the processor does not wait for one vector.
#pragma once

#include "simd_masks.h"

namespace diorama {

template <class T, int kCount>
struct Block {
  Vec<T> at[kCount];

  Vec<T>& operator[](int u) { return at[u]; }
  const Vec<T>& operator[](int u) const { return at[u]; }
};

// work(0), work(1) .. side by side.
template <class T, int kCount, class Work>
inline Block<T, kCount> block_of(const Work& work) {
  Block<T, kCount> block;
#pragma GCC unroll 16
  for (int u = 0; u < kCount; ++u) block[u] = work(u);
  return block;
}

template <class T, int kCount, class Work>
inline Block<T, kCount> map(const Block<T, kCount>& a, const Work& work) {
  return block_of<T, kCount>([&](int u) { return work(a[u]); });
}

template <class T, int kCount>
inline Block<T, kCount> operator+(const Block<T, kCount>& a, const Block<T, kCount>& b) {
  return block_of<T, kCount>([&](int u) { return a[u] + b[u]; });
}

template <class T, int kCount>
inline Block<T, kCount> operator-(const Block<T, kCount>& a, const Block<T, kCount>& b) {
  return block_of<T, kCount>([&](int u) { return a[u] - b[u]; });
}

template <class T, int kCount>
inline Block<T, kCount> operator*(const Block<T, kCount>& a, const Block<T, kCount>& b) {
  return block_of<T, kCount>([&](int u) { return a[u] * b[u]; });
}

template <class T, int kCount>
inline Block<T, kCount> operator+(const Block<T, kCount>& a, T b) {
  return map(a, [&](Vec<T> v) { return v + b; });
}

template <class T, int kCount>
inline Block<T, kCount> operator-(const Block<T, kCount>& a, T b) {
  return map(a, [&](Vec<T> v) { return v - b; });
}

template <class T, int kCount>
inline Block<T, kCount> operator-(T a, const Block<T, kCount>& b) {
  return map(b, [&](Vec<T> v) { return a - v; });
}

template <class T, int kCount>
inline Block<T, kCount> operator*(const Block<T, kCount>& a, T b) {
  return map(a, [&](Vec<T> v) { return v * b; });
}

// In each vector by itself, lane k becomes the product of lanes 0 .. k.
template <class T, int kCount, int kStep = 1>
inline Block<T, kCount> prefix_product(const Block<T, kCount>& v) {
  if constexpr (kStep >= kLanes<T>) {
    return v;
  } else {
    constexpr auto up = [](int k) { return k < kStep ? int(kLanes<T>) : k - kStep; };
    const Block<T, kCount> shifted =
        map(v, [&](Vec<T> lanes) { return permute<T>(lanes, broadcast(T(1)), up); });
    return prefix_product<T, kCount, 2 * kStep>(v * shifted);
  }
}

// In each vector by itself, lane k becomes the sum of lanes k .. last.
template <class T, int kCount, int kStep = 1>
inline Block<T, kCount> suffix_sum(const Block<T, kCount>& v) {
  if constexpr (kStep >= kLanes<T>) {
    return v;
  } else {
    constexpr auto down = [](int k) { return k + kStep; };  // Past the end lie the zeros.
    const Block<T, kCount> shifted =
        map(v, [&](Vec<T> lanes) { return permute<T>(lanes, Vec<T>{}, down); });
    return suffix_sum<T, kCount, 2 * kStep>(v + shifted);
  }
}

}  // namespace diorama
