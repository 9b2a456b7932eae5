// SPDX-License-Identifier: Apache-2.0
// Gaussians on the image plane blended front to back; diorama/ops/rasterize.py is its
// specification.
#pragma once

#include <cstdint>

#include "ellipse_tiles.h"

namespace diorama {

// A Gaussian in the form that pixels want. With d = pixel centre - (x, y):
//   alpha = 2^(log2_opacity - u^2 - e^2),   u = across dx + shear dy,   e = down dy
// The slopes are in double precision, because where a long Gaussian's tile lies is a small
// difference of large products; it is rounded only once it is small.
//
// It fills a cache line, with the features if they are few: a tile gathers it from anywhere.
constexpr int kInlineChannels = 7;
constexpr int kPreparedNumbers = 16;
template <class T>
struct alignas(64) PreparedSplat {
  double across, shear, down;
  T x, y, log2_opacity;
  T features[kInlineChannels];
};
static_assert(sizeof(PreparedSplat<float>) == kPreparedNumbers * sizeof(float));
static_assert(sizeof(PreparedSplat<double>) == kPreparedNumbers * sizeof(double));

// What tile_lists makes of Gaussians.
struct RasterLists {
  const int64_t* starts;
  const int32_t* splats;
  const int32_t* slots;
  const int64_t* splat_starts;
  int64_t num_pairs;
};

// Gaussians and the image that they are drawn to: centers N x 2, conics N x 3, opacities N,
// features N x C, background C.
template <class T>
struct RasterScene {
  const T* centers;
  const T* conics;
  const T* opacities;
  const T* features;
  const T* background;
  int64_t count, num_channels;
  RasterLists lists;
  TileGrid grid;
  T max_alpha;
};

// height x width (x C). `stops` is the place in the tile's list behind the last Gaussian that was
// drawn to the pixel; it and `prepared` (N) are kept for the way back.
template <class T>
struct RasterOutputs {
  T* image;
  T* transmittance;
  int32_t* counts;
  int32_t* median_splats;
  int32_t* stops;
  PreparedSplat<T>* prepared;
};

// What the forward pass kept, and the gradients of its outputs; grad_alpha may be null (zero).
// is_faithful: gradients pass where alpha was cut at max_alpha, as if it had not been.
template <class T>
struct RasterCotangents {
  const T* transmittance;
  const int32_t* stops;
  const PreparedSplat<T>* prepared;
  const T* grad_image;
  const T* grad_alpha;
  bool is_faithful;
};

// Gradients of the inputs; a null pointer means not wanted. The sums are over pixels, of each
// pixel's own gradient of the center: of its length, and of its components without their signs;
// `pixels` counts the pixels that were drawn to. pixel_gradients (height x width x 2) is the sum
// over Gaussians of these components. The sums are wanted all or none.
template <class T>
struct RasterGradients {
  T* centers;
  T* conics;
  T* opacities;
  T* features;
  T* background;
  T* gradient_norms;
  T* abs_gradients;
  int32_t* pixels;
  T* pixel_gradients;
};

template <class T>
void rasterize_forward(const RasterScene<T>& scene, const RasterOutputs<T>& out, int num_threads);

template <class T>
void rasterize_backward(const RasterScene<T>& scene, const RasterCotangents<T>& in,
                        const RasterGradients<T>& out, int num_threads);

}  // namespace diorama
