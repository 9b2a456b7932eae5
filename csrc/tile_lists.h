// SPDX-License-Identifier: Apache-2.0
// Which Gaussians each tile of an image must draw, and in what order; diorama/ops/tile_lists.py is
// its specification.
#pragma once

#include <cstdint>

#include "ellipse_tiles.h"

namespace diorama {

// Gaussians on the image plane: centers N x 2, conics N x 3, half_extents N x 2, the rest N.
template <class T>
struct ProjectedSplats {
  const T* centers;
  const T* conics;
  const T* opacities;
  const T* half_extents;
  const T* depths;
  int64_t count;
};

// The tiles of a Gaussian that has no more than 8 x 8: bit 8 r + c is set for the tile that lies r
// rows and c columns from tile `corner`. No bits: it must be looked at again.
struct TileMask {
  uint64_t bits;
  int64_t corner;
};

// Pairs of a tile and a Gaussian, by tile and then depth. Pair p is number slots[p] when counted by
// Gaussian and then tile; both orders have their offsets.
struct TilePairs {
  int64_t* starts;  // tiles + 1
  int32_t* splats;  // pairs
  int32_t* slots;   // pairs
  int64_t num_pairs;
};

// First pass: fills splat_starts (N + 1), whose last entry is the number of pairs, and masks (N).
template <class T>
void tile_lists_count(const ProjectedSplats<T>& splats, const TileGrid& grid, int64_t* splat_starts,
                      TileMask* masks, int num_threads);

// Second pass. Whatever splat_starts and masks hold, memory is safe if splat_starts does not
// decrease and ends at the number of pairs.
template <class T>
void tile_lists_fill(const ProjectedSplats<T>& splats, const TileGrid& grid,
                     const int64_t* splat_starts, const TileMask* masks, const TilePairs& out,
                     int num_threads);

}  // namespace diorama
