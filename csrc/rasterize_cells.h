// SPDX-License-Identifier: Apache-2.0
// Which Gaussians of a batch may reach which 4 x 4-pixel cells of a tile.
#pragma once

#include <array>
#include <bit>

#include "rasterize_batch.h"

namespace diorama {

// For eight bits, the numbers of those that are set, one in each byte.
constexpr auto kSetBits = [] {
  std::array<uint64_t, 256> table{};
  for (int bits = 0; bits < 256; ++bits)
    for (int k = 7; k >= 0; --k)
      if (bits >> k & 1) table[bits] = table[bits] << 8 | k;
  return table;
}();

// For each cell, the Gaussians of a batch that may reach it.
struct CellLists {
  uint8_t places[kCells][kBatch + 8];
  int64_t counts[kCells];

  template <class T, int kChannels>
  void fill(const Batch<T, kChannels>& batch, int64_t count, uint32_t open_cells) {
    std::fill_n(counts, kCells, 0);
    const Vec<T> least = broadcast(kFaintest<T> - kBoundMargin<T>);
    for (int64_t j = 0; j < count; j += kLanes<T>) {
      const LocalSplat<T, Vec<T>> many = batch.many(j);
      for (int cell = 0; cell < kCells; ++cell) {
        if (!(open_cells >> cell & 1)) continue;
        const Vec<T> bound =
            many.bound(broadcast(kGeometry<T>.cell_x[cell]), broadcast(kGeometry<T>.cell_y[cell]));
        const uint32_t bits = bits_of<T>(is_at_least<T>(bound, least));
        for (int k = 0; k < kLanes<T>; k += 8) append(cell, j + k, bits >> k & 0xff);
      }
    }
  }

 private:
  // Appends the Gaussians first + k for which bit k is set; eight are written, the rest is junk.
  void append(int cell, int64_t first, uint32_t bits) {
    const uint64_t packed = kSetBits[bits] + static_cast<uint64_t>(first) * 0x0101010101010101;
    for (int k = 0; k < 8; ++k)
      places[cell][counts[cell] + k] = static_cast<uint8_t>(packed >> 8 * k);
    counts[cell] += std::popcount(bits);
  }
};

}  // namespace diorama
