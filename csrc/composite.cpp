// SPDX-License-Identifier: Apache-2.0
// Compositing, forward. A few rays at a time go through two loops: what samples absorb, and
// products along rays. In one loop for everything each step would wait for the one before, and the
// processor would look ahead to too few of them.
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
  Vec<T> carried[kLanes<T>];  // The transmittance so far, in all lanes.
  Channels<T, 1> opacity[kLanes<T>];
  Channels<T, std::max(kChannels, 1)> values[kLanes<T>];

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
  const auto absorb_at = [&](const auto& at, int64_t count) {
    const auto each = absorption(load_at<T>(in.sigma, at, count) * load_at<T>(in.delta, at, count));
    store_at(behind, at, each.through, count);
    store_at(out.weights, at, each.absorbed, count);
  };
  constexpr int64_t kCount = kLanes<T>;
  int64_t i = begin;
  for (; i + 2 * kCount <= end; i += 2 * kCount) absorb_at(Places<2>{i, i + kCount}, kCount);
  front_to_back<T>(i, end, [&](int64_t k, auto count) { absorb_at(Places<1>{k}, count); });
}

// What a few rays have met on their way.
template <class T, int kChannels, int kRays>
struct Met {
  Block<T, kRays> carried, opacity, values[std::max(kChannels, 1)];

  Met() {
    carried = block_of<T, kRays>([](int) { return broadcast(T(1)); });
    opacity = block_of<T, kRays>([](int) { return Vec<T>{}; });
    for_constants<kChannels>([&](auto j) { values[j] = opacity; });
  }

  Met(const RaySums<T, kChannels>& sums, int64_t slot) {
    carried = block_of<T, kRays>([&](int u) { return sums.carried[slot + u]; });
    opacity = block_of<T, kRays>([&](int u) { return sums.opacity[slot + u][0]; });
    for_constants<kChannels>([&](auto j) {
      values[j] = block_of<T, kRays>([&](int u) { return sums.values[slot + u][j]; });
    });
  }

  void keep(RaySums<T, kChannels>& sums, int64_t slot) const {
    for_constants<kRays>([&](auto u) {
      sums.carried[slot + u] = carried[u];
      sums.opacity[slot + u][0] = opacity[u];
      for_constants<kChannels>([&](auto j) { sums.values[slot + u][j] = values[j][u]; });
    });
  }
};

// The next vector of each of a few rays, of which `ray` is the first.
template <class T, int kChannels, int kRays>
[[gnu::always_inline]] inline void advance(const PackedSamples<T>& in, Transmittances<T> behind,
                                           const CompositeOutputs<T>& out, int64_t ray,
                                           const Places<kRays>& at, int64_t count,
                                           Met<T, kChannels, kRays>& met) {
  using Vectors = Block<T, kRays>;
  const Vectors through = prefix_product(load_at<T>(behind, at, count)) * met.carried;
  const Vectors front = block_of<T, kRays>([&](int u) {
    return permute<T>(through[u], met.carried[u],
                      [](int k) { return k == 0 ? int(kLanes<T>) : k - 1; });
  });
  met.carried = map(
      through, [](Vec<T> v) { return permute<T>(v, v, [](int) { return int(kLanes<T>) - 1; }); });
  const Vectors weights = front * load_at<T>(out.weights, at, count);
  met.opacity = met.opacity + weights;
  store_at(out.weights, at, weights, count);
  if (out.transmittance) store_at(out.transmittance, at, through, count);

  for_constants<kRays>([&](auto u) {
    const T* source = in.values + at[u] * in.num_channels;
    if constexpr (kChannels == kAnyChannels)
      add_values(out.weights + at[u], source, count, in.num_channels,
                 out.values + (ray + u) * in.num_channels);
    for_constants<kChannels>([&](auto j) {
      const int64_t done = j * kLanes<T>;
      met.values[j][u] +=
          spread<T, kChannels, j>(weights[u]) * load(source + done, count * kChannels - done);
    });
  });
}

// Along a ray each vector waits for the one before; another ray's work fills the time.
constexpr int kRaysAtOnce = 2;

// A ray, from sample `begin` on.
template <class T, int kChannels>
[[gnu::flatten, gnu::noinline]] void finish_ray(const PackedSamples<T>& in,
                                                Transmittances<T> behind,
                                                const CompositeOutputs<T>& out, int64_t ray,
                                                int64_t slot, int64_t begin,
                                                RaySums<T, kChannels>& sums) {
  Met<T, kChannels, 1> met(sums, slot);
  front_to_back<T>(begin, in.begin_of(ray + 1), [&](int64_t i, auto count) {
    advance(in, behind, out, ray, Places<1>{i}, count, met);
  });
  met.keep(sums, slot);
}

// Neighbouring rays: side by side as far as all of them have whole vectors, then one by one. What a
// ray gives does not depend on its neighbours.
template <class T, int kChannels, int kRays>
[[gnu::flatten]] void forward_group(const PackedSamples<T>& in, Transmittances<T> behind,
                                    const CompositeOutputs<T>& out, int64_t ray, int64_t slot,
                                    RaySums<T, kChannels>& sums) {
  Places<kRays> at;
  int64_t shortest = in.length_of(ray);
  for (int u = 0; u < kRays; ++u) {
    at[u] = in.begin_of(ray + u);
    shortest = std::min(shortest, in.length_of(ray + u));
  }
  Met<T, kChannels, kRays> met;
  for (int64_t left = shortest; left >= kLanes<T>; left -= kLanes<T>, at.move(kLanes<T>))
    advance(in, behind, out, ray, at, kLanes<T>, met);
  met.keep(sums, slot);
  for (int u = 0; u < kRays; ++u)
    if (at[u] < in.begin_of(ray + u + 1))
      finish_ray(in, behind, out, ray + u, slot + u, at[u], sums);
}

template <class T, int kChannels>
void forward_rays(const PackedSamples<T>& in, const CompositeOutputs<T>& out, int64_t begin,
                  int64_t end) {
  RaySums<T, kChannels> sums;
  Scratch<T> scratch;
  if constexpr (kChannels == kAnyChannels)
    std::fill_n(out.values + begin * in.num_channels, (end - begin) * in.num_channels, T(0));
  for (int64_t first = begin; first < end; first += kLanes<T>) {
    const int64_t count = std::min<int64_t>(kLanes<T>, end - first);
    const int64_t sample = in.begin_of(first), last = in.begin_of(first + count);
    const Transmittances<T> behind =
        out.transmittance ? Transmittances<T>{out.transmittance, 0} : scratch.of(sample, last);
    absorb(in, behind, out, sample, last);
    int64_t k = 0;
    for (; k + kRaysAtOnce <= count; k += kRaysAtOnce)
      forward_group<T, kChannels, kRaysAtOnce>(in, behind, out, first + k, k, sums);
    for (; k < count; ++k) forward_group<T, kChannels, 1>(in, behind, out, first + k, k, sums);
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
