// SPDX-License-Identifier: Apache-2.0
// Compositing, forward: along one ray after the other, with scans within vectors of its samples.
#include "composite.h"

#include <algorithm>
#include <limits>

#include "absorption.h"
#include "composite_rays.h"
#include "parallel.h"
#include "simd_math.h"

namespace diorama {
namespace {

// What a vector's worth of rays adds up to, each sum still spread over the lanes of a vector: lanes
// are summed for all of the rays at once.
template <class T, int kChannels>
struct RaySums {
  Vec<T> opacity[kLanes<T>] = {};
  Vec<T> values[std::max(kChannels, 1)][kLanes<T>] = {};

  // interleaved: for each of a ray's vectors of interleaved channels the sum over its samples.
  void set_values(int64_t slot, const Vec<T> (&interleaved)[std::max(kChannels, 1)]) {
    for_constants<kChannels>([&](auto c) {
      Vec<T> channel{};
      for_constants<kChannels>([&](auto j) {
        channel = permute<T>(channel, channel + interleaved[j], [](int k) {
          const int place = decltype(j)::value * int(kLanes<T>) + k;
          return place % kChannels == decltype(c)::value ? int(kLanes<T>) + k : k;
        });
      });
      values[c][slot] = channel;
    });
  }

  void write(const CompositeOutputs<T>& out, int64_t first, int64_t count) const {
    store(out.opacity + first, sum_each<T, kLanes<T>>(opacity), count);
    if constexpr (kChannels != kAnyChannels) {
      Channels<T, kChannels> totals;
      for_constants<kChannels>([&](auto c) { totals[c] = sum_each<T, kLanes<T>>(values[c]); });
      store_items<kChannels>(out.values + first * kChannels, totals, count);
    }
  }
};

// total_c += sum_k w_k v_kc, for numbers of channels that have no code of their own.
template <class T>
void add_values(const T* weights, const T* values, int64_t count, int64_t channels, T* total) {
  for (int64_t k = 0; k < count; ++k)
    for (int64_t c = 0; c < channels; ++c) total[c] += weights[k] * values[k * channels + c];
}

template <class T, int kChannels>
void forward_ray(const PackedSamples<T>& in, const CompositeOutputs<T>& out, int64_t ray,
                 int64_t slot, RaySums<T, kChannels>& sums) {
  Vec<T> interleaved[std::max(kChannels, 1)] = {}, opacity{};
  Vec<T> transmittance = broadcast(T(1));
  T* total = out.values + ray * in.num_channels;
  if constexpr (kChannels == kAnyChannels) std::fill_n(total, in.num_channels, T(0));

  const Stretches<T> stretches(in.begin_of(ray), in.begin_of(ray + 1));
  stretches.front_to_back([&](int64_t i, auto num_vectors, auto count) {
    constexpr int kCount = decltype(num_vectors)::value;
    using Vectors = Block<T, kCount>;
    const Vectors tau =
        load_block<T, kCount>(in.sigma + i, count) * load_block<T, kCount>(in.delta + i, count);
    const Absorption<T, kCount> each = absorption(tau);
    const Vectors through = prefix_product(each.through);
    Vectors front, behind;
#pragma GCC unroll 16
    for (int u = 0; u < kCount; ++u) {
      const Vec<T> product = through[u] * transmittance;
      // Denormals would be a hundred times slower and change nothing that can be seen.
      const auto is_tiny = is_less<T>(product, broadcast(std::numeric_limits<T>::min()));
      behind[u] = select<T>(is_tiny, Vec<T>{}, product);
      front[u] = permute<T>(behind[u], transmittance,
                            [](int k) { return k == 0 ? int(kLanes<T>) : k - 1; });
      transmittance = permute<T>(behind[u], behind[u], [](int) { return int(kLanes<T>) - 1; });
    }
    const Vectors weights = front * each.absorbed;
    store_block(out.transmittance + i, behind, count);
    store_block(out.weights + i, weights, count);
    if constexpr (kChannels == kAnyChannels)
      add_values(out.weights + i, in.values + i * in.num_channels, kCount * count, in.num_channels,
                 total);
#pragma GCC unroll 16
    for (int u = 0; u < kCount; ++u) {
      opacity += weights[u];
      const T* values = in.values + (i + u * kLanes<T>)*kChannels;
      for_constants<kChannels>([&](auto j) {
        const int64_t done = j * kLanes<T>;
        interleaved[j] +=
            spread<T, kChannels, j>(weights[u]) * load(values + done, count * kChannels - done);
      });
    }
  });
  sums.opacity[slot] = opacity;
  sums.set_values(slot, interleaved);
}

template <class T, int kChannels>
void forward_rays(const PackedSamples<T>& in, const CompositeOutputs<T>& out, int64_t begin,
                  int64_t end) {
  RaySums<T, kChannels> sums;
  for (int64_t first = begin; first < end; first += kLanes<T>) {
    const int64_t count = std::min<int64_t>(kLanes<T>, end - first);
    for (int64_t k = 0; k < count; ++k) forward_ray<T, kChannels>(in, out, first + k, k, sums);
    sums.write(out, first, count);
  }
}

}  // namespace

template <class T>
void composite_forward(const PackedSamples<T>& samples, const CompositeOutputs<T>& out,
                       int num_threads) {
  with_channels(samples.num_channels, [&](auto channels) {
    parallel_for(samples.num_rays, kRaysPerPiece, num_threads, [&](int64_t begin, int64_t end) {
      forward_rays<T, channels>(samples, out, begin, end);
    });
  });
}

template void composite_forward(const PackedSamples<float>&, const CompositeOutputs<float>&, int);
template void composite_forward(const PackedSamples<double>&, const CompositeOutputs<double>&, int);

}  // namespace diorama
