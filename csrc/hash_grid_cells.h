// SPDX-License-Identifier: Apache-2.0
// Where points lie in a level of the hash grid: indices and weights, a vector of points at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "hash_grid.h"
#include "parallel.h"
#include "simd.h"

namespace diorama {

// For passes that only move numbers; a multiple of every vector's length.
constexpr int64_t kPointsPerPiece = 16384;

// As wide as T, so that a vector of points has as many of them.
template <class T>
using GridIndex = std::make_unsigned_t<SignedBits<T>>;

// F features of one table entry, and of the two entries at x and x + 1.
template <class T, int F>
struct EntryVectors {
  typedef T Entry __attribute__((vector_size(F * sizeof(T))));
  typedef T Pair __attribute__((vector_size(2 * F * sizeof(T))));
};
template <class T, int F>
using Entry = typename EntryVectors<T, F>::Entry;
template <class T, int F>
using Pair = typename EntryVectors<T, F>::Pair;

// Vectors wider than a register cannot be returned without a warning about the calling convention.
template <class T, int F>
[[gnu::always_inline]] inline void join(const Entry<T, F>& low, const Entry<T, F>& high,
                                        Pair<T, F>& pair) {
  [&]<int... k>(std::integer_sequence<int, k...>) {
    pair = __builtin_shufflevector(low, high, k...);
  }(std::make_integer_sequence<int, 2 * F>());
}

template <class T, int F>
[[gnu::always_inline]] inline void split(const Pair<T, F>& pair, Entry<T, F>& low,
                                         Entry<T, F>& high) {
  [&]<int... k>(std::integer_sequence<int, k...>) {
    low = __builtin_shufflevector(pair, pair, k...);
    high = __builtin_shufflevector(pair, pair, (k + F)...);
  }(std::make_integer_sequence<int, F>());
}

template <class T, int F>
[[gnu::always_inline]] inline void load_pair(const T* table, GridIndex<T> low, GridIndex<T> high,
                                             Pair<T, F>& pair) {
  Entry<T, F> a, b;
  std::memcpy(&a, table + static_cast<size_t>(low) * F, sizeof a);
  std::memcpy(&b, table + static_cast<size_t>(high) * F, sizeof b);
  join<T, F>(a, b, pair);
}

// Coordinates of consecutive points, one plane for each: x y z, and the direction's if there is
// one. Planes are padded with zeros to whole vectors.
template <class T>
class PointPlanes {
 public:
  PointPlanes(const HashGridPoints<T>& points, int num_threads)
      : stride_((points.count + kLanes<T> - 1) / kLanes<T> * kLanes<T>),
        planes_(new T[(points.directions ? 6 : 3) * stride_]) {
    parallel_for(stride_, kPointsPerPiece, num_threads, [&](int64_t begin, int64_t end) {
      read_rows(points.positions, begin, std::min(end, points.count), end, planes_.get());
      if (points.directions)
        read_rows(points.directions, begin, std::min(end, points.count), end,
                  planes_.get() + 3 * stride_);
    });
  }

  Vec<T> position(int axis, int64_t at) const { return load(planes_.get() + axis * stride_ + at); }
  Vec<T> direction(int axis, int64_t at) const { return position(3 + axis, at); }

 private:
  void read_rows(const T* rows, int64_t begin, int64_t end, int64_t padded_end, T* planes) const {
    for (int axis = 0; axis < 3; ++axis) {
      T* plane = planes + axis * stride_;
      for (int64_t n = begin; n < end; ++n) plane[n] = rows[3 * n + axis];
      std::fill(plane + end, plane + padded_end, T(0));
    }
  }

  int64_t stride_;
  std::unique_ptr<T[]> planes_;
};

// One axis of a vector of points: cell, weight of its upper vertex, and that weight's derivatives.
template <class T>
struct AxisCells {
  Vec<GridIndex<T>> cell;
  Vec<T> upper, slope, curvature;

