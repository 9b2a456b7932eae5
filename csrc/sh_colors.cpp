// SPDX-License-Identifier: Apache-2.0
// Colours by view direction: a tile of Gaussians has its harmonics at once, then each Gaussian's
// coefficients, most of the memory traffic, are walked once where they lie.
#include "sh_colors.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "huge_pages.h"
#include "parallel.h"
#include "simd.h"
#include "spherical_harmonics_tile.h"

namespace diorama {
namespace {

using namespace spherical;

// Sums over Gaussians are made of sums over pieces of this size, whatever the threads.
constexpr int64_t kGaussiansPerPiece = 1024;

template <class T>
struct ViewTile {
  Directions<T> directions;
  alignas(64) T inverse_distance[kTile];
  int count;
  bool any_visible = false;

  ViewTile(const ColorInputs<T>& in, int64_t first)
      : count(static_cast<int>(std::min<int64_t>(kTile, in.count - first))) {
    auto& [x, y, z] = directions;
    for (int k = 0; k < kTile; ++k) {
      const int64_t from = first + (k < count ? k : 0);
      x[k] = in.means[3 * from] - in.camera_center[0];
      y[k] = in.means[3 * from + 1] - in.camera_center[1];
      z[k] = in.means[3 * from + 2] - in.camera_center[2];
    }
    for (int k = 0; k < count; ++k) any_visible |= in.visible[first + k];
#pragma omp simd
    for (int k = 0; k < kTile; ++k) {
      const T distance = std::sqrt(x[k] * x[k] + y[k] * y[k] + z[k] * z[k]);
      inverse_distance[k] = T(1) / (distance > T(1e-12) ? distance : T(1e-12));
      x[k] *= inverse_distance[k];
      y[k] *= inverse_distance[k];
      z[k] *= inverse_distance[k];
    }
  }
};

template <class T>
void activate(Values<T, 3>& colors, bool is_sigmoid) {
  for (auto& channel : colors.at)
    for (int k = 0; k < kTile; k += kLanes<T>) {
      const Vec<T> raw = load(channel + k);
      if (is_sigmoid) {
        store(channel + k, T(1) / (T(1) + exp_and_expm1<T>(-raw).exp));
      } else {
        const Vec<T> shifted = raw + T(0.5);
        store(channel + k, shifted > T(0) ? shifted : Vec<T>{});
      }
    }
}

template <class T, int kBands>
void forward_tile(const ColorInputs<T>& in, int64_t first, T* colors) {
  constexpr int kCount = kBands * kBands;
  const ViewTile<T> view(in, first);
  Values<T, kCount> harmonics;
  Values<T, 3> tile{};
  if (view.any_visible) evaluate<T, kBands>(view.directions, harmonics);
  for (int k = 0; k < view.count; ++k) {
    if (!in.visible[first + k]) continue;
    const T* row = in.sh + (first + k) * in.num_coefficients * 3;
    T red = 0, green = 0, blue = 0;
    for (int j = 0; j < kCount; ++j) {
      red += harmonics.at[j][k] * row[3 * j];
      green += harmonics.at[j][k] * row[3 * j + 1];
      blue += harmonics.at[j][k] * row[3 * j + 2];
    }
    tile.at[0][k] = red;
    tile.at[1][k] = green;
    tile.at[2][k] = blue;
  }
  activate(tile, in.is_sigmoid);
  for (int k = 0; k < view.count; ++k)
    for (int c = 0; c < 3; ++c)
      colors[3 * (first + k) + c] = in.visible[first + k] ? tile.at[c][k] : T(0);
}

// The gradient before the activation, whose slope the colour tells; zero where not visible.
template <class T>
T slope(T color, bool is_sigmoid) {
  return is_sigmoid ? color * (T(1) - color) : (color > T(0) ? T(1) : T(0));
}

// Writes one Gaussian's gradient of sh: harmonics times colour gradient, zeros above the bands.
template <class T, int kCount>
void write_outer(const Values<T, kCount>& harmonics, int k, const T* grad, int64_t num_coefficients,
                 T* row) {
  for (int j = 0; j < kCount; ++j)
    for (int c = 0; c < 3; ++c) row[3 * j + c] = harmonics.at[j][k] * grad[c];
  std::fill(row + 3 * kCount, row + 3 * num_coefficients, T(0));
}

template <class T, int kBands>
void backward_tile(const ColorInputs<T>& in, int64_t first, const T* colors, const T* grad_colors,
                   const ColorGradients<T>& out, Values<T, 3>& center_sum) {
  constexpr int kCount = kBands * kBands;
  const int64_t row_size = in.num_coefficients * 3;
  const bool with_directions = out.means || out.camera_center;
  const ViewTile<T> view(in, first);
  Values<T, kCount> harmonics, grad_harmonics{};
  if (view.any_visible) evaluate<T, kBands>(view.directions, harmonics);
  for (int k = 0; k < view.count; ++k) {
    const int64_t i = first + k;
    T* grad_row = out.sh ? out.sh + i * row_size : nullptr;
    if (!in.visible[i]) {
      if (grad_row) std::fill_n(grad_row, row_size, T(0));
      continue;
    }
    T grad[3];
    for (int c = 0; c < 3; ++c)
      grad[c] = grad_colors[3 * i + c] * slope(colors[3 * i + c], in.is_sigmoid);
    if (grad_row) write_outer<T, kCount>(harmonics, k, grad, in.num_coefficients, grad_row);
    if (!with_directions) continue;
    const T* row = in.sh + i * row_size;
    for (int j = 0; j < kCount; ++j)
      grad_harmonics.at[j][k] =
          grad[0] * row[3 * j] + grad[1] * row[3 * j + 1] + grad[2] * row[3 * j + 2];
  }
  if (!with_directions) return;

  Values<T, 3> grad;
  const auto& [x, y, z] = view.directions;
  differentiate<T, kBands>(view.directions, grad_harmonics, grad);
#pragma omp simd
  for (int k = 0; k < kTile; ++k) {
    // A direction's length does not change, so what points along it is lost.
    const T along = x[k] * grad.at[0][k] + y[k] * grad.at[1][k] + z[k] * grad.at[2][k];
    grad.at[0][k] = (grad.at[0][k] - along * x[k]) * view.inverse_distance[k];
    grad.at[1][k] = (grad.at[1][k] - along * y[k]) * view.inverse_distance[k];
    grad.at[2][k] = (grad.at[2][k] - along * z[k]) * view.inverse_distance[k];
    for (int c = 0; c < 3; ++c) center_sum.at[c][k] -= grad.at[c][k];
  }
  for (int k = 0; out.means && k < view.count; ++k)
    for (int c = 0; c < 3; ++c) out.means[3 * (first + k) + c] = grad.at[c][k];
}

}  // namespace

template <class T>
void sh_colors_forward(const ColorInputs<T>& in, T* colors, int num_threads) {
  with_bands(in.num_bands, [&](auto bands) {
    parallel_for(in.count, kGaussiansPerPiece, num_threads, [&](int64_t begin, int64_t end) {
      for (int64_t first = begin; first < end; first += kTile)
        forward_tile<T, bands>(in, first, colors);
    });
  });
}

template <class T>
void sh_colors_backward(const ColorInputs<T>& in, const T* colors, const T* grad_colors,
                        const ColorGradients<T>& out, int num_threads) {
  if (out.sh) advise_huge_pages(out.sh, in.count * in.num_coefficients * 3 * sizeof(T));
  const int64_t num_pieces = (in.count + kGaussiansPerPiece - 1) / kGaussiansPerPiece;
  std::vector<double> center_sums(num_pieces * 3);
  with_bands(in.num_bands, [&](auto bands) {
    parallel_for(in.count, kGaussiansPerPiece, num_threads, [&](int64_t begin, int64_t end) {
      Values<T, 3> sums{};
      for (int64_t first = begin; first < end; first += kTile)
        backward_tile<T, bands>(in, first, colors, grad_colors, out, sums);
      for (int c = 0; c < 3; ++c)
        for (int k = 0; k < kTile; ++k)
          center_sums[begin / kGaussiansPerPiece * 3 + c] += sums.at[c][k];
    });
  });
  if (!out.camera_center) return;
  double total[3] = {};
  for (size_t i = 0; i < center_sums.size(); ++i) total[i % 3] += center_sums[i];
  std::copy_n(total, 3, out.camera_center);
}

template void sh_colors_forward(const ColorInputs<float>&, float*, int);
template void sh_colors_forward(const ColorInputs<double>&, double*, int);
template void sh_colors_backward(const ColorInputs<float>&, const float*, const float*,
                                 const ColorGradients<float>&, int);
template void sh_colors_backward(const ColorInputs<double>&, const double*, const double*,
                                 const ColorGradients<double>&, int);

}  // namespace diorama
