// SPDX-License-Identifier: Apache-2.0
// What drawing a tile forwards and backwards share: its 4 x 4-pixel cells, and the next Gaussians
// of its list gathered side by side.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "rasterize.h"
#include "simd_math.h"

namespace diorama {

constexpr int kCellSide = 4, kCellPixels = kCellSide * kCellSide;
constexpr int kCellsAcross = kTileSize / kCellSide, kCells = kCellsAcross * kCellsAcross;
constexpr int kTilePixels = kCells * kCellPixels;
constexpr int kBatch = 256;
constexpr int kAnyChannels = 0;

// log2(1 / 255): a Gaussian is drawn to pixels where log2 alpha is at least this.
template <class T>
constexpr T kFaintest = T(-7.994353436858858);
// Below this transmittance a pixel is full.
template <class T>
constexpr T kFull = T(1e-4);

// One number for each pixel of a tile: cell by cell, in each row by row.
template <class N>
struct alignas(64) TilePixels {
  N cells[kCells][kCellPixels];

  N* flat() { return &cells[0][0]; }
  const N* flat() const { return &cells[0][0]; }
};

// A tile's place in the image.
struct Tile {
  int64_t left, top, width, height, image_width;

  Tile(const TileGrid& grid, int64_t index)
      : left(index % grid.columns() * kTileSize),
        top(index / grid.columns() * kTileSize),
        width(std::min(kTileSize, grid.width - left)),
        height(std::min(kTileSize, grid.height - top)),
        image_width(grid.width) {}

  // Calls visit(place, pixel, length) for runs of pixels that lie in the image, from number `pixel`
  // on; `place` is the first one's in TilePixels. A run is one row of a cell. Where it is whole its
  // length is known at compile time.
  template <class Visit>
  void for_each_run(const Visit& visit) const {
    for (int64_t y = 0; y < height; ++y) {
      const int64_t row = y / kCellSide * kCellsAcross * kCellPixels + y % kCellSide * kCellSide;
      const int64_t first = (top + y) * image_width + left;
      int64_t x = 0;
      for (; x + kCellSide <= width; x += kCellSide)
        visit(row + x * kCellSide, first + x, std::integral_constant<int64_t, kCellSide>());
      if (x < width) visit(row + x * kCellSide, first + x, width - x);
    }
  }
};

// Pixel centres of a cell and centres of all cells, from the tile's corner.
template <class T>
struct TileGeometry {
  alignas(64) T x[kCellsAcross][kCellPixels], y[kCellsAcross][kCellPixels];
  alignas(64) T cell_x[kCells], cell_y[kCells];

  constexpr TileGeometry() : x(), y(), cell_x(), cell_y() {
    for (int i = 0; i < kCellsAcross; ++i) {
      for (int k = 0; k < kCellPixels; ++k) {
        x[i][k] = T(i * kCellSide + k % kCellSide) + T(0.5);
        y[i][k] = T(i * kCellSide + k / kCellSide) + T(0.5);
      }
    }
    for (int cell = 0; cell < kCells; ++cell) {
      cell_x[cell] = T(cell % kCellsAcross * kCellSide + kCellSide / 2);
      cell_y[cell] = T(cell / kCellsAcross * kCellSide + kCellSide / 2);
    }
  }
};
template <class T>
inline constexpr TileGeometry<T> kGeometry;

// A Gaussian in the coordinates of a tile: u = u0 + across x + shear y, e = e0 + down y.
// Numbers (V = T) are one Gaussian, to be met by many pixels; vectors are one in each lane.
//
// Forward and backward must agree to the bit on which pixels are drawn to; so both come here, and
// the order of operations leaves the compiler no choice where to fuse them.
template <class T, class V>
struct LocalSplat {
  V u0, across, shear, e0, down, log2_opacity;

  Vec<T> u(Vec<T> x, Vec<T> y) const {
    const Vec<T> in_column = y * shear + u0;
    return x * across + in_column;
  }
  Vec<T> e(Vec<T> y) const { return y * down + e0; }

