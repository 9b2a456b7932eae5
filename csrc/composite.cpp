// SPDX-License-Identifier: Apache-2.0
// Compositing in two steps: exponentials for a block of samples at once, then a scan along rays.
#include "composite.h"

#include <algorithm>

#include "parallel.h"
#include "simd.h"

namespace diorama {
namespace {

constexpr int64_t kRaysPerPiece = 64;
constexpr int64_t kBlock = 256;  // Samples whose exponentials are computed together.
constexpr int kAnyChannels = -1;

// What passes a sample, exp(-tau), and what it stops, 1 - exp(-tau), for tau = sigma * delta.
template <class T>
void attenuate(const T* DIORAMA_RESTRICT sigma, const T* DIORAMA_RESTRICT delta, int64_t count,
               T* DIORAMA_RESTRICT passed, T* DIORAMA_RESTRICT stopped) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const ExpPair<T> e = exp_and_expm1(-(sigma[i] * delta[i]));
    passed[i] = e.exp;
    stopped[i] = -e.expm1;
  }
}

template <class T, int kChannels>
void forward_rays(const PackedSamples<T>& in, const CompositeOutputs<T>& out, int64_t first_ray,
                  int64_t last_ray) {
  const int64_t channels = kChannels == kAnyChannels ? in.num_channels : kChannels;
  const int64_t last_sample = in.ray_offsets[last_ray];
  T passed[kBlock], stopped[kBlock];
  int64_t block_begin = in.ray_offsets[first_ray];
  int64_t block_end = block_begin;
  int64_t i = block_begin;

  for (int64_t ray = first_ray; ray < last_ray; ++ray) {
    const int64_t ray_end = in.ray_offsets[ray + 1];
    T local[kChannels == kAnyChannels ? 1 : kChannels];
    T* sum = kChannels == kAnyChannels ? out.values + ray * channels : local;
    std::fill_n(sum, channels, T(0));
    T transmittance = T(1), opacity = T(0);
    while (i < ray_end) {
      if (i == block_end) {
        block_begin = i;
        block_end = std::min(i + kBlock, last_sample);
        attenuate(in.sigma + i, in.delta + i, block_end - i, passed, stopped);
      }
      for (const int64_t end = std::min(ray_end, block_end); i < end; ++i) {
        const T weight = transmittance * stopped[i - block_begin];
        transmittance *= passed[i - block_begin];
        // Denormals would be a hundred times slower and change nothing that can be seen.
        if (transmittance < std::numeric_limits<T>::min()) transmittance = T(0);
        out.weights[i] = weight;
        out.transmittance[i] = transmittance;
        opacity += weight;
        const T* value = in.values + i * channels;
        for (int64_t c = 0; c < channels; ++c) sum[c] = fmadd(weight, value[c], sum[c]);
      }
    }
    out.opacity[ray] = opacity;
    if constexpr (kChannels != kAnyChannels) std::copy_n(local, channels, out.values + ray * channels);
  }
}

// With G_i = dL/dw_i in total:  dL/dtau_i = T_{i+1} G_i - sum_{j>i} w_j G_j.  The sum is carried
// from the back, never as total minus prefix: the last delta may be 1e10, and a rounding error
// times that would drown the gradient.
template <class T, int kChannels>
void backward_rays(const PackedSamples<T>& in, const CompositeCotangents<T>& kept,
                   const CompositeGradients<T>& out, int64_t first_ray, int64_t last_ray) {
  const int64_t channels = kChannels == kAnyChannels ? in.num_channels : kChannels;
  for (int64_t ray = first_ray; ray < last_ray; ++ray) {
    const T grad_opacity = kept.grad_opacity ? kept.grad_opacity[ray] : T(0);
    const T* grad_value = kept.grad_values ? kept.grad_values + ray * channels : nullptr;
    T behind = T(0);
    for (int64_t i = in.ray_offsets[ray + 1] - 1; i >= in.ray_offsets[ray]; --i) {
      const T weight = kept.weights[i];
      T grad = grad_opacity;
      if (kept.grad_weights) grad += kept.grad_weights[i];
      if (grad_value) {
        const T* value = in.values + i * channels;
        for (int64_t c = 0; c < channels; ++c) grad = fmadd(grad_value[c], value[c], grad);
      }
      const T grad_tau = kept.transmittance[i] * grad - behind;
      behind = fmadd(weight, grad, behind);
      if (out.sigma) out.sigma[i] = grad_tau * in.delta[i];
      if (out.delta) out.delta[i] = grad_tau * in.sigma[i];
      if (out.values) {
        T* grad_sample = out.values + i * channels;
        for (int64_t c = 0; c < channels; ++c)
          grad_sample[c] = grad_value ? weight * grad_value[c] : T(0);
      }
    }
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
      forward_rays<T, channels>(samples, out, begin, end);
    });
  });
}

template <class T>
void composite_backward(const PackedSamples<T>& samples, const CompositeCotangents<T>& in,
                        const CompositeGradients<T>& out, int num_threads) {
  with_channels(samples.num_channels, [&](auto channels) {
    parallel_for(samples.num_rays, kRaysPerPiece, num_threads, [&](int64_t begin, int64_t end) {
      backward_rays<T, channels>(samples, in, out, begin, end);
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
