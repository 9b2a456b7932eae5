// SPDX-License-Identifier: Apache-2.0
// Hash grid, gradient of the table: one owner for each part of a level, which walks all points.
#include "hash_grid.h"
#include "hash_grid_cells.h"
#include "huge_pages.h"
#include "parallel.h"

namespace diorama {
namespace {

constexpr size_t kCachedBytes = 8 << 20;

template <class T, int F>
[[gnu::always_inline]] inline void add_entry(T* target, const Entry<T, F>& value) {
  Entry<T, F> sum;
  std::memcpy(&sum, target, sizeof sum);
  sum += value;
  std::memcpy(target, &sum, sizeof sum);
}

// Entries first .. first + length - 1 of a level; kIsWhole: all of them, nothing to check.
template <class T, int F, bool kIsWhole>
struct OwnedEntries {
  T* entries;
  GridIndex<T> first, length;

  [[gnu::always_inline]] inline void add(GridIndex<T> index, const Entry<T, F>& value) const {
    // Below `first` the difference is huge.
    if (kIsWhole || index - first < length)
      add_entry<T, F>(entries + static_cast<size_t>(index) * F, value);
  }
};

template <class T, int F, bool kDirectional, bool kIsWhole>
[[gnu::always_inline]] inline void spread(const GridCells<T, kDirectional>& cells, int k,
                                          const T* grad_features,
                                          const OwnedEntries<T, F, kIsWhole>& owned) {
  Entry<T, F> grad;
  std::memcpy(&grad, grad_features, sizeof grad);
  const Entry<T, F> low = cells.x[0][k] * grad, high = cells.x[1][k] * grad;
  const Entry<T, F> slope = cells.x_slope[k] * grad;
  for (int j = 0; j < 4; ++j) {
    Entry<T, F> low_share = cells.yz[j][k] * low, high_share = cells.yz[j][k] * high;
    if constexpr (kDirectional) {
      low_share -= cells.yz_of_slope[j][k] * slope;
      high_share += cells.yz_of_slope[j][k] * slope;
    }
    owned.add(cells.corners[2 * j][k], low_share);
    owned.add(cells.corners[2 * j + 1][k], high_share);
  }
}

template <class T, int F, bool kDirectional, bool kIsWhole>
void backward_level(const HashGrid& grid, int64_t l, const PointPlanes<T>& planes,
                    int64_t num_points, const T* grad_features,
                    const OwnedEntries<T, F, kIsWhole>& owned) {
  const int64_t stride = static_cast<int64_t>(grid.levels.size()) * F;
  // A smaller level has come into cache when it was set to zero.
  const bool is_far = grid.levels[l].length * F * sizeof(T) > kCachedBytes;
  walk_level<T, F, kDirectional>(grid, l, planes, 0, num_points, is_far ? owned.entries : nullptr,
                                 [&](const auto& cells, int64_t first, int count) {
                                   const T* source = grad_features + first * stride + l * F;
                                   for (int k = 0; k < count; ++k, source += stride)
                                     spread<T, F, kDirectional, kIsWhole>(cells, k, source, owned);
                                 });
}

// Enough for two tasks to a thread; one thread needs no parts.
int64_t parts_per_level(int64_t num_active, int num_threads) {
  if (num_threads <= 1 || num_active == 0) return 1;
  return (2 * num_threads + num_active - 1) / num_active;
}

}  // namespace

// An entry is summed in the order of the points, whatever part it is in: the number of parts, which
// follows the number of threads, does not change a bit.
template <class T>
void hash_grid_backward_table(const HashGrid& grid, const HashGridPoints<T>& points,
                              const T* grad_features, T* grad_table, int num_threads) {
  const PointPlanes<T> planes(points, num_threads);
  const int64_t num_entries =
      grid.levels.empty() ? 0 : grid.levels.back().offset + grid.levels.back().length;
  advise_huge_pages(grad_table, num_entries * grid.num_features * sizeof(T));
  const int64_t num_levels = static_cast<int64_t>(grid.levels.size());
  const int64_t num_parts = parts_per_level(grid.num_active, num_threads);
  with_constants(grid.num_features, points.directions, [&](auto F, auto is_directional) {
    parallel_for(num_levels * num_parts, 1, num_threads, [&](int64_t task, int64_t) {
      // The finest levels take longest and come first: they are begun first, and threads that are
      // done with coarse ones help with them.
      const int64_t l = num_levels - 1 - task / num_parts, part = task % num_parts;
      const HashGridLevel& level = grid.levels[l];
      const int64_t first = level.length * part / num_parts;
      const int64_t last = level.length * (part + 1) / num_parts;
      T* entries = grad_table + level.offset * F;
      std::fill(entries + first * F, entries + last * F, T(0));
      if (l >= grid.num_active) return;
      const auto begin = static_cast<GridIndex<T>>(first);
      const auto length = static_cast<GridIndex<T>>(last - first);
      if (num_parts == 1)
        backward_level<T, F, is_directional, true>(grid, l, planes, points.count, grad_features,
                                                   {entries, begin, length});
      else
        backward_level<T, F, is_directional, false>(grid, l, planes, points.count, grad_features,
                                                    {entries, begin, length});
    });
  });
}

template void hash_grid_backward_table(const HashGrid&, const HashGridPoints<float>&, const float*,
                                       float*, int);
template void hash_grid_backward_table(const HashGrid&, const HashGridPoints<double>&,
                                       const double*, double*, int);

}  // namespace diorama
