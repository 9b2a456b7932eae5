// SPDX-License-Identifier: Apache-2.0
// Rasterising forward: a tile's list is taken in batches; each cell of 4 x 4 pixels finds those of
// a batch that reach it, and blends them with its pixels held in registers.
#include "rasterize.h"

#include <bit>
#include <vector>

#include "parallel.h"
#include "rasterize_batch.h"

namespace diorama {
namespace {

constexpr int64_t kSplatsPerPiece = 1024;

// Colours summed so far, of the pixels of one vector.
template <class T, int kChannels>
struct ColorSum {
  Vec<T> sums[kChannels];
  T* home;

  ColorSum(T* pixels, int64_t) : home(pixels) {
    for (int c = 0; c < kChannels; ++c) sums[c] = load(home + c * kTilePixels);
  }
  void add(Vec<T> weights, const Batch<T, kChannels>& batch, int64_t j) {
    for (int c = 0; c < kChannels; ++c) sums[c] += weights * batch.features[c][j];
  }
  void finish() {
    for (int c = 0; c < kChannels; ++c) store(home + c * kTilePixels, sums[c]);
  }
};

template <class T>
struct ColorSum<T, kAnyChannels> {
  T* home;
  int64_t num_channels;

  ColorSum(T* pixels, int64_t channels) : home(pixels), num_channels(channels) {}
  void add(Vec<T> weights, const Batch<T, kAnyChannels>& batch, int64_t j) {
    const T* features = batch.feature_rows[j];
    for (int64_t c = 0; c < num_channels; ++c) {
      T* sum = home + c * kTilePixels;
      store(sum, load(sum) + weights * features[c]);
    }
  }
  void finish() {}
};

// The pixels of a tile while it is drawn.
template <class T, int kChannels>
struct DrawnTile {
  using Int = SignedBits<T>;
  TilePixels<T> transmittance;
  TilePixels<T> limit;  // Least log2 alpha that is drawn; infinite once a pixel is full.
  TilePixels<Int> count, median, stop;
  uint32_t open_cells = 0;  // Cells that have a pixel which is not full.
  std::vector<T> colors;    // Channels x pixels.
  int64_t num_channels;

  DrawnTile(const TileGrid& grid, const Tile& tile, int64_t list_length, int64_t channels)
      : colors(channels * kTilePixels), num_channels(channels) {
    for (int cell = 0; cell < kCells; ++cell) {
      for (int k = 0; k < kCellPixels; ++k) {
        transmittance.cells[cell][k] = T(1);
        limit.cells[cell][k] = std::numeric_limits<T>::infinity();
        count.cells[cell][k] = 0;
        median.cells[cell][k] = -1;
        stop.cells[cell][k] = static_cast<Int>(list_length);
      }
    }
    tile.for_each_pixel(grid, [&](int64_t cell, int64_t lane, int64_t) {
      limit.cells[cell][lane] = kFaintest<T>;
      open_cells |= 1u << cell;
    });
  }

  // Draws the Gaussians `list` of a batch, whose first is number `first` of the tile, to a cell.
  void draw_cell(const Batch<T, kChannels>& batch, const uint8_t* list, int64_t count, int cell,
                 int64_t first, T max_alpha) {
    bool is_open = false;
    for (int part = 0; part < kCellParts<T>; ++part)
      is_open |= draw_part(batch, list, count, cell, part * int(kLanes<T>), first, max_alpha);
    if (!is_open) open_cells &= ~(1u << cell);
  }

  void finish(const TileGrid& grid, const Tile& tile, const int32_t* list, const T* background,
              const RasterOutputs<T>& out) const {
    tile.for_each_pixel(grid, [&](int64_t cell, int64_t lane, int64_t pixel) {
      const T left = transmittance.cells[cell][lane];
      const Int seen = median.cells[cell][lane];
      out.transmittance[pixel] = left;
      out.counts[pixel] = static_cast<int32_t>(count.cells[cell][lane]);
      out.median_splats[pixel] = left <= T(0.5) && seen >= 0 ? list[seen] : -1;
      out.stops[pixel] = static_cast<int32_t>(stop.cells[cell][lane]);
      const T* color = colors.data() + cell * kCellPixels + lane;
      for (int64_t c = 0; c < num_channels; ++c)
        out.image[pixel * num_channels + c] = color[c * kTilePixels] + left * background[c];
    });
  }