  AxisCells(const HashGridLevel& level, bool is_smooth, Vec<T> x) {
    const T scale = static_cast<T>(level.scale);
    const auto is_inside = (x >= T(0)) & (x <= T(1));
    x = x < T(0) ? Vec<T>{} : x;
    x = x > T(1) ? broadcast(T(1)) : x;
    const Vec<T> scaled = x * scale + T(0.5);
    cell = (Vec<GridIndex<T>>)__builtin_convertvector(scaled, Vec<SignedBits<T>>);
    // NaN may convert to anything; its weights stay NaN but its index must be in range.
    const auto last = Vec<GridIndex<T>>{} + static_cast<GridIndex<T>>(level.resolution - 1);
    cell = cell < last ? cell : last;
    // Not scaled - cell: with fused multiply-add this has no rounding of the larger number.
    const Vec<T> origin = T(0.5) - __builtin_convertvector((Vec<SignedBits<T>>)cell, Vec<T>);
    const Vec<T> fraction = x * scale + origin;
    upper = fraction;
    slope = is_inside ? broadcast(scale) : Vec<T>{};
    curvature = Vec<T>{};
    if (is_smooth) {
      upper = fraction * fraction * (T(3) - T(2) * fraction);
      curvature = slope * scale * (T(6) - T(12) * fraction);
      slope = slope * fraction * (T(6) - T(6) * fraction);
    }
  }
};

// Corner c = x + 2 y + 4 z of the cells of a vector of points has the index corners[c], and corners
// 2 j and 2 j + 1, which differ in x, have the weights
//     values:                 yz[j] x[0], yz[j] x[1]
//     directional derivative: yz[j] x[0] - yz_of_slope[j] x_slope, yz[j] x[1] + the same,
// where then yz holds the derivative along y and z, and yz_of_slope the plain product.
template <class T, bool kDirectional>
struct GridCells {
  static constexpr int kCount = kLanes<T>;

  alignas(kVectorBytes) GridIndex<T> corners[8][kCount];
  alignas(kVectorBytes) T yz[4][kCount];
  alignas(kVectorBytes) T x[2][kCount];
  alignas(kVectorBytes) T yz_of_slope[kDirectional ? 4 : 1][kCount];
  alignas(kVectorBytes) T x_slope[kCount];

  void locate(const HashGridLevel& level, bool is_smooth, const PointPlanes<T>& planes,
              int64_t at) {
    const AxisCells<T> x_axis(level, is_smooth, planes.position(0, at));
    const AxisCells<T> y_axis(level, is_smooth, planes.position(1, at));
    const AxisCells<T> z_axis(level, is_smooth, planes.position(2, at));
    set_corners(level, x_axis.cell, y_axis.cell, z_axis.cell);
    store(x[0], T(1) - x_axis.upper);
    store(x[1], x_axis.upper);
    const Vec<T> y[2] = {T(1) - y_axis.upper, y_axis.upper};
    const Vec<T> z[2] = {T(1) - z_axis.upper, z_axis.upper};
    if constexpr (kDirectional) {
      const Vec<T> y_slope = y_axis.slope * planes.direction(1, at);
      const Vec<T> z_slope = z_axis.slope * planes.direction(2, at);
      store(x_slope, x_axis.slope * planes.direction(0, at));
      for (int j = 0; j < 4; ++j) {
        store(yz_of_slope[j], y[j & 1] * z[j >> 1]);
        const Vec<T> along_y = j & 1 ? y_slope : -y_slope, along_z = j >> 1 ? z_slope : -z_slope;
        store(yz[j], along_y * z[j >> 1] + along_z * y[j & 1]);
      }
    } else {
      for (int j = 0; j < 4; ++j) store(yz[j], y[j & 1] * z[j >> 1]);
    }
  }

