// SPDX-License-Identifier: Apache-2.0
// Tile lists: one sort of all Gaussians by depth, then a counting sort of their tiles.
#include "tile_lists.h"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>
#include <vector>

#include "parallel.h"
#include "radix_sort.h"

namespace diorama {
namespace {

constexpr int64_t kSplatsPerPiece = 1024;
constexpr int64_t kPairsPerPiece = 1 << 14;
constexpr int64_t kMaxPieces = 64;
constexpr int64_t kAhead = 16;
constexpr int64_t kMaxCounters = 1 << 22;

// An integer that sorts as the depth does.
template <class T>
auto depth_key(T depth) {
  using Key = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr Key kSign = Key(1) << (8 * sizeof(Key) - 1);
  const Key bits = std::bit_cast<Key>(depth + T(0));  // -0 and 0 are the same depth.
  return bits & kSign ? ~bits : bits | kSign;
}

// The Gaussians that have a tile, nearest first; the first of equals first.
template <class T>
auto depth_order(const T* depths, int64_t count, const int64_t* splat_starts, int num_threads) {
  std::vector<SortEntry<decltype(depth_key(T()))>> order;
  order.reserve(count);
  for (int64_t i = 0; i < count; ++i)
    if (splat_starts[i] < splat_starts[i + 1])
      order.push_back({depth_key(depths[i]), static_cast<int32_t>(i)});
  radix_sort(order, num_threads);
  return order;
}

// Turns the pieces' counts (pieces x tiles) into the places where each of them writes next, and
// fills starts.
void reserve_places(std::vector<int64_t>& counts, int64_t num_tiles, int64_t* starts) {
  std::fill_n(starts, num_tiles + 1, 0);
  int64_t* totals = starts + 1;
  const int64_t num_counts = static_cast<int64_t>(counts.size());
  for (int64_t piece = 0; piece < num_counts; piece += num_tiles) {
    for (int64_t t = 0; t < num_tiles; ++t) {
      const int64_t own = counts[piece + t];
      counts[piece + t] = totals[t];
      totals[t] += own;
    }
  }
  for (int64_t t = 0; t < num_tiles; ++t) starts[t + 1] += starts[t];
  for (int64_t piece = 0; piece < num_counts; piece += num_tiles)
    for (int64_t t = 0; t < num_tiles; ++t) counts[piece + t] += starts[t];
}

constexpr int64_t kMaskSide = 8;

template <class T>
Ellipse ellipse_of(const ProjectedSplats<T>& splats, int64_t i) {
  return Ellipse::of(splats.centers, splats.conics, splats.opacities, splats.half_extents, i);
}

// Visits the slots of Gaussians with their tiles.
template <class T>
struct SlotWalk {
  const ProjectedSplats<T>& splats;
  const TileGrid& grid;
  const int64_t* splat_starts;
  const TileMask* masks;
  int64_t num_tiles, columns;
  std::array<int64_t, kMaskSide * kMaskSide> steps;  // From a mask's corner.

  SlotWalk(const ProjectedSplats<T>& splats_, const TileGrid& grid_, const int64_t* starts,
           const TileMask* masks_)
      : splats(splats_),
        grid(grid_),
        splat_starts(starts),
        masks(masks_),
        num_tiles(grid_.size()),
        columns(grid_.columns()) {
    for (int64_t k = 0; k < static_cast<int64_t>(steps.size()); ++k)
      steps[k] = k / kMaskSide * columns + k % kMaskSide;
  }

  // Has Gaussian i fetched: sorted by depth, they lie anywhere in memory.
  void prefetch(int64_t i) const {
    __builtin_prefetch(masks + i);
    __builtin_prefetch(splat_starts + i);
  }

  template <class Visit>
  void operator()(int64_t i, const Visit& visit) const {
    int64_t slot = splat_starts[i];
    const int64_t end = splat_starts[i + 1];
    uint64_t bits = masks[i].bits;
    if (bits) [[likely]] {
      for (; slot < end; ++slot, bits &= bits - 1) {
        const uint64_t tile = masks[i].corner + steps[std::countr_zero(bits | kLastBit)];
        visit(slot, tile < static_cast<uint64_t>(num_tiles) ? tile : 0);
      }
      return;
    }
    ellipse_of(splats, i).for_each_row(grid, [&](int64_t row, int64_t first, int64_t last) {
      for (int64_t column = first; column <= last && slot < end; ++column)
        visit(slot++, row * columns + column);
    });
    for (; slot < end; ++slot) visit(slot, 0);  // Only if the starts are another scene's.
  }

