// SPDX-License-Identifier: Apache-2.0
// Emission-absorption quadrature along packed rays; diorama/ops/composite.py is its specification.
#pragma once

#include <cstdint>

namespace diorama {

// Samples of ray r are begin_of(r) .. begin_of(r + 1) - 1, front to back; values holds num_channels
// numbers for each sample. Without ray_offsets every ray has samples_per_ray samples.
template <class T>
struct PackedSamples {
  const T* sigma;
  const T* delta;
  const T* values;
  const int64_t* ray_offsets;
  int64_t samples_per_ray;
  int64_t num_rays;
  int64_t num_channels;

  int64_t begin_of(int64_t ray) const {
    return ray_offsets ? ray_offsets[ray] : ray * samples_per_ray;
  }
  int64_t length_of(int64_t ray) const { return begin_of(ray + 1) - begin_of(ray); }
};

// w_i, the transmittance behind sample i (which the backward pass needs; null means not wanted),
// sum_i w_i v_i, sum_i w_i.
template <class T>
struct CompositeOutputs {
  T* weights;
  T* transmittance;
  T* values;
  T* opacity;
};

// What the forward pass kept, and the gradients of its outputs; those of the weights and of the
// opacity may be null (zero).
template <class T>
struct CompositeCotangents {
  const T* weights;
  const T* transmittance;
  const T* grad_weights;
  const T* grad_values;
  const T* grad_opacity;
};

// Gradients of the inputs; null means not wanted.
template <class T>
struct CompositeGradients {
  T* sigma;
  T* delta;
  T* values;
};

template <class T>
void composite_forward(const PackedSamples<T>& samples, const CompositeOutputs<T>& out,
                       int num_threads);

template <class T>
void composite_backward(const PackedSamples<T>& samples, const CompositeCotangents<T>& in,
                        const CompositeGradients<T>& out, int num_threads);

}  // namespace diorama
