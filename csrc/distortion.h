// SPDX-License-Identifier: Apache-2.0
// Distortion loss of packed rays in linear time; diorama/ops/distortion.py is its specification.
#pragma once

#include <cstdint>

namespace diorama {

// Samples of ray r are ray_offsets[r] .. ray_offsets[r + 1] - 1, front to back.
template <class T>
struct DistortionSamples {
  const T* weights;
  const T* t;
  const T* delta;
  const int64_t* ray_offsets;
  int64_t num_rays;
};

// Gradients of the inputs; null means not wanted.
template <class T>
struct DistortionGradients {
  T* weights;
  T* t;
  T* delta;
};

template <class T>
void distortion_forward(const DistortionSamples<T>& samples, T* loss, int num_threads);

template <class T>
void distortion_backward(const DistortionSamples<T>& samples, const T* grad_loss,
                         const DistortionGradients<T>& out, int num_threads);

}  // namespace diorama
