// SPDX-License-Identifier: Apache-2.0
// Compositing: one ray after the other, a vector of its samples at a time, scans within vectors.
#include "composite.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "parallel.h"
#include "simd.h"

namespace diorama {
namespace {

constexpr int64_t kRaysPerPiece = 64;
constexpr int kAnyChannels = 0;

// Samples of a vector have kChannels * lanes values: kChannels vectors of interleaved channels.
// This is v for the j-th of them: lane k becomes the lane that the value's sample has in v.
template <class T, int kChannels, int j>
Vec<T> spread(Vec<T> v) {
  constexpr int kCount = kLanes<T>;
  return permute<T>(v, v, [](int k) { return (j * kCount + k) / kChannels; });
}

// Runs work(integral_constant j) for j = 0 .. kCount - 1.
template <int kCount, class Work>
void unrolled(const Work& work) {
  [&]<int... j>(std::integer_sequence<int, j...>) {
    (work(std::integral_constant<int, j>()), ...);
  }(std::make_integer_sequence<int, kCount>());
}

// The sums over samples of w v, one for each channel, while a ray is being walked.
template <class T, int kChannels>
struct ValueSum {
  Vec<T> interleaved[kChannels] = {};

  void add(Vec<T> weights, const T* values, int64_t count, int64_t, T*) {
    unrolled<kChannels>([&](auto j) {
      const int64_t done = j * kLanes<T>;
      interleaved[j] +=
          spread<T, kChannels, j>(weights) * load(values + done, count * kChannels - done);
    });
  }

  void finish(T* total) const {
    T flat[kChannels * kLanes<T>];
    std::memcpy(flat, interleaved, sizeof flat);
    for (int64_t size = kChannels * kLanes<T> / 2; size >= kChannels; size /= 2)
      for (int64_t k = 0; k < size; ++k) flat[k] += flat[k + size];
    std::copy_n(flat, kChannels, total);
  }
};

template <class T>
struct ValueSum<T, kAnyChannels> {
  void add(Vec<T> weights, const T* values, int64_t count, int64_t channels, T* total) {
    for (int64_t k = 0; k < count; ++k)
      for (int64_t c = 0; c < channels; ++c) total[c] += weights[k] * values[k * channels + c];
  }

  void finish(T*) const {}
};

template <class T, int kChannels>
void forward_ray(const PackedSamples<T>& in, const CompositeOutputs<T>& out, int64_t ray) {
  const int64_t channels = kChannels == kAnyChannels ? in.num_channels : kChannels;
  const int64_t end = in.ray_offsets[ray + 1];
  T* total = out.values + ray * channels;
  std::fill_n(total, channels, T(0));
  ValueSum<T, kChannels> value_sum;
  Vec<T> opacity{};
  T transmittance = T(1);
  for (int64_t i = in.ray_offsets[ray]; i < end; i += kLanes<T>) {
    const int64_t count = end - i;
    const ExpPair<T> e = exp_and_expm1<T>(-(load(in.sigma + i, count) * load(in.delta + i, count)));
    Vec<T> behind = prefix_product<T>(e.exp) * transmittance;
    // Denormals would be a hundred times slower and change nothing that can be seen.
    behind = behind < splat(std::numeric_limits<T>::min()) ? Vec<T>{} : behind;
    const Vec<T> front = permute<T>(behind, splat(transmittance),
                                    [](int k) { return k == 0 ? int(kLanes<T>) : k - 1; });
    const Vec<T> weights = front * -e.expm1;
    store(out.weights + i, weights, count);
    store(out.transmittance + i, behind, count);
    value_sum.add(weights, in.values + i * channels, std::min(count, kLanes<T>), channels, total);
    opacity += weights;
    transmittance = behind[kLanes<T> - 1];
  }
  value_sum.finish(total);
  out.opacity[ray] = sum<T>(opacity);
}

// The gradient g of a ray's value, ready to meet vectors of samples.
template <class T, int kChannels>
struct ValueGrad {
  T grad[kChannels];
  Vec<T> repeated[kChannels];  // g_0 g_1 .. g_0 g_1 .. along the interleaved channels.

  ValueGrad(const T* source, int64_t) {
    std::copy_n(source, kChannels, grad);
    // With two doubles to a vector, four channels take two vectors.
    const Vec<T> low = load(source, kChannels);
    const Vec<T> high = load(source + kLanes<T>, kChannels - kLanes<T>);
    unrolled<kChannels>([&](auto j) {
      constexpr int kDone = decltype(j)::value * kLanes<T>;
      repeated[j] = permute<T>(low, high, [](int k) { return (kDone + k) % kChannels; });
    });
  }

