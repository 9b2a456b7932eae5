// SPDX-License-Identifier: Apache-2.0
// Rasterising forward: a tile's list is taken in batches; each cell of 4 x 4 pixels finds those of
// a batch that reach it, and blends them with its pixels held in registers.
#include "rasterize.h"

#include <array>
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

// 1, 2, 3 ...
template <class N>
constexpr auto kFromOne = [] {
  std::array<N, kBatch> numbers{};
  for (int k = 0; k < kBatch; ++k) numbers[k] = static_cast<N>(k + 1);
  return numbers;
}();

// The pixels of a tile while it is drawn.
template <class T, int kChannels>
struct DrawnTile {
  using Int = SignedBits<T>;
  // What gets through all Gaussians that reach the pixel, and through those that were drawn to it.
  // A pixel is full where these differ; the first can only fall, so it stays full.
  TilePixels<T> through, left;
  TilePixels<Int> count, median, stop;
  uint32_t open_cells = 0;  // Cells that have a pixel which is not full.
  std::vector<T> colors;    // Channels x pixels.
  int64_t num_channels;

  DrawnTile(const TileGrid& grid, const Tile& tile, int64_t channels)
      : through(),
        left(),
        count(),
        median(),
        stop(),
        colors(channels * kTilePixels),
        num_channels(channels) {
    // Pixels outside the image remain at 0: nothing is ever drawn to them.
    tile.for_each_run(grid, [&](int64_t place, int64_t, auto length) {
      std::fill_n(through.flat() + place, length, T(1));
      std::fill_n(left.flat() + place, length, T(1));
      open_cells |= 1u << place / kCellPixels;
    });
  }

  // Draws the Gaussians `list` of a batch, whose first is number `first` of the tile, to a cell.
  void draw_cell(const Batch<T, kChannels>& batch, const uint8_t* list, int64_t length, int cell,
                 int64_t first, T max_alpha) {
    bool is_open = false;
    for (int part = 0; part < kCellParts<T>; ++part)
      is_open |= draw_part(batch, list, length, cell, part * int(kLanes<T>), first, max_alpha);
    if (!is_open) open_cells &= ~(1u << cell);
  }

  void finish(const TileGrid& grid, const Tile& tile, const int32_t* list, const T* background,
              const RasterOutputs<T>& out) const {
    const int64_t channels = kChannels == kAnyChannels ? num_channels : kChannels;
    tile.for_each_run(grid, [&](int64_t place, int64_t pixel, auto length) {
      const T* rest = left.flat() + place;
      std::copy_n(rest, length, out.transmittance + pixel);
      std::copy_n(count.flat() + place, length, out.counts + pixel);
      std::copy_n(stop.flat() + place, length, out.stops + pixel);
      for (int64_t k = 0; k < length; ++k) {
        const int64_t half = static_cast<int64_t>(median.flat()[place + k]);
        out.median_splats[pixel + k] = rest[k] <= T(0.5) ? list[half - 1] : -1;
        for (int64_t c = 0; c < channels; ++c)
          out.image[(pixel + k) * channels + c] =
              colors[c * kTilePixels + place + k] + rest[k] * background[c];
      }
    });
  }