 private:
  // Returns whether a pixel of the part is still not full.
  bool draw_part(const Batch<T, kChannels>& batch, const uint8_t* list, int64_t length, int cell,
                 int lane, int64_t first, T max_alpha) {
    const Vec<T> x = load(kGeometry<T>.x[cell % kCellsAcross] + lane);
    const Vec<T> y = load(kGeometry<T>.y[cell / kCellsAcross] + lane);
    Vec<T> front = load(transmittance.cells[cell] + lane);
    Vec<T> least = load(limit.cells[cell] + lane);
    IntVec<T> num_drawn = load(count.cells[cell] + lane);
    IntVec<T> seen = load(median.cells[cell] + lane);
    ColorSum<T, kChannels> color(colors.data() + cell * kCellPixels + lane, num_channels);
    const Vec<T> infinity = broadcast(std::numeric_limits<T>::infinity());
    bool is_open = any<T>(is_less<T>(least, infinity));

    for (int64_t k = 0; k < length && is_open; ++k) {
      const int64_t j = list[k];
      const LocalSplat<T, T> s = batch.one(j);
      const Vec<T> log2_alpha = s.log2_alpha(s.log2_opacity, s.u(x, y), s.e(y));
      Mask<T> is_drawn = is_at_least<T>(log2_alpha, least);
      if (!any<T>(is_drawn)) continue;
      const Vec<T> alpha = minimum<T>(exp2_normal<T>(log2_alpha), broadcast(max_alpha));
      Vec<T> weight = select<T>(is_drawn, alpha, Vec<T>{}) * front;
      Vec<T> behind = front - weight;
      const Mask<T> is_full = is_less<T>(behind, broadcast(kFull<T>));
      const IntVec<T> place = broadcast(static_cast<Int>(first + j));
      if (any<T>(is_full)) [[unlikely]] {
        is_drawn &= ~is_full;
        weight = select<T>(is_full, Vec<T>{}, weight);
        behind = select<T>(is_full, front, behind);
        least = select<T>(is_full, infinity, least);
        Int* stops = stop.cells[cell] + lane;
        store(stops, select<T>(is_full, place, load(stops)));
        is_open = any<T>(is_less<T>(least, infinity));
      }
      color.add(weight, batch, j);
      num_drawn = select<T>(is_drawn, num_drawn + Int(1), num_drawn);
      // The last one that is drawn while more than half gets through is the median.
      const Mask<T> is_front = is_less<T>(broadcast(T(0.5)), front);
      seen = select<T>(Mask<T>(is_drawn & is_front), place, seen);
      front = behind;
    }
    color.finish();
    store(transmittance.cells[cell] + lane, front);
    store(limit.cells[cell] + lane, least);
    store(count.cells[cell] + lane, num_drawn);
    store(median.cells[cell] + lane, seen);
    return is_open;
  }
};

// For each cell, the Gaussians of a batch that may reach it.
struct CellLists {
  alignas(64) uint8_t places[kCells][kBatch + 64];
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
        for (uint32_t bits = bits_of<T>(is_at_least<T>(bound, least)); bits; bits &= bits - 1)
          places[cell][counts[cell]++] = static_cast<uint8_t>(j + std::countr_zero(bits));
      }
    }
  }
};

template <class T, int kChannels>
void draw_tile(const RasterSplats<T>& splats, const RasterLists& lists, const TileGrid& grid,
               T max_alpha, const RasterOutputs<T>& out, int64_t index) {
  const Tile tile(grid, index);
  const int32_t* list = lists.splats + lists.starts[index];
  const int64_t length = lists.starts[index + 1] - lists.starts[index];
  DrawnTile<T, kChannels> drawn(grid, tile, length, splats.num_channels);
  Batch<T, kChannels> batch;
  CellLists cells;
  for (int64_t first = 0; first < length && drawn.open_cells; first += kBatch) {
    const int64_t count = std::min<int64_t>(kBatch, length - first);
    batch.gather(splats, out.prepared, list + first, count, tile);
    cells.fill<T, kChannels>(batch, count, drawn.open_cells);
    for (int cell = 0; cell < kCells; ++cell)
      drawn.draw_cell(batch, cells.places[cell], cells.counts[cell], cell, first, max_alpha);
  }
  drawn.finish(grid, tile, list, splats.background, out);
}

template <class T>
PreparedSplat<T> prepare(const T* center, const T* conic, T opacity) {
  constexpr double kScale = 0.5 / 0.69314718055994530942;
  const double a = conic[0], b = conic[1], c = conic[2], determinant = a * c - b * b;
  // Not an ellipse, or nothing in it: never seen. Written so that NaN is refused.
  if (!(a > 0.0 && determinant > 0.0 && opacity > T(0)))
    return {0.0, 0.0, 0.0, T(0), T(0), -std::numeric_limits<T>::infinity()};
  const double across = std::sqrt(kScale * a);
  return {across,    across * b / a, std::sqrt(kScale * determinant / a),
          center[0], center[1],      std::log2(opacity)};
}

}  // namespace

template <class T>
void rasterize_forward(const RasterSplats<T>& splats, const RasterLists& lists,
                       const TileGrid& grid, T max_alpha, const RasterOutputs<T>& out,
                       int num_threads) {
  parallel_for(splats.count, kSplatsPerPiece, num_threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      if (lists.splat_starts[i] < lists.splat_starts[i + 1])
        out.prepared[i] =
            prepare(splats.centers + 2 * i, splats.conics + 3 * i, splats.opacities[i]);
  });
  with_raster_channels<T>(splats.num_channels, [&](auto channels) {
    parallel_for(grid.size(), 1, num_threads, [&](int64_t begin, int64_t end) {
      for (int64_t tile = begin; tile < end; ++tile)
        draw_tile<T, channels>(splats, lists, grid, max_alpha, out, tile);
    });
  });
}

template void rasterize_forward(const RasterSplats<float>&, const RasterLists&, const TileGrid&,
                                float, const RasterOutputs<float>&, int);
template void rasterize_forward(const RasterSplats<double>&, const RasterLists&, const TileGrid&,
                                double, const RasterOutputs<double>&, int);

}  // namespace diorama
