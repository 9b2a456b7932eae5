// SPDX-License-Identifier: Apache-2.0
// Structural similarity of two images; diorama/ops/ssim.py is its specification.
#pragma once

#include <array>
#include <cstdint>

namespace diorama {

constexpr int kSsimTaps = 11;

// Images are height x width x channels. The window is the product of `taps` with itself; shorter
// windows are filled up with zeros. Output pixel (y, x) looks at image pixel (y + offset,
// x + offset) and around; there are out_height x out_width of them. Outside the image is black.
struct SsimShape {
  int64_t height, width, channels;
  int64_t offset, out_height, out_width;
  std::array<double, kSsimTaps> taps;
};

// Derivatives of the similarity at each output pixel by four blurred images: a, b, a^2 + b^2 and
// ab (of images shifted as in ssim.cpp). Null means not wanted.
template <class T>
struct SsimMaps {
  T* mean_a;
  T* mean_b;
  T* squares;
  T* product;
};

// Returns the mean over output pixels and channels.
template <class T>
double ssim_forward(const SsimShape& shape, const T* a, const T* b, const SsimMaps<T>& maps,
                    int num_threads);

// `scale` is the gradient of the mean; null gradients are not wanted.
template <class T>
void ssim_backward(const SsimShape& shape, const T* a, const T* b, const SsimMaps<const T>& maps,
                   double scale, T* grad_a, T* grad_b, int num_threads);

}  // namespace diorama
