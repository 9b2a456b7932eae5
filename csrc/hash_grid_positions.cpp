// SPDX-License-Identifier: Apache-2.0
// Hash grid, gradient of the positions: a block of points at a time, on one level after the other.
#include <array>
#include <vector>

#include "hash_grid.h"
#include "hash_grid_cells.h"

namespace diorama {
namespace {

// The value e at a cell's eight corners, and what it has in the middle: e is linear in each of the
// upper vertices' weights (a, b, c), so its derivatives are interpolated differences.
template <class T>
struct CornerValues {
  alignas(kVectorBytes) T values[8][kLanes<T>];

  Vec<T> at(int corner) const { return load(values[corner]); }

  // d/d(weight of `axis`), with the other axes' weights in `upper`.
  Vec<T> first(int axis, const Vec<T> (&upper)[3]) const {
    const int b = (axis + 1) % 3, c = (axis + 2) % 3;
    const auto difference = [&](int corner) { return at(corner | 1 << axis) - at(corner); };
    const Vec<T> low = mix(difference(0), difference(1 << b), upper[b]);
    return mix(low, mix(difference(1 << c), difference(1 << b | 1 << c), upper[b]), upper[c]);
  }

  // d2/d(weight of a) d(weight of b), with the third axis' weight in `upper`.
  Vec<T> second(int a, int b, const Vec<T> (&upper)[3]) const {
    const int c = 3 - a - b;
    const auto difference = [&](int corner) {
      return (at(corner | 1 << a | 1 << b) - at(corner | 1 << a)) -
             (at(corner | 1 << b) - at(corner));
    };
    return mix(difference(0), difference(1 << c), upper[c]);
  }

  static Vec<T> mix(Vec<T> low, Vec<T> high, Vec<T> upper) { return low + upper * (high - low); }
};

// Corner values of point k: the features of its corners times the gradient of its features.
template <class T, int F>
[[gnu::always_inline]] inline void project(const GridCells<T, false>& cells, int k, const T* table,
                                           const T* grad_features, CornerValues<T>& out) {
  Entry<T, F> grad;
  std::memcpy(&grad, grad_features, sizeof grad);
  Pair<T, F> grads;
  join<T, F>(grad, grad, grads);
  for (int j = 0; j < 4; ++j) {
    Pair<T, F> pair;
    load_pair<T, F>(table, cells.corners[2 * j][k], cells.corners[2 * j + 1][k], pair);
    pair *= grads;
    T low = pair[0], high = pair[F];
    for (int f = 1; f < F; ++f) low += pair[f], high += pair[F + f];
    out.values[2 * j][k] = low;
    out.values[2 * j + 1][k] = high;
  }
}

// Gradients of all points, three vectors for a vector of points.
template <class T>
using GradientVectors = std::vector<std::array<Vec<T>, 3>>;

// Adds one level's share to the gradient of a vector of points.
template <class T, bool kDirectional>
void add_gradient(const HashGridLevel& level, bool is_smooth, const PointPlanes<T>& planes,
                  int64_t at, const CornerValues<T>& e, std::array<Vec<T>, 3>& gradient) {
  const AxisCells<T> axes[3] = {{level, is_smooth, planes.position(0, at)},
                                {level, is_smooth, planes.position(1, at)},
                                {level, is_smooth, planes.position(2, at)}};
  const Vec<T> upper[3] = {axes[0].upper, axes[1].upper, axes[2].upper};
  for (int a = 0; a < 3; ++a) {
    if constexpr (kDirectional) {
      const int b = (a + 1) % 3, c = (a + 2) % 3;
      gradient[a] += axes[a].curvature * planes.direction(a, at) * e.first(a, upper);
      const Vec<T> along_b = axes[b].slope * planes.direction(b, at) * e.second(a, b, upper);
      const Vec<T> along_c = axes[c].slope * planes.direction(c, at) * e.second(a, c, upper);
      gradient[a] += axes[a].slope * (along_b + along_c);
    } else {
      gradient[a] += axes[a].slope * e.first(a, upper);
    }
  }
}

template <class T, int F, bool kDirectional>
void positions_block(const HashGrid& grid, int64_t l, const PointPlanes<T>& planes, int64_t begin,
                     int64_t end, const T* table, const T* grad_features,
                     GradientVectors<T>& gradients) {
  CornerValues<T> corner_values{};
  const int64_t stride = static_cast<int64_t>(grid.levels.size()) * F;
  const T* entries = table + grid.levels[l].offset * F;
  walk_level<T, F, false>(
      grid, l, planes, begin, end, entries, [&](const auto& cells, int64_t first, int count) {
        const T* source = grad_features + first * stride + l * F;
        for (int k = 0; k < count; ++k, source += stride)
          project<T, F>(cells, k, entries, source, corner_values);
        add_gradient<T, kDirectional>(grid.levels[l], grid.is_smooth, planes, first, corner_values,
                                      gradients[first / kLanes<T>]);
      });
}

}  // namespace

template <class T>
void hash_grid_backward_positions(const HashGrid& grid, const HashGridPoints<T>& points,
                                  const T* table, const T* grad_features, T* grad_positions,
                                  int num_threads) {
  const PointPlanes<T> planes(points, num_threads);
  GradientVectors<T> gradients((points.count + kLanes<T> - 1) / kLanes<T>);
  with_constants(grid.num_features, points.directions, [&](auto F, auto is_directional) {
    for_levels_and_points(points.count, grid.num_active, true, num_threads,
                          [&](int64_t begin, int64_t end, int64_t l) {
                            positions_block<T, F, is_directional>(grid, l, planes, begin, end,
                                                                  table, grad_features, gradients);
                          });
  });
  parallel_for(points.count, kPointsPerPiece, num_threads, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n)
      for (int a = 0; a < 3; ++a)
        grad_positions[3 * n + a] = gradients[n / kLanes<T>][a][n % kLanes<T>];
  });
}

template void hash_grid_backward_positions(const HashGrid&, const HashGridPoints<float>&,
                                           const float*, const float*, float*, int);
template void hash_grid_backward_positions(const HashGrid&, const HashGridPoints<double>&,
                                           const double*, const double*, double*, int);

}  // namespace diorama
