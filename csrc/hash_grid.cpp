// SPDX-License-Identifier: Apache-2.0
// Hash grid, forward: a block of points at a time, level by level.
#include "hash_grid.h"

#include "hash_grid_cells.h"
#include "parallel.h"

namespace diorama {
namespace {

// Large enough that a level's entries are met again while they are in cache, small enough that the
// block's features stay there too until the last level has been written.
constexpr int64_t kPointsPerBlock = 2048;

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
void forward_block(const HashGrid& grid, const HashGridPoints<T>& points, int64_t begin,
                   int64_t end, const T* table, T* features) {
  PointPlanes<T> planes(end - begin, kDirectional);
  planes.read(points, begin, end, 0);
  GridCells<T, kDirectional> cells;
  const int64_t num_levels = static_cast<int64_t>(grid.levels.size()), stride = num_levels * F;
  for (int64_t l = 0; l < grid.num_active; ++l) {
    const HashGridLevel& level = grid.levels[l];
    const T* entries = table + level.offset * F;
    for (int64_t first = begin; first < end; first += kLanes<T>) {
      cells.locate(level, grid.is_smooth, planes, first - begin);
      const int count = static_cast<int>(std::min(end - first, kLanes<T>));
      T* target = features + first * stride + l * F;
      for (int k = 0; k < count; ++k, target += stride)
        interpolate<T, F, kDirectional>(cells, k, entries, target);
    }
  }
  for (int64_t n = begin; n < end; ++n)
    std::fill(features + n * stride + grid.num_active * F, features + (n + 1) * stride, T(0));
}

}  // namespace

template <class T>
void hash_grid_forward(const HashGrid& grid, const HashGridPoints<T>& points, const T* table,
                       T* features, int num_threads) {
  with_constants(grid.num_features, points.directions, [&](auto F, auto is_directional) {
    parallel_for(points.count, kPointsPerBlock, num_threads, [&](int64_t begin, int64_t end) {
      forward_block<T, F, is_directional>(grid, points, begin, end, table, features);
    });
  });
}

template void hash_grid_forward(const HashGrid&, const HashGridPoints<float>&, const float*, float*,
                                int);
template void hash_grid_forward(const HashGrid&, const HashGridPoints<double>&, const double*,
                                double*, int);

}  // namespace diorama
