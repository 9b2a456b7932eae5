// SPDX-License-Identifier: Apache-2.0
// The tiles of an image that a Gaussian can be seen in, found one row of tiles at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace diorama {

constexpr int64_t kTileSize = 16;  // pixels, in both directions

// An image of width x height pixels, cut into tiles; those at the right and lower edge may be cut.
struct TileGrid {
  int64_t width, height;

  int64_t columns() const { return (width + kTileSize - 1) / kTileSize; }
  int64_t rows() const { return (height + kTileSize - 1) / kTileSize; }
  int64_t size() const { return columns() * rows(); }
};

// Added to ln(255 opacity), and to the box: what the rasteriser's rounding might still let through
// must not be lost here. All of it is computed in double precision, whatever the inputs are.
constexpr double kPowerMargin = 1e-3;
constexpr double kBoxMarginRelative = 1e-4, kBoxMarginPixels = 0.01;

// All (dx, dy) from the centre with a dx^2 + 2 b dx dy + c dy^2 <= level, and within the box.
struct Ellipse {
  double x, y, a, b, c, level, half_width, half_height;

  // Of Gaussian i; `level` is negative, and the ellipse empty, if it is culled or degenerate.
  template <class T>
  static Ellipse of(const T* centers, const T* conics, const T* opacities, const T* half_extents,
                    int64_t i) {
    const T* conic = conics + 3 * i;
    Ellipse e{centers[2 * i],
              centers[2 * i + 1],
              conic[0],
              conic[1],
              conic[2],
              -1.0,
              half_extents[2 * i] * (1.0 + kBoxMarginRelative) + kBoxMarginPixels,
              half_extents[2 * i + 1] * (1.0 + kBoxMarginRelative) + kBoxMarginPixels};
    const bool is_visible = half_extents[2 * i] > T(0) && half_extents[2 * i + 1] > T(0);
    const double reach = 255.0 * static_cast<double>(opacities[i]);
    if (is_visible && reach >= 1.0 && e.a > 0.0 && e.determinant() > 0.0)
      // Single precision is far finer than the margin, and quicker.
      e.level = 2.0 * (std::log(static_cast<float>(reach)) + kPowerMargin);
    return e;
  }

  double determinant() const { return a * c - b * b; }

  // Calls visit(row, first_column, last_column) for the rows of tiles that it reaches.
  //
  // Seen are pixel centres, so a tile is the rectangle from its first to its last pixel centre. The
  // part of the ellipse between the first and the last line of a row is convex: it meets a tile of
  // that row exactly if its extent along x meets the tile's.
  template <class Visit>
  void for_each_row(const TileGrid& grid, const Visit& visit) const {
    const double bottom = static_cast<double>(grid.height) - 0.5;
    const double right = static_cast<double>(grid.width) - 0.5;
    const double y_first = std::max(y - half_height, 0.5);
    const double y_last = std::min(y + half_height, bottom);
    const double x_first = std::max(x - half_width, 0.5), x_last = std::min(x + half_width, right);
    // Written so that NaN is refused.
    if (!(level >= 0.0 && y_first <= y_last && x_first <= x_last)) return;

    const double inverse = 1.0 / a, slope = -b * inverse, shrink = determinant() * inverse;
    const double tallest = std::sqrt(level / shrink);
    // Where the ellipse is widest to the right; to the left it is the opposite point.
    const double y_widest = -b * std::sqrt(level / (c * determinant()));
    for (int64_t row = first_tile(y_first); row <= last_tile(y_last); ++row) {
      const double top = static_cast<double>(row * kTileSize) + 0.5;
      const double low = std::max(top - y, -tallest);
      const double high = std::min(std::min(top + (kTileSize - 1), bottom) - y, tallest);
      if (!(low <= high)) continue;
      const auto reach = [&](double dy) {
        return std::sqrt(std::max(0.0, (level - shrink * dy * dy) * inverse));
      };
      const double dy_right = std::clamp(y_widest, low, high);
      const double dy_left = std::clamp(-y_widest, low, high);
      const double x_right = std::min(x + slope * dy_right + reach(dy_right), x_last);
      const double x_left = std::max(x + slope * dy_left - reach(dy_left), x_first);
      if (!(x_left <= right && x_right >= 0.5)) continue;
      const int64_t first = first_tile(x_left), last = last_tile(x_right);
      if (first <= last) visit(row, first, last);
    }
  }

 private:
  // The first tile that ends at this coordinate (at least 0.5) or behind it.
  static int64_t first_tile(double coordinate) {
    return static_cast<int64_t>(std::ceil((coordinate - (kTileSize - 0.5)) / kTileSize));
  }

  // The last tile that begins at this coordinate (at least 0.5) or before it.
  static int64_t last_tile(double coordinate) {
    return static_cast<int64_t>(std::floor((coordinate - 0.5) / kTileSize));
  }
};

}  // namespace diorama