  void set_corners(const HashGridLevel& level, Vec<GridIndex<T>> x, Vec<GridIndex<T>> y,
                   Vec<GridIndex<T>> z) {
    using Index = GridIndex<T>;
    const Index length = static_cast<Index>(level.length);
    if (level.is_dense) {
      const Index res = static_cast<Index>(level.resolution);
      const Vec<Index> first = x + res * (y + res * z);
      // The upper vertices of border cells lie outside; like tiny-cuda-nn we wrap around.
      const auto wrap = [&](Vec<Index> i) { return i >= length ? i - length : i; };
      for (int j = 0; j < 4; ++j) {
        const Vec<Index> i = first + ((j & 1) * res + (j >> 1) * res * res);
        store(corners[2 * j], Vec<Index>(wrap(i)));
        store(corners[2 * j + 1], Vec<Index>(wrap(i + Index(1))));
      }
    } else {
      constexpr Index kPrimeY = 2654435761u, kPrimeZ = 805459861u;
      const Vec<Index> y_hash = y * kPrimeY, z_hash = z * kPrimeZ;
      for (int j = 0; j < 4; ++j) {
        const Vec<Index> row = (y_hash + (j & 1) * kPrimeY) ^ (z_hash + (j >> 1) * kPrimeZ);
        store(corners[2 * j], Vec<Index>((x ^ row) & (length - 1)));
        store(corners[2 * j + 1], Vec<Index>(((x + Index(1)) ^ row) & (length - 1)));
      }
    }
  }
};

// Calls work(cells, first, count) for points begin .. end - 1, a vector of them after the other;
// begin is a multiple of kLanes. Where `entries` is not null, those that will be needed are asked
// for two vectors ahead: a large level is not in the near caches, and this overlaps more of its
// misses than the processor would by itself.
template <class T, int F, bool kDirectional, class Work>
[[gnu::always_inline]] inline void walk_level(const HashGrid& grid, int64_t l,
                                              const PointPlanes<T>& planes, int64_t begin,
                                              int64_t end, const T* entries, const Work& work) {
  constexpr int64_t kAhead = 2 * kLanes<T>;
  GridCells<T, kDirectional> ring[3];
  const auto cells_of = [&](int64_t first) -> auto& { return ring[first / kLanes<T> % 3]; };
  const auto prepare = [&](int64_t first) {
    GridCells<T, kDirectional>& cells = cells_of(first);
    cells.locate(grid.levels[l], grid.is_smooth, planes, first);
    if (!entries) return;
    // The neighbour in x is most often in the same cache line.
    for (int j = 0; j < 4; ++j)
      for (int k = 0; k < kLanes<T>; ++k)
        __builtin_prefetch(entries + static_cast<size_t>(cells.corners[2 * j][k]) * F, 0, 2);
  };
  for (int64_t first = begin; first < std::min(end, begin + kAhead); first += kLanes<T>)
    prepare(first);
  for (int64_t first = begin; first < end; first += kLanes<T>) {
    if (first + kAhead < end) prepare(first + kAhead);
    work(cells_of(first), first, static_cast<int>(std::min(end - first, kLanes<T>)));
  }
}

// Runs work(begin, end, level) until every active level has met every point. Threads share a level
// while it is in the cache they share, instead of each going through all levels by itself.
// are_levels_ordered: work adds to what is the points', so a level waits for the one before it.
template <class Work>
void for_levels_and_points(int64_t num_points, int64_t num_active, bool are_levels_ordered,
                           int num_threads, const Work& work) {
  constexpr int64_t kPointsPerBlock = 2048, kFewPoints = 8192, kPointsPerSweep = 1 << 18;
  for (int64_t sweep = 0; sweep < num_points; sweep += kPointsPerSweep) {
    const int64_t count = std::min(num_points - sweep, kPointsPerSweep);
    const int64_t num_blocks = (count + kPointsPerBlock - 1) / kPointsPerBlock;
    // Few points meet an entry once or twice: nothing to share.
    const int64_t levels_per_task = count <= kFewPoints ? num_active : 1;
    const int64_t num_tasks = num_blocks * num_active / std::max<int64_t>(levels_per_task, 1);
    const int64_t tasks_at_once = are_levels_ordered ? num_blocks : num_tasks;
    for (int64_t done = 0; done < num_tasks; done += tasks_at_once)
      parallel_for(tasks_at_once, 1, num_threads, [&](int64_t task, int64_t) {
        const int64_t begin = (done + task) % num_blocks * kPointsPerBlock;
        const int64_t end = std::min(begin + kPointsPerBlock, count);
        const int64_t level = (done + task) / num_blocks * levels_per_task;
        for (int64_t l = level; l < level + levels_per_task; ++l)
          work(sweep + begin, sweep + end, l);
      });
  }
}

// Calls work with the number of features, and whether there are directions, as constants.
template <class Work>
void with_constants(int64_t num_features, bool has_directions, const Work& work) {
  const auto with_features = [&](auto features) {
    if (has_directions)
      work(features, std::true_type());
    else
      work(features, std::false_type());
  };
  switch (num_features) {
    case 1:
      return with_features(std::integral_constant<int, 1>());
    case 2:
      return with_features(std::integral_constant<int, 2>());
    case 4:
      return with_features(std::integral_constant<int, 4>());
    case 8:
      return with_features(std::integral_constant<int, 8>());
    default:
      return;
  }
}

}  // namespace diorama
