// SPDX-License-Identifier: Apache-2.0
// How both passes of compositing walk along rays: a block of vectors of samples at a time.
#pragma once

#include "composite.h"
#include "interleave.h"
#include "simd_block.h"

namespace diorama {

constexpr int64_t kRaysPerPiece = 64;
constexpr int kAnyChannels = 0;

// Vectors in a block: enough that one's latency is filled with the others' work, and no more than
// registers hold. Measured for each width.
constexpr int kVectorsAtOnce = kVectorBytes == 64 ? 2 : 4;

template <int64_t k>
using Constant = std::integral_constant<int64_t, k>;

// The samples begin .. end - 1 of a ray are taken in blocks of several vectors, then in single
// vectors, then the rest. work(first sample, vectors, samples per vector) does one such stretch;
// its last two arguments are constants but for the rest's number of samples.
template <class T>
struct Stretches {
  static constexpr int64_t kBlock = kVectorsAtOnce * kLanes<T>;
  int64_t begin, blocks_end, vectors_end, end;

  Stretches(int64_t first, int64_t last)
      : begin(first),
        blocks_end(first + (last - first) / kBlock * kBlock),
        vectors_end(first + (last - first) / kLanes<T> * kLanes<T>),
        end(last) {}

  template <class Work>
  void front_to_back(const Work& work) const {
    for (int64_t i = begin; i < blocks_end; i += kBlock)
      work(i, Constant<kVectorsAtOnce>(), Constant<kLanes<T>>());
    for (int64_t i = blocks_end; i < vectors_end; i += kLanes<T>)
      work(i, Constant<1>(), Constant<kLanes<T>>());
    if (vectors_end < end) work(vectors_end, Constant<1>(), end - vectors_end);
  }

  template <class Work>
  void back_to_front(const Work& work) const {
    if (vectors_end < end) work(vectors_end, Constant<1>(), end - vectors_end);
    for (int64_t i = vectors_end - kLanes<T>; i >= blocks_end; i -= kLanes<T>)
      work(i, Constant<1>(), Constant<kLanes<T>>());
    for (int64_t i = blocks_end - kBlock; i >= begin; i -= kBlock)
      work(i, Constant<kVectorsAtOnce>(), Constant<kLanes<T>>());
  }
};

template <class T>
inline Stretches<T> stretches_of(const PackedSamples<T>& samples, int64_t ray) {
  return Stretches<T>(samples.begin_of(ray), samples.begin_of(ray + 1));
}

template <class T, int kCount>
inline Block<T, kCount> load_block(const T* source, int64_t count) {
  return block_of<T, kCount>([&](int u) { return load(source + u * kLanes<T>, count); });
}

template <class T, int kCount>
inline void store_block(T* target, const Block<T, kCount>& block, int64_t count) {
#pragma GCC unroll 16
  for (int u = 0; u < kCount; ++u) store(target + u * kLanes<T>, block[u], count);
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
