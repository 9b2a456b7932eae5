// SPDX-License-Identifier: Apache-2.0
// Hash grid, forward: a block of points at a time, on one level after the other.
#include "hash_grid.h"

#include "hash_grid_cells.h"
#include "huge_pages.h"

namespace diorama {
namespace {

template <class T, int F, bool kDirectional>
[[gnu::always_inline]] inline void interpolate(const GridCells<T, kDirectional>& cells, int k,
                                               const T* table, T* features) {
  Pair<T, F> total{}, total_of_slope{};
  for (int j = 0; j < 4; ++j) {
    Pair<T, F> pair;
    load_pair<T, F>(table, cells.corners[2 * j][k], cells.corners[2 * j + 1][k], pair);
    total += cells.yz[j][k] * pair;
    if constexpr (kDirectional) total_of_slope += cells.yz_of_slope[j][k] * pair;
  }
  Entry<T, F> low, high;
  split<T, F>(total, low, high);
  Entry<T, F> result = cells.x[0][k] * low + cells.x[1][k] * high;
  if constexpr (kDirectional) {
    split<T, F>(total_of_slope, low, high);
    result += cells.x_slope[k] * (high - low);
  }
  std::memcpy(features, &result, sizeof result);
}

template <class T, int F, bool kDirectional>
void forward_block(const HashGrid& grid, int64_t l, const PointPlanes<T>& planes, int64_t begin,
                   int64_t end, const T* table, T* features) {
  const int64_t stride = static_cast<int64_t>(grid.levels.size()) * F;
  const T* entries = table + grid.levels[l].offset * F;
  walk_level<T, F, kDirectional>(grid, l, planes, begin, end, entries,
                                 [&](const auto& cells, int64_t first, int count) {
                                   T* target = features + first * stride + l * F;
                                   for (int k = 0; k < count; ++k, target += stride)
                                     interpolate<T, F, kDirectional>(cells, k, entries, target);
                                 });
}

template <class T>
void clear_inactive(const HashGrid& grid, int64_t num_points, T* features, int num_threads) {
  const int64_t stride = static_cast<int64_t>(grid.levels.size()) * grid.num_features;
  const int64_t num_active = grid.num_active * grid.num_features;
  if (num_active == stride) return;
  parallel_for(num_points, kPointsPerPiece, num_threads, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n)
      std::fill(features + n * stride + num_active, features + (n + 1) * stride, T(0));
  });
}

}  // namespace

template <class T>
void hash_grid_forward(const HashGrid& grid, const HashGridPoints<T>& points, const T* table,
                       T* features, int num_threads) {
  const PointPlanes<T> planes(points, num_threads);
  advise_huge_pages(features, points.count * grid.levels.size() * grid.num_features * sizeof(T));
  with_constants(grid.num_features, points.directions, [&](auto F, auto is_directional) {
    for_levels_and_points(points.count, grid.num_active, false, num_threads,
                          [&](int64_t begin, int64_t end, int64_t l) {
                            forward_block<T, F, is_directional>(grid, l, planes, begin, end, table,
                                                                features);
                          });
  });
  clear_inactive(grid, points.count, features, num_threads);
}

template void hash_grid_forward(const HashGrid&, const HashGridPoints<float>&, const float*, float*,
                                int);
template void hash_grid_forward(const HashGrid&, const HashGridPoints<double>&, const double*,
                                double*, int);

}  // namespace diorama