  // sum_c g_c v_c for each sample of a vector.
  Vec<T> dot(const T* values, int64_t count) const {
    Vec<T> interleaved[kChannels];
    unrolled<kChannels>([&](auto j) {
      const int64_t done = j * kLanes<T>;
      interleaved[j] = load(values + done, count * kChannels - done);
    });
    Vec<T> total{};
    unrolled<kChannels>([&](auto c) {
      Vec<T> channel = interleaved[0];
      // Take from each of the vectors in turn the lanes whose value is the wanted channel.
      unrolled<kChannels>([&](auto j) {
        constexpr int kCount = kLanes<T>, kShift = decltype(c)::value - decltype(j)::value * kCount;
        channel = permute<T>(channel, interleaved[j], [](int k) {
          const int at = k * kChannels + kShift;
          return at >= 0 && at < kCount ? kCount + at : k;
        });
      });
      total += grad[c] * channel;
    });
    return total;
  }

  // w g_c for each sample of a vector.
  void outer(Vec<T> weights, int64_t count, T* target) const {
    unrolled<kChannels>([&](auto j) {
      const int64_t done = j * kLanes<T>;
      store(target + done, spread<T, kChannels, j>(weights) * repeated[j],
            count * kChannels - done);
    });
  }
};

template <class T>
struct ValueGrad<T, kAnyChannels> {
  const T* grad;
  int64_t channels;

  ValueGrad(const T* source, int64_t num_channels) : grad(source), channels(num_channels) {}

  Vec<T> dot(const T* values, int64_t count) const {
    T total[kLanes<T>] = {};
    for (int64_t k = 0; k < std::min(count, kLanes<T>); ++k)
      for (int64_t c = 0; c < channels; ++c) total[k] += grad[c] * values[k * channels + c];
    return load(total);
  }

  void outer(Vec<T> weights, int64_t count, T* target) const {
    for (int64_t k = 0; k < std::min(count, kLanes<T>); ++k)
      for (int64_t c = 0; c < channels; ++c) target[k * channels + c] = weights[k] * grad[c];
  }
};

// With G_i = dL/dw_i in total:  dL/dtau_i = T_{i+1} G_i - sum_{j>i} w_j G_j.  The sum is carried
// from the back, never as total minus prefix: the last delta may be 1e10, and a rounding error
// times that would drown the gradient.
template <class T, int kChannels>
void backward_ray(const PackedSamples<T>& in, const CompositeCotangents<T>& kept,
                  const CompositeGradients<T>& out, int64_t ray) {
  const int64_t channels = kChannels == kAnyChannels ? in.num_channels : kChannels;
  const int64_t begin = in.ray_offsets[ray], end = in.ray_offsets[ray + 1];
  const ValueGrad<T, kChannels> grad_value(kept.grad_values + ray * channels, channels);
  T carried = T(0);
  const int64_t num_vectors = (end - begin + kLanes<T> - 1) / kLanes<T>;
  for (int64_t i = begin + (num_vectors - 1) * kLanes<T>; i >= begin; i -= kLanes<T>) {
    const int64_t count = end - i;
    const Vec<T> weights = load(kept.weights + i, count);
    Vec<T> grad = grad_value.dot(in.values + i * channels, count) + kept.grad_opacity[ray];
    if (kept.grad_weights) grad += load(kept.grad_weights + i, count);

    const Vec<T> from_here = suffix_sum<T>(weights * grad) + carried;
    const Vec<T> behind = permute<T>(from_here, splat(carried), [](int k) { return k + 1; });
    const Vec<T> grad_tau = load(kept.transmittance + i, count) * grad - behind;
    carried = from_here[0];
    if (out.sigma) store(out.sigma + i, grad_tau * load(in.delta + i, count), count);
    if (out.delta) store(out.delta + i, grad_tau * load(in.sigma + i, count), count);
    if (out.values) grad_value.outer(weights, count, out.values + i * channels);
  }
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

}  // namespace

template <class T>
void composite_forward(const PackedSamples<T>& samples, const CompositeOutputs<T>& out,
                       int num_threads) {
  with_channels(samples.num_channels, [&](auto channels) {
    parallel_for(samples.num_rays, kRaysPerPiece, num_threads, [&](int64_t begin, int64_t end) {
      for (int64_t ray = begin; ray < end; ++ray) forward_ray<T, channels>(samples, out, ray);
    });
  });
}

template <class T>
void composite_backward(const PackedSamples<T>& samples, const CompositeCotangents<T>& in,
                        const CompositeGradients<T>& out, int num_threads) {
  with_channels(samples.num_channels, [&](auto channels) {
    parallel_for(samples.num_rays, kRaysPerPiece, num_threads, [&](int64_t begin, int64_t end) {
      for (int64_t ray = begin; ray < end; ++ray) backward_ray<T, channels>(samples, in, out, ray);
    });
  });
}

template void composite_forward(const PackedSamples<float>&, const CompositeOutputs<float>&, int);
template void composite_forward(const PackedSamples<double>&, const CompositeOutputs<double>&, int);
template void composite_backward(const PackedSamples<float>&, const CompositeCotangents<float>&,
                                 const CompositeGradients<float>&, int);
template void composite_backward(const PackedSamples<double>&, const CompositeCotangents<double>&,
                                 const CompositeGradients<double>&, int);

}  // namespace diorama
