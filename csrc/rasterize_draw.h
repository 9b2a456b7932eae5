// SPDX-License-Identifier: Apache-2.0
// The pixels of a tile while Gaussians are blended into them, front to back.
#pragma once

#include <array>
#include <vector>

#include "rasterize_batch.h"

namespace diorama {

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
  T max_alpha;

  DrawnTile(const RasterScene<T>& scene, const Tile& tile)
      : through(),
        left(),
        count(),
        median(),
        stop(),
        colors(scene.num_channels * kTilePixels),
        num_channels(scene.num_channels),
        max_alpha(scene.max_alpha) {
    // Pixels outside the image remain at 0: nothing is ever drawn to them.
    tile.for_each_run([&](int64_t place, int64_t, auto length) {
      std::fill_n(through.flat() + place, length, T(1));
      std::fill_n(left.flat() + place, length, T(1));
      open_cells |= 1u << place / kCellPixels;
    });
  }

  // Draws the Gaussians `list` of a batch, whose first is number `first` of the tile, to a cell.
  void draw_cell(const Batch<T, kChannels>& batch, const uint8_t* list, int64_t length, int cell,
                 int64_t first) {
    bool is_open = false;
    for (int lane = 0; lane < kCellPixels; lane += kLanes<T>)
      is_open |= draw_part(batch, list, length, cell, lane, first);
    if (!is_open) open_cells &= ~(1u << cell);
  }

  // Writes the tile, whose list this is, to the image.
  void finish(const Tile& tile, const int32_t* list, const T* background,
              const RasterOutputs<T>& out) const {
    const int64_t channels = kChannels == kAnyChannels ? num_channels : kChannels;
    tile.for_each_run([&](int64_t place, int64_t pixel, auto length) {
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
                 int lane, int64_t first) {
    const Vec<T> most = broadcast(max_alpha);
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
      const Vec<T> alpha = minimum<T>(exp2_normal<T>(log2_alpha), most);
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

}  // namespace diorama
