// SPDX-License-Identifier: Apache-2.0
// Colours by view direction: a tile of Gaussians has its harmonics at once, one lane for each. Then
// each Gaussian's coefficients, nearly all of the memory traffic, are walked where they lie.
#include "sh_colors.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "huge_pages.h"
#include "interleave.h"
#include "lane_functions.h"
#include "parallel.h"
#include "spherical_harmonics_tile.h"

namespace diorama {
namespace {

using namespace spherical;

// Sums over Gaussians are made of sums over pieces of this size, whatever the threads.
constexpr int64_t kGaussiansPerPiece = 1024;

// One coefficient's three channels, and a lane to spare. It may be wider than a register of the
// target, so it is not handed to functions by value.
template <class T>
struct FourOf {
  typedef T type __attribute__((vector_size(4 * sizeof(T))));
};
template <class T>
using Four = typename FourOf<T>::type;

// Vectors of the tile's lanes: calls work(first lane, lanes that are Gaussians).
template <class T, class Work>
void for_vectors(int count, const Work& work) {
  for (int k = 0; k < kTile; k += kLanes<T>) work(k, std::max(count - k, 0));
}

template <class T>
Values<T, 3> read_tile(const T* source, int count) {
  Values<T, 3> tile;
  for_vectors<T>(count, [&](int k, int size) {
    const auto items = load_items<3>(source + 3 * k, size);
    for_constants<3>([&](auto c) { store(tile.at[c] + k, items[c]); });
  });
  return tile;
}

template <class T>
void write_tile(const Values<T, 3>& tile, int count, T* target) {
  for_vectors<T>(count, [&](int k, int size) {
    const Channels<T, 3> items{{load(tile.at[0] + k), load(tile.at[1] + k), load(tile.at[2] + k)}};
    store_items<3>(target + 3 * k, items, size);
  });
}

// How a tile of Gaussians is seen.
template <class T>
struct ViewTile {
  Directions<T> directions;
  alignas(64) T inverse_distance[kTile];
  int count;
  const bool* visible;

