// SPDX-License-Identifier: Apache-2.0
// Lattice samples of rays in the occupied cells of nested grids; diorama/ops/march.py is its
// specification. All arithmetic is in double, whatever the type of inputs and outputs: it costs
// nothing here, and a lattice of thousands of steps keeps its phase.
#pragma once

#include <cstdint>

namespace diorama {

constexpr int64_t kMaxMarchLevels = 16;
// So many runs of neighbouring samples are remembered for each ray between the two passes; what
// comes behind them is marched again.
constexpr int64_t kMarchRuns = 8;

// A word holds the bits of a brick of 4 x 4 x 4 cells, and behind all bricks of all levels come
// words that say which of 4 x 4 x 4 bricks hold anything: empty space is crossed in large strides,
// and the bits of 128^3 cells take 256 KB instead of 2 MB.
struct BrickedGrid {
  const uint64_t* words;
  int64_t num_levels;
  int64_t resolution;

  int64_t bricks_per_axis() const { return (resolution + 3) / 4; }
  int64_t blocks_per_axis() const { return (resolution + 15) / 16; }
  int64_t bricks_per_level() const {
    return bricks_per_axis() * bricks_per_axis() * bricks_per_axis();
  }
  int64_t blocks_per_level() const {
    return blocks_per_axis() * blocks_per_axis() * blocks_per_axis();
  }
  int64_t num_words() const { return num_levels * (bricks_per_level() + blocks_per_level()); }
};

template <class T>
struct MarchRays {
  const T* origins;
  const T* directions;
  const T* near;
  const T* far;
  const T* jitter;  // Null: none.
  int64_t num_rays;
};

// The box of level 0 and the lattice.
struct MarchSettings {
  double low[3];
  double high[3];
  double step;
  double cone;
  int64_t max_samples;
};

// Start (as the lattice counts it) and length of kMarchRuns runs for each ray.
struct MarchRun {
  double start;
  double length;
};

template <class T>
struct MarchSamples {
  T* t;
  T* delta;
  int64_t* ray;
};

// Fills grid.words from one byte per cell.
void march_pack(const BrickedGrid& grid, const bool* is_occupied, uint64_t* words, int num_threads);

// First pass: runs, ray_offsets (num_rays + 1) and t_next.
template <class T>
void march_count(const MarchRays<T>& rays, const BrickedGrid& grid, const MarchSettings& settings,
                 MarchRun* runs, int64_t* ray_offsets, T* t_next, int num_threads);

// Second pass: the samples; a ray never writes outside its part of them.
template <class T>
void march_write(const MarchRays<T>& rays, const BrickedGrid& grid, const MarchSettings& settings,
                 const MarchRun* runs, const int64_t* ray_offsets, const MarchSamples<T>& out,
                 int num_threads);

}  // namespace diorama
