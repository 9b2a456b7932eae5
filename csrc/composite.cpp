// SPDX-License-Identifier: Apache-2.0
// Compositing, forward. A few rays at a time go through three loops: what samples absorb, products
// within vectors, products along rays. Each loop's steps depend little on one another, so that the
// processor can work on many of them at once; in one loop for everything they would wait in line.
#include "composite.h"

#include <algorithm>
#include <vector>

#include "absorption.h"
#include "composite_rays.h"
#include "denormals.h"
#include "parallel.h"

namespace diorama {
namespace {

// What a vector's worth of rays adds up to, each sum still spread over the lanes of vectors: lanes
// are summed for all of the rays at once.
template <class T, int kChannels>
struct RaySums {
  Channels<T, 1> opacity[kLanes<T>] = {};
  Channels<T, std::max(kChannels, 1)> values[kLanes<T>] = {};

  void write(const CompositeOutputs<T>& out, int64_t first, int64_t count) {
    store(out.opacity + first, sum_items<T, 1>(opacity)[0], count);
    if constexpr (kChannels != kAnyChannels) {
      const Channels<T, kChannels>& sums = sum_items<T, kChannels>(values);
      for_constants<kChannels>([&](auto j) {
        const int64_t done = j * kLanes<T>;
        store(out.values + first * kChannels + done, sums[j], count * kChannels - done);
      });
    }
  }
};

// total_c += sum_k w_k v_kc, for numbers of channels that have no code of their own.
template <class T>
void add_values(const T* weights, const T* values, int64_t count, int64_t channels, T* total) {
  for (int64_t k = 0; k < count; ++k)
    for (int64_t c = 0; c < channels; ++c) total[c] += weights[k] * values[k * channels + c];
}

// Where the transmittances behind samples `begin` .. lie.
template <class T>
struct Transmittances {
  T* data;
  int64_t begin;
  T* operator+(int64_t sample) const { return data + (sample - begin); }
};

// Room for transmittances that the caller does not want: it stays in the cache.
template <class T>
class Scratch {
 public:
  Transmittances<T> of(int64_t begin, int64_t end) {
    const size_t num_vectors = (end - begin + kLanes<T> - 1) / kLanes<T>;
    if (vectors_.size() < num_vectors) vectors_.resize(num_vectors);
    return {reinterpret_cast<T*>(vectors_.data()), begin};
  }

 private:
  struct alignas(kVectorBytes) Vector {
    T lanes[kLanes<T>];
  };
  std::vector<Vector> vectors_;
};

// Of each sample by itself: exp(-tau), left in the place of the transmittance, and 1 - exp(-tau),
// in that of the weight.
template <class T>
[[gnu::flatten]] void absorb(const PackedSamples<T>& in, Transmittances<T> behind,
                             const CompositeOutputs<T>& out, int64_t begin, int64_t end) {
  Stretches<T>(begin, end).front_to_back([&](int64_t i, auto num_vectors, auto count) {
    constexpr int kCount = decltype(num_vectors)::value;
    const Absorption<T, kCount> each = absorption(load_block<T, kCount>(in.sigma + i, count) *
                                                  load_block<T, kCount>(in.delta + i, count));
    store_block(behind + i, each.through, count);
    store_block(out.weights + i, each.absorbed, count);
  });
}

template <class T>
[[gnu::flatten]] void multiply_within_vectors(const PackedSamples<T>& in, Transmittances<T> behind,
                                              int64_t ray) {
  stretches_of(in, ray).front_to_back([&](int64_t i, auto num_vectors, auto count) {
    constexpr int kCount = decltype(num_vectors)::value;
    const auto each = load_block<T, kCount>(behind + i, count);
    store_block(behind + i, prefix_product(each), count);
  });
}

template <class T, int kChannels>
[[gnu::flatten]] void forward_ray(const PackedSamples<T>& in, Transmittances<T> behind,
                                  const CompositeOutputs<T>& out, int64_t ray, int64_t slot,
                                  RaySums<T, kChannels>& sums) {
  Channels<T, std::max(kChannels, 1)> values{};
  Vec<T> opacity{}, carried = broadcast(T(1));
  T* total = out.values + ray * in.num_channels;
  if constexpr (kChannels == kAnyChannels) std::fill_n(total, in.num_channels, T(0));

  stretches_of(in, ray).front_to_back([&](int64_t i, auto num_vectors, auto count) {
    constexpr int kCount = decltype(num_vectors)::value;
    using Vectors = Block<T, kCount>;
    const Vectors absorbed = load_block<T, kCount>(out.weights + i, count);
    Vectors front, through = load_block<T, kCount>(behind + i, count);
#pragma GCC unroll 16
    for (int u = 0; u < kCount; ++u) {
      through[u] *= carried;
      front[u] =
          permute<T>(through[u], carried, [](int k) { return k == 0 ? int(kLanes<T>) : k - 1; });
      carried = permute<T>(through[u], through[u], [](int) { return int(kLanes<T>) - 1; });
    }
    const Vectors weights = front * absorbed;
    store_block(behind + i, through, count);
    store_block(out.weights + i, weights, count);
    if constexpr (kChannels == kAnyChannels)
      add_values(out.weights + i, in.values + i * in.num_channels, kCount * count, in.num_channels,
                 total);
#pragma GCC unroll 16
    for (int u = 0; u < kCount; ++u) {
      opacity += weights[u];
      const T* source = in.values + (i + u * kLanes<T>)*kChannels;
      for_constants<kChannels>([&](auto j) {
        const int64_t done = j * kLanes<T>;
        values[j] +=
            spread<T, kChannels, j>(weights[u]) * load(source + done, count * kChannels - done);
      });
    }
  });
  sums.opacity[slot][0] = opacity;
  sums.values[slot] = values;
}

template <class T, int kChannels>
void forward_rays(const PackedSamples<T>& in, const CompositeOutputs<T>& out, int64_t begin,
                  int64_t end) {
  RaySums<T, kChannels> sums;
  Scratch<T> scratch;
  for (int64_t first = begin; first < end; first += kLanes<T>) {
    const int64_t count = std::min<int64_t>(kLanes<T>, end - first);
    const int64_t sample = in.begin_of(first), last = in.begin_of(first + count);
    const Transmittances<T> behind =
        out.transmittance ? Transmittances<T>{out.transmittance, 0} : scratch.of(sample, last);
    absorb(in, behind, out, sample, last);
    for (int64_t k = 0; k < count; ++k) multiply_within_vectors(in, behind, first + k);
    for (int64_t k = 0; k < count; ++k)
      forward_ray<T, kChannels>(in, behind, out, first + k, k, sums);
    sums.write(out, first, count);
  }
}

}  // namespace

template <class T>
void composite_forward(const PackedSamples<T>& samples, const CompositeOutputs<T>& out,
                       int num_threads) {
  with_channels(samples.num_channels, [&](auto channels) {
    parallel_for(samples.num_rays, kRaysPerPiece, num_threads, [&](int64_t begin, int64_t end) {
      const WithoutDenormals here;
      forward_rays<T, channels>(samples, out, begin, end);
    });
  });
}

template void composite_forward(const PackedSamples<float>&, const CompositeOutputs<float>&, int);
template void composite_forward(const PackedSamples<double>&, const CompositeOutputs<double>&, int);

}  // namespace diorama