  ViewTile(const ColorInputs<T>& in, int64_t first)
      : count(static_cast<int>(std::min<int64_t>(kTile, in.count - first))),
        visible(in.visible + first) {
    for_vectors<T>(count, [&](int k, int size) {
      auto v = load_items<3>(in.means + 3 * (first + k), size);
      for_constants<3>([&](auto c) { v[c] -= in.camera_center[c]; });
      const Vec<T> distance = square_root<T>(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
      const Vec<T> least = broadcast(T(1e-12));
      const Vec<T> inverse = T(1) / (distance > least ? distance : least);
      store(inverse_distance + k, inverse);
      store(directions.x + k, v[0] * inverse);
      store(directions.y + k, v[1] * inverse);
      store(directions.z + k, v[2] * inverse);
    });
  }

  bool any_visible() const { return std::any_of(visible, visible + count, std::identity()); }
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
  Values<T, 3> tile{};
  if (view.any_visible()) {
    Values<T, kCount> harmonics;
    evaluate<T, kBands>(view.directions, harmonics);
    for (int k = 0; k < view.count; ++k) {
      if (!view.visible[k]) continue;
      const T* dc = in.dc + 3 * (first + k);
      Four<T> sum = harmonics.at[0][k] * Four<T>{dc[0], dc[1], dc[2], T(0)};
      const T* rest = in.rest + (first + k) * in.num_rest * 3;
      for (int j = 0; j < kCount - 2; ++j) {
        Four<T> coefficient;
        std::memcpy(&coefficient, rest + 3 * j, sizeof coefficient);
        sum += harmonics.at[j + 1][k] * coefficient;
      }
      if constexpr (kCount > 1) {
        // This may be the array's last coefficient: behind it lies nothing to load.
        const T* last = rest + 3 * (kCount - 2);
        sum += harmonics.at[kCount - 1][k] * Four<T>{last[0], last[1], last[2], T(0)};
      }
      for (int c = 0; c < 3; ++c) tile.at[c][k] = sum[c];
    }
    activate(tile, in.is_sigmoid);
    for (int k = 0; k < view.count; ++k)
      for (int c = 0; !view.visible[k] && c < 3; ++c) tile.at[c][k] = T(0);
  }
  write_tile(tile, view.count, colors + 3 * first);
}

// From the gradient of the colours to that before the activation, whose slope the colours tell.
template <class T>
void backward_activate(const Values<T, 3>& colors, bool is_sigmoid, Values<T, 3>& grad) {
  for (int c = 0; c < 3; ++c)
    for (int k = 0; k < kTile; k += kLanes<T>) {
      const Vec<T> color = load(colors.at[c] + k), after = load(grad.at[c] + k);
      const Vec<T> clamped = color > T(0) ? after : Vec<T>{};
      store(grad.at[c] + k, is_sigmoid ? after * color * (T(1) - color) : clamped);
    }
}

// Writes one Gaussian's gradient of rest: harmonics times colour gradient, zeros above the bands.
template <class T, int kCount>
void write_outer(const Values<T, kCount>& harmonics, int k, const Four<T>& grad, int64_t num_rest,
                 T* row) {
  // Each store spills one number into the next coefficient, which is written after it.
  for (int j = 0; j < kCount - 2; ++j) {
    const Four<T> product = harmonics.at[j + 1][k] * grad;
    std::memcpy(row + 3 * j, &product, sizeof product);
  }
  for (int c = 0; kCount > 1 && c < 3; ++c)
    row[3 * (kCount - 2) + c] = harmonics.at[kCount - 1][k] * grad[c];
  std::fill(row + 3 * (kCount - 1), row + 3 * num_rest, T(0));
}

// From the gradient of unit directions to that of the means; it is taken from the camera's.
template <class T>
void backward_normalize(const ViewTile<T>& view, Values<T, 3>& grad, Values<T, 3>& center_sum) {
  const auto& [x, y, z] = view.directions;
#pragma omp simd
  for (int k = 0; k < kTile; ++k) {
    // A direction's length does not change, so what points along it is lost.
    const T along = x[k] * grad.at[0][k] + y[k] * grad.at[1][k] + z[k] * grad.at[2][k];
    grad.at[0][k] = (grad.at[0][k] - along * x[k]) * view.inverse_distance[k];
    grad.at[1][k] = (grad.at[1][k] - along * y[k]) * view.inverse_distance[k];
    grad.at[2][k] = (grad.at[2][k] - along * z[k]) * view.inverse_distance[k];
    center_sum.at[0][k] -= grad.at[0][k];
    center_sum.at[1][k] -= grad.at[1][k];
    center_sum.at[2][k] -= grad.at[2][k];
  }
}

template <class T, int kBands>
void backward_tile(const ColorInputs<T>& in, int64_t first, const T* colors, const T* grad_colors,
                   const ColorGradients<T>& out, Values<T, 3>& center_sum) {
  constexpr int kCount = kBands * kBands;
  const int64_t row_size = in.num_rest * 3;
  const bool with_directions = out.means || out.camera_center;
  const ViewTile<T> view(in, first);
  Values<T, kCount> harmonics, grad_harmonics{};
  if (view.any_visible()) evaluate<T, kBands>(view.directions, harmonics);
  Values<T, 3> grad = read_tile(grad_colors + 3 * first, view.count);
  backward_activate(read_tile(colors + 3 * first, view.count), in.is_sigmoid, grad);
  for (int k = 0; k < view.count; ++k) {
    T* grad_dc = out.dc ? out.dc + (first + k) * 3 : nullptr;
    T* grad_rest = out.rest ? out.rest + (first + k) * row_size : nullptr;
    if (!view.visible[k]) {
      if (grad_dc) std::fill_n(grad_dc, 3, T(0));
      if (grad_rest) std::fill_n(grad_rest, row_size, T(0));
      continue;
    }
    const T red = grad.at[0][k], green = grad.at[1][k], blue = grad.at[2][k];
    for (int c = 0; grad_dc && c < 3; ++c) grad_dc[c] = harmonics.at[0][k] * grad.at[c][k];
    if (grad_rest)
      write_outer<T, kCount>(harmonics, k, Four<T>{red, green, blue, T(0)}, in.num_rest, grad_rest);
    // The first harmonic is the same in all directions.
    const T* rest = in.rest + (first + k) * row_size;
    for (int j = 1; with_directions && j < kCount; ++j, rest += 3)
      grad_harmonics.at[j][k] = red * rest[0] + green * rest[1] + blue * rest[2];
  }
  if (!with_directions) return;
  differentiate<T, kBands>(view.directions, grad_harmonics, grad);
  backward_normalize(view, grad, center_sum);
  if (out.means) write_tile(grad, view.count, out.means + 3 * first);
}

}  // namespace

template <class T>
void sh_colors_forward(const ColorInputs<T>& in, T* colors, int num_threads) {
  with_bands<kMaxColorBands>(in.num_bands, [&](auto bands) {
    parallel_for(in.count, kGaussiansPerPiece, num_threads, [&](int64_t begin, int64_t end) {
      for (int64_t first = begin; first < end; first += kTile)
        forward_tile<T, bands>(in, first, colors);
    });
  });
}

template <class T>
void sh_colors_backward(const ColorInputs<T>& in, const T* colors, const T* grad_colors,
                        const ColorGradients<T>& out, int num_threads) {
  if (out.rest) advise_huge_pages(out.rest, in.count * in.num_rest * 3 * sizeof(T));
  const int64_t num_pieces = (in.count + kGaussiansPerPiece - 1) / kGaussiansPerPiece;
  std::vector<double> center_sums(num_pieces * 3);
  with_bands<kMaxColorBands>(in.num_bands, [&](auto bands) {
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
