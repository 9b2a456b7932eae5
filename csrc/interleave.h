// SPDX-License-Identifier: Apache-2.0
// Moves items of a few numbers each between memory, where they lie one item after the other, and
// vectors, one for each of an item's numbers.
#pragma once

#include "simd.h"

namespace diorama {

template <class T, int kChannels>
struct Channels {
  Vec<T> at[kChannels];

  Vec<T>& operator[](int c) { return at[c]; }
  const Vec<T>& operator[](int c) const { return at[c]; }
};

// Runs work(integral_constant j) for j = 0 .. kCount - 1.
template <int kCount, class Work>
inline void for_constants(const Work& work) {
  [&]<int... j>(std::integer_sequence<int, j...>) {
    (work(std::integral_constant<int, j>()), ...);
  }(std::make_integer_sequence<int, kCount>());
}

// The first `count` items at `source`, zeros behind them; lane k is item k.
template <int kChannels, class T>
inline Channels<T, kChannels> load_items(const T* source, int64_t count) {
  constexpr int kCount = kLanes<T>;
  Channels<T, kChannels> raw, items;
  for_constants<kChannels>(
      [&](auto j) { raw[j] = load(source + j * kCount, count * kChannels - j * kCount); });
  for_constants<kChannels>([&](auto c) {
    items[c] = raw[0];
    // Take from one vector after the other the lanes that hold number c of an item.
    for_constants<kChannels - 1>([&](auto j) {
      items[c] = permute<T>(items[c], raw[j + 1], [](int k) {
        constexpr int kCount = kLanes<T>, kVector = decltype(j)::value + 1;
        const int place = k * kChannels + decltype(c)::value;
        if (place / kCount == kVector) return kCount + place % kCount;
        return kVector == 1 && place < kCount ? place : k;
      });
    });
  });
  return items;
}

template <int kChannels, class T>
inline void store_items(T* target, const Channels<T, kChannels>& items, int64_t count) {
  for_constants<kChannels>([&](auto j) {
    Vec<T> mixed = items[0];
    for_constants<kChannels - 1>([&](auto c) {
      mixed = permute<T>(mixed, items[c + 1], [](int k) {
        constexpr int kCount = kLanes<T>, kChannel = decltype(c)::value + 1;
        const int place = decltype(j)::value * kCount + k;
        if (place % kChannels == kChannel) return kCount + place / kChannels;
        return kChannel == 1 && place % kChannels == 0 ? place / kChannels : k;
      });
    });
    store(target + j * kLanes<T>, mixed, count * kChannels - j * kLanes<T>);
  });
}

}  // namespace diorama