 private:
  static constexpr uint64_t kLastBit = uint64_t(1) << 63;
};

}  // namespace

template <class T>
void tile_lists_count(const ProjectedSplats<T>& splats, const TileGrid& grid, int64_t* splat_starts,
                      TileMask* masks, int num_threads) {
  splat_starts[0] = 0;
  const int64_t columns = grid.columns();
  parallel_for(splats.count, kSplatsPerPiece, num_threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t count = 0, top = 0, left = 0;
      uint64_t bits = 0;
      bool is_small = true;
      ellipse_of(splats, i).for_each_row(grid, [&](int64_t row, int64_t first, int64_t last) {
        // The first row's first tile need not be the leftmost, so start some columns before it.
        if (count == 0) top = row, left = first - kMaskSide / 2;
        count += last - first + 1;
        is_small &= row - top < kMaskSide && first >= left && last - left < kMaskSide;
        if (is_small)
          bits |= ((uint64_t(2) << (last - first)) - 1) << ((row - top) * kMaskSide + first - left);
      });
      splat_starts[i + 1] = count;
      masks[i] = {is_small ? bits : 0, top * columns + left};
    }
  });
  for (int64_t i = 0; i < splats.count; ++i) splat_starts[i + 1] += splat_starts[i];
}

template <class T>
void tile_lists_fill(const ProjectedSplats<T>& splats, const TileGrid& grid,
                     const int64_t* splat_starts, const TileMask* masks, const TilePairs& out,
                     int num_threads) {
  const auto order = depth_order(splats.depths, splats.count, splat_starts, num_threads);
  const int64_t num_tiles = grid.size(), num_seen = static_cast<int64_t>(order.size());
  const int64_t most = std::clamp<int64_t>(kMaxCounters / num_tiles, 1, kMaxPieces);
  const int64_t num_pieces = std::clamp<int64_t>(out.num_pairs / kPairsPerPiece, 1, most);
  const int64_t grain = std::max<int64_t>((num_seen + num_pieces - 1) / num_pieces, 1);
  std::vector<int64_t> places(num_pieces * num_tiles);
  const SlotWalk<T> for_each_slot(splats, grid, splat_starts, masks);

  parallel_for(num_seen, grain, num_threads, [&](int64_t begin, int64_t end) {
    int64_t* counts = places.data() + begin / grain * num_tiles;
    for (int64_t k = begin; k < end; ++k) {
      if (k + kAhead < end) for_each_slot.prefetch(order[k + kAhead].index);
      for_each_slot(order[k].index, [&](int64_t, int64_t tile) { ++counts[tile]; });
    }
  });
  reserve_places(places, num_tiles, out.starts);
  parallel_for(num_seen, grain, num_threads, [&](int64_t begin, int64_t end) {
    int64_t* next = places.data() + begin / grain * num_tiles;
    for (int64_t k = begin; k < end; ++k) {
      if (k + kAhead < end) for_each_slot.prefetch(order[k + kAhead].index);
      for_each_slot(order[k].index, [&](int64_t slot, int64_t tile) {
        const int64_t pair = next[tile]++;
        out.splats[pair] = order[k].index;
        out.slots[pair] = static_cast<int32_t>(slot);
      });
    }
  });
}

template void tile_lists_count(const ProjectedSplats<float>&, const TileGrid&, int64_t*, TileMask*,
                               int);
template void tile_lists_count(const ProjectedSplats<double>&, const TileGrid&, int64_t*, TileMask*,
                               int);
template void tile_lists_fill(const ProjectedSplats<float>&, const TileGrid&, const int64_t*,
                              const TileMask*, const TilePairs&, int);
template void tile_lists_fill(const ProjectedSplats<double>&, const TileGrid&, const int64_t*,
                              const TileMask*, const TilePairs&, int);

}  // namespace diorama