 private:
  // Returns whether a pixel of the part is still not full.
  bool draw_part(const Batch<T, kChannels>& batch, const uint8_t* list, int64_t length, int cell,
                 int lane, int64_t first, T max_alpha) {
    const Vec<T> x = load(kGeometry<T>.x[cell % kCellsAcross] + lane);
    const Vec<T> y = load(kGeometry<T>.y[cell / kCellsAcross] + lane);
    Vec<T> front = load(through.cells[cell] + lane);
    Vec<T> rest = load(left.cells[cell] + lane);
    IntVec<T> num_drawn = load(count.cells[cell] + lane);
    IntVec<T> last{}, last_half{};  // Places in the batch, counted from 1.
    ColorSum<T, kChannels> color(colors.data() + cell * kCellPixels + lane, num_channels);

    const auto draw = [&](int64_t j, auto finds_median) {
      const LocalSplat<T, T> s = batch.one(j);
      const Vec<T> log2_alpha = s.log2_alpha(s.log2_opacity, s.u(x, y), s.e(y));
      const Mask<T> is_reached = is_at_least<T>(log2_alpha, broadcast(kFaintest<T>));
      const Vec<T> alpha = minimum<T>(exp2_normal<T>(log2_alpha), broadcast(max_alpha));
      const Vec<T> cover = select<T>(is_reached, alpha, Vec<T>{}) * front;
      const Vec<T> behind = front - cover;
      const Mask<T> is_drawn = is_at_least<T>(behind, broadcast(kFull<T>)) & is_reached;
      color.add(select<T>(is_drawn, cover, Vec<T>{}), batch, j);
      const IntVec<T> place = broadcast(kFromOne<Int>[j]);
      num_drawn = count_up<T>(num_drawn, is_drawn);
      last = select<T>(is_drawn, place, last);
      rest = select<T>(is_drawn, behind, rest);
      if constexpr (finds_median) {
        // The last one that is drawn while more than half gets through is the median.
        const Mask<T> is_half = is_less<T>(broadcast(T(0.5)), front) & is_drawn;
        last_half = select<T>(is_half, place, last_half);
      }
      front = behind;
    };
    // Now and then it is asked whether all is done. Most of a list lies behind the median.
    constexpr int64_t kRun = 16;
    bool is_open = length == 0 || any<T>(is_at_least<T>(front, broadcast(kFull<T>)));
    for (int64_t k = 0; k < length && is_open;) {
      const int64_t end = std::min(k + kRun, length);
      if (any<T>(is_less<T>(broadcast(T(0.5)), front)))
        for (; k < end; ++k) draw(list[k], std::true_type());
      else
        for (; k < end; ++k) draw(list[k], std::false_type());
      is_open = any<T>(is_at_least<T>(front, broadcast(kFull<T>)));
    }
    color.finish();
    store(through.cells[cell] + lane, front);
    store(left.cells[cell] + lane, rest);
    store(count.cells[cell] + lane, num_drawn);
    set_places(median.cells[cell] + lane, last_half, first);
    set_places(stop.cells[cell] + lane, last, first);
    return is_open;
  }

  // Turns places in the batch into places in the list; those that are 0 leave what was there.
  static void set_places(Int* target, IntVec<T> places, int64_t first) {
    const Mask<T> is_new = is_less<T>(IntVec<T>{}, places);
    store(target, select<T>(is_new, places + static_cast<Int>(first), load(target)));
  }
};

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

template <class T, int kChannels>
void draw_tile(const RasterSplats<T>& splats, const RasterLists& lists, const TileGrid& grid,
               T max_alpha, const RasterOutputs<T>& out, int64_t index) {
  const Tile tile(grid, index);
  const int32_t* list = lists.splats + lists.starts[index];
  const int64_t length = lists.starts[index + 1] - lists.starts[index];
  DrawnTile<T, kChannels> drawn(grid, tile, splats.num_channels);
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
void prepare(const RasterSplats<T>& splats, int64_t i, PreparedSplat<T>& out) {
  constexpr double kScale = 0.5 / 0.69314718055994530942;
  const T* conic = splats.conics + 3 * i;
  const double a = conic[0], b = conic[1], c = conic[2], determinant = a * c - b * b;
  // Not an ellipse, or nothing in it: never seen. Written so that NaN is refused.
  if (!(a > 0.0 && determinant > 0.0 && splats.opacities[i] > T(0))) {
    out = {};
    out.log2_opacity = -std::numeric_limits<T>::infinity();
    return;
  }
  const double inverse = 1.0 / a;
  out.across = std::sqrt(kScale * a);
  out.shear = out.across * b * inverse;
  out.down = std::sqrt(kScale * determinant * inverse);
  out.x = splats.centers[2 * i];
  out.y = splats.centers[2 * i + 1];
  out.log2_opacity = std::log2(splats.opacities[i]);
  if (splats.num_channels <= kInlineChannels)
    std::copy_n(splats.features + i * splats.num_channels, splats.num_channels, out.features);
}

}  // namespace

template <class T>
void rasterize_forward(const RasterSplats<T>& splats, const RasterLists& lists,
                       const TileGrid& grid, T max_alpha, const RasterOutputs<T>& out,
                       int num_threads) {
  parallel_for(splats.count, kSplatsPerPiece, num_threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      if (lists.splat_starts[i] < lists.splat_starts[i + 1]) prepare(splats, i, out.prepared[i]);
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
