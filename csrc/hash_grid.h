// SPDX-License-Identifier: Apache-2.0
// Multiresolution hash grid; diorama/ops/hash_grid.py is its specification.
#pragma once

#include <cstdint>
#include <vector>

namespace diorama {

// Entries offset .. offset + length - 1 of the table; a level is dense if all its vertices fit.
// Dense levels need length >= max(8, resolution^3), hashed levels a power of two: then every index
// the kernels compute is in range, whatever the positions.
struct HashGridLevel {
  double scale;
  int64_t resolution;
  int64_t offset;
  int64_t length;
  bool is_dense;
};

struct HashGrid {
  std::vector<HashGridLevel> levels;
  int64_t num_active;  // Levels from this one on are zero and get no gradient.
  int64_t num_features;
  bool is_smooth;
};

// Rows of three numbers. Where directions are given, each kernel handles in place of the features
// f(x) their derivative along the point's direction v, f'(x) v: the second derivatives' terms.
template <class T>
struct HashGridPoints {
  const T* positions;
  const T* directions;  // May be null.
  int64_t count;
};

// features[n] = f(x_n), or f'(x_n) v_n.
template <class T>
void hash_grid_forward(const HashGrid& grid, const HashGridPoints<T>& points, const T* table,
                       T* features, int num_threads);

// Gradient of sum_n features[n] . grad_features[n] with respect to the table, which it does not
// depend on.
template <class T>
void hash_grid_backward_table(const HashGrid& grid, const HashGridPoints<T>& points,
                              const T* grad_features, T* grad_table, int num_threads);

// The same with respect to positions.
template <class T>
void hash_grid_backward_positions(const HashGrid& grid, const HashGridPoints<T>& points,
                                  const T* table, const T* grad_features, T* grad_positions,
                                  int num_threads);

}  // namespace diorama