  static Vec<T> log2_alpha(V log2_opacity, Vec<T> u, Vec<T> e) {
    const Vec<T> in_column = log2_opacity - e * e;
    return in_column - u * u;
  }

  // An upper bound of log2 alpha over the pixels of the cell around (x, y): u and e are each taken
  // as near to 0 as they come there.
  Vec<T> bound(Vec<T> x, Vec<T> y) const {
    constexpr T kReach = T(kCellSide - 1) / 2;
    const Vec<T> du = absolute<T>(u(x, y)) - kReach * (across + absolute<T>(shear));
    const Vec<T> de = absolute<T>(e(y)) - kReach * down;
    return log2_alpha(log2_opacity, maximum<T>(du, Vec<T>{}), maximum<T>(de, Vec<T>{}));
  }
};

// The bound is rounded, so cells are kept that miss it by this much.
template <class T>
constexpr T kBoundMargin = T(1e-3);

// Up to kBatch Gaussians of a tile's list, each quantity in a row of its own.
template <class T, int kChannels>
struct Batch {
  alignas(64) T u0[kBatch], across[kBatch], shear[kBatch], e0[kBatch], down[kBatch];
  alignas(64) T log2_opacity[kBatch];
  // With kAnyChannels the features stay where they are.
  alignas(64) T features[std::max(kChannels, 1)][kBatch];
  const T* feature_rows[kBatch];

  void gather(const RasterScene<T>& scene, const PreparedSplat<T>* prepared, const int32_t* indices,
              int64_t count, const Tile& tile) {
    constexpr int64_t kAhead = 24;  // Gaussians, so that they arrive in time.
    static_assert(kChannels <= kInlineChannels);
    const double left = static_cast<double>(tile.left), top = static_cast<double>(tile.top);
    for (int64_t j = 0; j < count; ++j) {
      if (j + kAhead < count) __builtin_prefetch(prepared + indices[j + kAhead]);
      const PreparedSplat<T>& s = prepared[indices[j]];
      const double dx = left - static_cast<double>(s.x), dy = top - static_cast<double>(s.y);
      u0[j] = static_cast<T>(s.across * dx + s.shear * dy);
      e0[j] = static_cast<T>(s.down * dy);
      across[j] = static_cast<T>(s.across);
      shear[j] = static_cast<T>(s.shear);
      down[j] = static_cast<T>(s.down);
      log2_opacity[j] = s.log2_opacity;
      if constexpr (kChannels == kAnyChannels)
        feature_rows[j] = scene.features + indices[j] * scene.num_channels;
      else
        for (int c = 0; c < kChannels; ++c) features[c][j] = s.features[c];
    }
    // Whole vectors are looked at; what is not there is nowhere seen.
    const int64_t end = (count + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
    for (int64_t j = count; j < end; ++j) {
      u0[j] = across[j] = shear[j] = e0[j] = down[j] = T(0);
      log2_opacity[j] = -std::numeric_limits<T>::infinity();
    }
  }

  // Gaussian j.
  LocalSplat<T, T> one(int64_t j) const {
    return {u0[j], across[j], shear[j], e0[j], down[j], log2_opacity[j]};
  }

  // Gaussians j, j + 1 ..., one in each lane.
  LocalSplat<T, Vec<T>> many(int64_t j) const {
    return {load(u0 + j), load(across + j), load(shear + j),
            load(e0 + j), load(down + j),   load(log2_opacity + j)};
  }
};

// Calls work with the number of channels as a compile-time constant where that pays: colour, colour
// and depth, colour and depth and normal.
template <class T, class Work>
void with_raster_channels(int64_t num_channels, const Work& work) {
  if (num_channels == 3) return work(std::integral_constant<int, 3>());
  // Double precision is for tests, which one specialisation serves.
  if constexpr (sizeof(T) == 4) {
    if (num_channels == 1) return work(std::integral_constant<int, 1>());
    if (num_channels == 4) return work(std::integral_constant<int, 4>());
    if (num_channels == 7) return work(std::integral_constant<int, 7>());
  }
  return work(std::integral_constant<int, kAnyChannels>());
}

}  // namespace diorama
