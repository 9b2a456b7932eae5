// SPDX-License-Identifier: Apache-2.0
// Tile lists: one sort of all Gaussians by depth, then a counting sort of their tiles.
#include "tile_lists.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <type_traits>
#include <vector>

#include "parallel.h"
#include "radix_sort.h"

namespace diorama {
namespace {

constexpr int64_t kSplatsPerPiece = 1024;
constexpr int64_t kPairsPerPiece = 1 << 14;
constexpr int64_t kMaxPieces = 64;
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

}  // namespace

template <class T>
void tile_lists_count(const ProjectedSplats<T>& splats, const TileGrid& grid, int64_t* splat_starts,
                      int num_threads) {
  splat_starts[0] = 0;
  parallel_for(splats.count, kSplatsPerPiece, num_threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t count = 0;
      Ellipse::of(splats.centers, splats.conics, splats.opacities, splats.half_extents, i)
          .for_each_row(grid,
                        [&](int64_t, int64_t first, int64_t last) { count += last - first + 1; });
      splat_starts[i + 1] = count;
    }
  });
  for (int64_t i = 0; i < splats.count; ++i) splat_starts[i + 1] += splat_starts[i];
}

template <class T>
void tile_lists_fill(const ProjectedSplats<T>& splats, const TileGrid& grid,
                     const int64_t* splat_starts, const TilePairs& out, int num_threads) {
  // The tile of each pair, by Gaussian.
  const std::unique_ptr<int32_t[]> tiles(new int32_t[out.num_pairs]);
  parallel_for(splats.count, kSplatsPerPiece, num_threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (splat_starts[i] == splat_starts[i + 1]) continue;
      int32_t* next = tiles.get() + splat_starts[i];
      int32_t* const stop = tiles.get() + splat_starts[i + 1];
      Ellipse::of(splats.centers, splats.conics, splats.opacities, splats.half_extents, i)
          .for_each_row(grid, [&](int64_t row, int64_t first, int64_t last) {
            for (int64_t column = first; column <= last && next < stop; ++column)
              *next++ = static_cast<int32_t>(row * grid.columns() + column);
          });
      // Nothing is left unless splat_starts belongs to other Gaussians; even then memory is safe.
      std::fill(next, stop, 0);
    }
  });

  const auto order = depth_order(splats.depths, splats.count, splat_starts, num_threads);
  const int64_t num_tiles = grid.size(), num_seen = static_cast<int64_t>(order.size());
  const int64_t most = std::min(kMaxPieces, kMaxCounters / std::max<int64_t>(num_tiles, 1));
  const int64_t num_pieces =
      std::clamp<int64_t>(out.num_pairs / kPairsPerPiece, 1, std::max<int64_t>(most, 1));
  const int64_t grain = std::max<int64_t>((num_seen + num_pieces - 1) / num_pieces, 1);
  std::vector<int64_t> places(num_pieces * num_tiles);

  parallel_for(num_seen, grain, num_threads, [&](int64_t begin, int64_t end) {
    int64_t* counts = places.data() + begin / grain * num_tiles;
    for (int64_t k = begin; k < end; ++k) {
      const int32_t i = order[k].index;
      for (int64_t slot = splat_starts[i]; slot < splat_starts[i + 1]; ++slot)
        ++counts[tiles[slot]];
    }
  });
  reserve_places(places, num_tiles, out.starts);
  parallel_for(num_seen, grain, num_threads, [&](int64_t begin, int64_t end) {
    int64_t* next = places.data() + begin / grain * num_tiles;
    for (int64_t k = begin; k < end; ++k) {
      const int32_t i = order[k].index;
      for (int64_t slot = splat_starts[i]; slot < splat_starts[i + 1]; ++slot) {
        const int64_t pair = next[tiles[slot]]++;
        out.splats[pair] = i;
        out.slots[pair] = static_cast<int32_t>(slot);
      }
    }
  });
}

template void tile_lists_count(const ProjectedSplats<float>&, const TileGrid&, int64_t*, int);
template void tile_lists_count(const ProjectedSplats<double>&, const TileGrid&, int64_t*, int);
template void tile_lists_fill(const ProjectedSplats<float>&, const TileGrid&, const int64_t*,
                              const TilePairs&, int);
template void tile_lists_fill(const ProjectedSplats<double>&, const TileGrid&, const int64_t*,
                              const TilePairs&, int);

}  // namespace diorama
