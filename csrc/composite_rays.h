// SPDX-License-Identifier: Apache-2.0
// How both passes of compositing walk along rays: a vector of samples at a time.
#pragma once

#include <algorithm>

#include "composite.h"
#include "interleave.h"
#include "simd_block.h"

namespace diorama {

constexpr int64_t kRaysPerPiece = 64;
constexpr int kAnyChannels = 0;

template <int64_t k>
using Constant = std::integral_constant<int64_t, k>;

// work(first sample, number of samples) for each vector of the samples begin .. end - 1. But for
// the last vector the number is a constant.
template <class T, class Work>
inline void front_to_back(int64_t begin, int64_t end, const Work& work) {
  int64_t i = begin;
  for (; i + kLanes<T> <= end; i += kLanes<T>) work(i, Constant<kLanes<T>>());
  if (i < end) work(i, end - i);
}

template <class T, class Work>
inline void back_to_front(int64_t begin, int64_t end, const Work& work) {
  int64_t i = begin + (end - begin) / kLanes<T> * kLanes<T>;
  if (i < end) work(i, end - i);
  while ((i -= kLanes<T>) >= begin) work(i, Constant<kLanes<T>>());
}

// Where in memory each of a few vectors begins.
template <int kCount>
struct Places {
  int64_t at[kCount];

  int64_t& operator[](int u) { return at[u]; }
  int64_t operator[](int u) const { return at[u]; }

  void move(int64_t by) {
#pragma GCC unroll 16
    for (int64_t& place : at) place += by;
  }
};

template <class T, int kCount, class Source>
inline Block<T, kCount> load_at(Source source, const Places<kCount>& places, int64_t count) {
  return block_of<T, kCount>([&](int u) { return load(source + places[u], count); });
}

template <class T, int kCount, class Target>
inline void store_at(Target target, const Places<kCount>& places, const Block<T, kCount>& block,
                     int64_t count) {
  for_constants<kCount>([&](auto u) { store(target + places[u], block[u], count); });
}

// Samples of a vector have kChannels * lanes values: kChannels vectors of interleaved channels.
// This is v for the j-th of them: lane k becomes the lane that the value's sample has in v.
template <class T, int kChannels, int j>
inline Vec<T> spread(Vec<T> v) {
  constexpr int kCount = kLanes<T>;
  return permute<T>(v, v, [](int k) { return (j * kCount + k) / kChannels; });
}

// Calls work with the number of channels as a compile-time constant where that pays.
template <class Work>
void with_channels(int64_t num_channels, const Work& work) {
  switch (num_channels) {
    case 1:
      return work(std::integral_constant<int, 1>());
    case 3:
      return work(std::integral_constant<int, 3>());
    case 4:
      return work(std::integral_constant<int, 4>());
    default:
      return work(std::integral_constant<int, kAnyChannels>());
  }
}

}  // namespace diorama
