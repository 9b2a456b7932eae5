// SPDX-License-Identifier: Apache-2.0
// Compositing, backward: each ray from its last sample to its first.
#include <algorithm>

#include "composite_rays.h"
#include "parallel.h"

namespace diorama {
namespace {

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
    for_constants<kChannels>([&](auto j) {
      constexpr int kDone = decltype(j)::value * kLanes<T>;
      repeated[j] = permute<T>(low, high, [](int k) { return (kDone + k) % kChannels; });
    });
  }

  // sum_c g_c v_c for each sample of a vector.
  Vec<T> dot(const T* values, int64_t count) const {
    const Channels<T, kChannels> items = load_items<kChannels>(values, count);
    Vec<T> total{};
    for_constants<kChannels>([&](auto c) { total += grad[c] * items[c]; });
    return total;
  }

  // w g_c for each sample of a vector.
  void outer(Vec<T> weights, int64_t count, T* target) const {
    for_constants<kChannels>([&](auto j) {
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
    for (int64_t k = 0; k < count; ++k)
      for (int64_t c = 0; c < channels; ++c) total[k] += grad[c] * values[k * channels + c];
    return load(total);
  }

  void outer(Vec<T> weights, int64_t count, T* target) const {
    for (int64_t k = 0; k < count; ++k)
      for (int64_t c = 0; c < channels; ++c) target[k * channels + c] = weights[k] * grad[c];
  }
};

// With G_i = dL/dw_i in total:  dL/dtau_i = T_{i+1} G_i - sum_{j>i} w_j G_j.  The sum is carried
// from the back, never as total minus prefix: the last delta may be 1e10, and a rounding error
// times that would drown the gradient.
template <class T, int kChannels>
[[gnu::flatten]] void backward_ray(const PackedSamples<T>& in, const CompositeCotangents<T>& kept,
                                   const CompositeGradients<T>& out, int64_t ray) {
  const int64_t channels = kChannels == kAnyChannels ? in.num_channels : kChannels;
  const ValueGrad<T, kChannels> grad_value(kept.grad_values + ray * channels, channels);
  const T grad_opacity = kept.grad_opacity ? kept.grad_opacity[ray] : T(0);
  Vec<T> carried{};
  back_to_front<T>(in.begin_of(ray), in.begin_of(ray + 1), [&](int64_t i, auto count) {
    const Vec<T> weights = load(kept.weights + i, count);
    Vec<T> grad = grad_value.dot(in.values + i * channels, count) + grad_opacity;
    if (kept.grad_weights) grad += load(kept.grad_weights + i, count);

    const Vec<T> from_here = suffix_sum<T>(weights * grad) + carried;
    const Vec<T> behind = permute<T>(from_here, carried, [](int k) { return k + 1; });
    carried = permute<T>(from_here, from_here, [](int) { return 0; });
    const Vec<T> grad_tau = load(kept.transmittance + i, count) * grad - behind;
    if (out.sigma) store(out.sigma + i, grad_tau * load(in.delta + i, count), count);
    if (out.delta) store(out.delta + i, grad_tau * load(in.sigma + i, count), count);
    if (out.values) grad_value.outer(weights, count, out.values + i * channels);
  });
}

}  // namespace

template <class T>
void composite_backward(const PackedSamples<T>& samples, const CompositeCotangents<T>& in,
                        const CompositeGradients<T>& out, int num_threads) {
  with_channels(samples.num_channels, [&](auto channels) {
    const auto work = [&](int64_t begin, int64_t end) {
      for (int64_t ray = end; ray-- > begin;) backward_ray<T, channels>(samples, in, out, ray);
    };
    parallel_for(samples.num_rays, kRaysPerPiece, num_threads, work, Order::kBackward);
  });
}

template void composite_backward(const PackedSamples<float>&, const CompositeCotangents<float>&,
                                 const CompositeGradients<float>&, int);
template void composite_backward(const PackedSamples<double>&, const CompositeCotangents<double>&,
                                 const CompositeGradients<double>&, int);

}  // namespace diorama
