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

// work(0), work(1) .. side by side. Not a loop: the compiler then knows from the start which vector
// is meant, and keeps blocks in registers.
template <class T, int kCount, class Work>
inline Block<T, kCount> block_of(const Work& work) {
  return [&]<int... u>(std::integer_sequence<int, u...>) {
    return Block<T, kCount>{work(u)...};
  }(std::make_integer_sequence<int, kCount>());
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

// In each vector by itself, lane k becomes the product of lanes 0 .. k. Lanes go in pairs, fours
// ..: the upper half of each is multiplied by the last of the lower half. Unlike a shift by so many
// lanes, the first of these steps stay within a quarter of the vector, which is twice as fast.
template <class T, int kCount, int kStep = 1>
inline Block<T, kCount> prefix_product(const Block<T, kCount>& v) {
  if constexpr (kStep >= kLanes<T>) {
    return v;
  } else {
    constexpr auto is_upper = lanes_where<T>([](int k) { return (k & kStep) != 0; });
    constexpr auto last_lower = [](int k) { return (k & -2 * kStep) + kStep - 1; };
    return prefix_product<T, kCount, 2 * kStep>(map(v, [&](Vec<T> lanes) {
      return select<T>(is_upper, lanes * permute<T>(lanes, lanes, last_lower), lanes);
    }));
  }
}

}  // namespace diorama
