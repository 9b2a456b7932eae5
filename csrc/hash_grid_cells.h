// SPDX-License-Identifier: Apache-2.0
// Where points lie in a level of the hash grid: indices and weights, a vector of points at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "hash_grid.h"
#include "simd.h"

namespace diorama {

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
  PointPlanes(int64_t capacity, bool has_directions)
      : stride_((capacity + kLanes<T> - 1) / kLanes<T> * kLanes<T>),
        planes_(new T[(has_directions ? 6 : 3) * stride_]) {}

  // Points begin .. end - 1 to the places that start at `target`, a multiple of kLanes.
  void read(const HashGridPoints<T>& points, int64_t begin, int64_t end, int64_t target) {
    read_rows(points.positions, begin, end, planes_.get() + target);
    if (points.directions)
      read_rows(points.directions, begin, end, planes_.get() + 3 * stride_ + target);
  }

  Vec<T> position(int axis, int64_t at) const { return load(planes_.get() + axis * stride_ + at); }
  Vec<T> direction(int axis, int64_t at) const { return position(3 + axis, at); }

 private:
  void read_rows(const T* rows, int64_t begin, int64_t end, T* target) {
    const int64_t count = end - begin, padded = (count + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
    for (int axis = 0; axis < 3; ++axis) {
      T* plane = target + axis * stride_;
      for (int64_t k = 0; k < count; ++k) plane[k] = rows[3 * (begin + k) + axis];
      std::fill(plane + count, plane + padded, T(0));
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
    x = x > T(1) ? splat(T(1)) : x;
    const Vec<T> scaled = x * scale + T(0.5);
    cell = (Vec<GridIndex<T>>)__builtin_convertvector(scaled, Vec<SignedBits<T>>);
    // NaN may convert to anything; its weights stay NaN but its index must be in range.
    const auto last = Vec<GridIndex<T>>{} + static_cast<GridIndex<T>>(level.resolution - 1);
    cell = cell < last ? cell : last;
    // Not scaled - cell: with fused multiply-add this has no rounding of the larger number.
    const Vec<T> origin = T(0.5) - __builtin_convertvector((Vec<SignedBits<T>>)cell, Vec<T>);
    const Vec<T> fraction = x * scale + origin;
    upper = fraction;
    slope = is_inside ? splat(scale) : Vec<T>{};
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
        const Vec<Index> row =
            (y_hash + (j & 1) * kPrimeY) ^ (z_hash + (j >> 1) * kPrimeZ);
        store(corners[2 * j], Vec<Index>((x ^ row) & (length - 1)));
        store(corners[2 * j + 1], Vec<Index>(((x + Index(1)) ^ row) & (length - 1)));
      }
    }
  }
};

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
