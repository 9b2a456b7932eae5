// SPDX-License-Identifier: Apache-2.0
// Matrix products of a block of rows whose operands stay in the nearest caches: sums of one output
// tile live in registers, a scalar of the left matrix meets vectors of the right one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "simd.h"

namespace diorama {

// The widest tile that leaves registers for its operands: 32 of them with AVX-512 (and on other
// CPUs' wide files), 16 with SSE and AVX.
#if defined(__AVX512F__) || !defined(__x86_64__)
constexpr int kTileVectors = 4, kNarrowTileVectors = 2;
#else
constexpr int kTileVectors = 3, kNarrowTileVectors = 1;
#endif
// Narrow tiles have more rows, so that enough independent sums hide the latency of an addition.
constexpr int tile_rows(int num_vectors) { return num_vectors <= kNarrowTileVectors ? 8 : 4; }
// Rows are padded to a multiple of this, so that all tiles are whole.
constexpr int64_t kRowMultiple = 16;

constexpr int kMostNarrowColumns = 4;

// Columns are padded to whole vectors.
template <class T>
constexpr int64_t padded_columns(int64_t count) {
  return (count + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

// Distance of rows in a block's buffers. Not a power of two, whose columns would share cache sets.
template <class T>
constexpr int64_t buffer_stride(int64_t columns) {
  return padded_columns<T>(columns) + kLanes<T>;
}

// finish(i, c, sum_k a(i, k) b[k][c ..]) for the kRows x kVectors vectors of one tile, where
// a(i, k) is a[i][k] of rows `a_stride` apart, or if kIsTransposed a[k][i].
template <int kRows, int kVectors, bool kIsTransposed, class T, class Finish>
inline void multiply_tile(const T* a, int64_t a_stride, const T* b, int64_t b_stride, int64_t depth,
                          const Finish& finish) {
  Vec<T> sums[kRows][kVectors] = {};
  for (int64_t k = 0; k < depth; ++k) {
    Vec<T> right[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) right[j] = load(b + k * b_stride + j * kLanes<T>);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const Vec<T> left = broadcast(kIsTransposed ? a[k * a_stride + i] : a[i * a_stride + k]);
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) sums[i][j] += left * right[j];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) finish(i, j * kLanes<T>, sums[i][j]);
}

// Calls work(integral_constant n) for n = count in 1 .. kMost.
template <int kMost, class Work>
inline void with_count(int64_t count, const Work& work) {
  if constexpr (kMost > 0) {
    if (count == kMost) return work(std::integral_constant<int, kMost>());
    with_count<kMost - 1>(count, work);
  }
}

// Calls work(integral_constant vectors, first column) for panels of at most kTileVectors vectors.
template <class T, class Work>
inline void for_each_panel(int64_t num_columns, const Work& work) {
  for (int64_t column = 0; column < num_columns; column += kTileVectors * kLanes<T>) {
    const int64_t vectors = (num_columns - column + kLanes<T> - 1) / kLanes<T>;
    with_count<kTileVectors>(std::min<int64_t>(vectors, kTileVectors),
                             [&](auto count) { work(count, column); });
  }
}

// Rearranges a matrix, element(k, c) of `depth` rows and num_columns columns, into panels: within
// a panel rows are next to each other, so that a tile reads them in order. Fills up with zeros;
// takes depth * padded_columns(num_columns) numbers.
template <class T, class Element>
void pack_panels(int64_t depth, int64_t num_columns, const Element& element, T* packed) {
  for_each_panel<T>(num_columns, [&](auto vectors, int64_t first) {
    const int64_t width = vectors * kLanes<T>, filled = std::min(width, num_columns - first);
    for (int64_t k = 0; k < depth; ++k, packed += width) {
      for (int64_t c = 0; c < filled; ++c) packed[c] = element(k, first + c);
      std::fill(packed + filled, packed + width, T(0));
    }
  });
}

// finish(row, column, vector of a b) for all rows of a (a multiple of kRowMultiple) and all columns
// of the packed matrix b.
template <class T, class Finish>
inline void multiply_rows(int64_t num_rows, const T* a, int64_t a_stride, const T* b, int64_t depth,
                          int64_t num_columns, const Finish& finish) {
  for_each_panel<T>(num_columns, [&](auto vectors, int64_t first) {
    constexpr int kRows = tile_rows(vectors);
    for (int64_t row = 0; row < num_rows; row += kRows)
      multiply_tile<kRows, vectors, false>(
          a + row * a_stride, a_stride, b + first * depth, vectors * kLanes<T>, depth,
          [&](int i, int64_t c, Vec<T> sum) { finish(row + i, first + c, sum); });
  });
}

// Lane j becomes the sum of all lanes of vectors[j]; destroys the vectors. Each step adds halves of
// two vectors into one that carries both.
template <class T, int kGroup = kLanes<T> / 2>
inline Vec<T> sum_each(Vec<T>* vectors) {
  constexpr int kCount = kLanes<T>, kGroups = kCount / kGroup;
  // Lane k of the result belongs to group k / kGroup; the first half of the groups are in a.
  constexpr auto kLow = [](int k) {
    const int group = k / kGroup, in_b = group >= kGroups / 2;
    return in_b * kCount + (group - in_b * kGroups / 2) * 2 * kGroup + k % kGroup;
  };
  constexpr auto kHigh = [](int k) { return decltype(kLow){}(k) + kGroup; };
#pragma GCC unroll 16
  for (int j = 0; j < kGroup; ++j) {
    const Vec<T> a = vectors[2 * j], b = vectors[2 * j + 1];
    vectors[j] = permute<T>(a, b, kLow) + permute<T>(a, b, kHigh);
  }
  if constexpr (kGroup == 1)
    return vectors[0];
  else
    return sum_each<T, kGroup / 2>(vectors);
}

// Lane l of sums[i][c] becomes the sum of a[i][k] b[c][k] over the k = l modulo the lanes.
template <int kRows, int kColumns, class T>
inline void multiply_lanes(const T* a, int64_t a_stride, const T* b, int64_t b_stride,
                           int64_t depth, Vec<T> (*sums)[kColumns]) {
  Vec<T> tile[kRows][kColumns] = {};
  for (int64_t k = 0; k < depth; k += kLanes<T>) {
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c)
        tile[i][c] += load(a + i * a_stride + k) * load(b + c * b_stride + k);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) sums[i][c] = tile[i][c];
}

// Whether a product has so few columns that most lanes of its only vector would be padding.
template <class T>
constexpr bool is_narrow(int64_t num_columns) {
  return num_columns <= kMostNarrowColumns && num_columns * 2 <= kLanes<T>;
}

// finish(index, vector) for the flat product of rows of a with the few rows of b, where number
// row * kColumns + c is sum_k a[row][k] b[c][k]; index is that of the vector's first number. Lanes
// run along k, and the lanes of neighbouring products are then added up together. Rows of a and b
// are padded with zeros to whole vectors; num_rows is a multiple of the lanes.
template <int kColumns, class T, class Finish>
inline void multiply_narrow(int64_t num_rows, const T* a, int64_t a_stride, const T* b,
                            int64_t depth, const Finish& finish) {
  constexpr int kRows = std::min<int>(4, kLanes<T>);
  const int64_t b_stride = padded_columns<T>(depth);
  Vec<T> sums[kLanes<T>][kColumns];
  for (int64_t first = 0; first < num_rows; first += kLanes<T>) {
    for (int64_t row = 0; row < kLanes<T>; row += kRows)
      multiply_lanes<kRows, kColumns>(a + (first + row) * a_stride, a_stride, b, b_stride, depth,
                                      sums + row);
    for (int c = 0; c < kColumns; ++c)
      finish(first * kColumns + c * kLanes<T>, sum_each<T>(sums[0] + c * kLanes<T>));
  }
}

// total += a^T b over the rows: total is [a_columns][padded_columns(b_columns)], and b's rows are
// readable up to that width.
template <class T>
inline void add_outer_products(int64_t num_rows, const T* a, int64_t a_stride, int64_t a_columns,
                               const T* b, int64_t b_stride, int64_t b_columns, T* total) {
  const int64_t stride = padded_columns<T>(b_columns);
  for_each_panel<T>(b_columns, [&](auto vectors, int64_t first) {
    constexpr int kRows = tile_rows(vectors);
    for (int64_t i = 0; i < a_columns; i += kRows)
      with_count<kRows>(std::min<int64_t>(kRows, a_columns - i), [&](auto rows) {
        T* corner = total + i * stride + first;
        multiply_tile<rows, vectors, true>(a + i, a_stride, b + first, b_stride, num_rows,
                                           [&](int r, int64_t c, Vec<T> sum) {
                                             T* target = corner + r * stride + c;
                                             store(target, load(target) + sum);
                                           });
      });
  });
}

}  // namespace diorama
