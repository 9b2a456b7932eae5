// SPDX-License-Identifier: Apache-2.0
// Colours of Gaussians by view direction; diorama/ops/sh_colors.py is their specification.
#pragma once

#include <cstdint>

namespace diorama {

constexpr int kMaxColorBands = 4;

// Each Gaussian has one coefficient of three channels in dc and num_rest in rest, of which the
// first num_bands^2 - 1 count. They are two arrays because they are two parameters of a training.
template <class T>
struct ColorInputs {
  const T* dc;
  const T* rest;
  const T* means;
  const T* camera_center;
  const bool* visible;
  int64_t count;
  int64_t num_rest;
  int num_bands;
  bool is_sigmoid;
};

// Gradients of the inputs; null means not wanted.
template <class T>
struct ColorGradients {
  T* dc;
  T* rest;
  T* means;
  T* camera_center;
};

template <class T>
void sh_colors_forward(const ColorInputs<T>& in, T* colors, int num_threads);

// `colors` are those of the forward pass.
template <class T>
void sh_colors_backward(const ColorInputs<T>& in, const T* colors, const T* grad_colors,
                        const ColorGradients<T>& out, int num_threads);

}  // namespace diorama
