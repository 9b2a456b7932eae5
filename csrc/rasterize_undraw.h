// SPDX-License-Identifier: Apache-2.0
// The pixels of a tile while the Gaussians that were blended into them are taken out again, back to
// front, and asked for their gradients.
#pragma once

#include <bit>
#include <vector>

#include "rasterize_pair.h"

namespace diorama {

// The pixels of a tile on the way back, with g = dL/dimage. For each: T, the transmittance in front
// of what has been undone so far; and B, what would be seen if only that were there, as the loss
// sees it. B begins as background . g - dL/dalpha, and with Gaussian i of features f in front
//   d = f . g - B,   dL/dalpha_i = T_i d,   dL/df = alpha_i T_i g,   B becomes B + alpha_i d.
// T_i comes from T_i+1 / (1 - alpha_i), the alphas being those of the forward pass to the bit. Each
// step adds a relative error of about 1e-7 in single precision; those of hundreds of steps mostly
// cancel, and stay below 1e-5.
template <class T, int kChannels, int kExtras>
struct UndrawnTile {
  using Int = SignedBits<T>;
  using Row = PairRow<kExtras>;
  TilePixels<T> transmittance, behind;
  TilePixels<Int> stop;
  Int last_stops[kCells] = {};  // The largest of a cell's.
  int64_t last_stop = 0;
  alignas(64) Int cells[kBatch];  // Of each Gaussian of the batch, as bits.
  std::vector<T> grads;           // Channels x pixels.
  std::vector<T> pixel_sums;      // 2 x pixels.
  std::vector<Vec<T>> workspace;
  int64_t num_channels;
  T max_alpha;
  bool is_faithful;

  // Fills grad_background with this tile's share of the background's gradient.
  UndrawnTile(const RasterScene<T>& scene, const Tile& tile, const RasterCotangents<T>& in,
              T* grad_background)
      : transmittance(),
        behind(),
        stop(),
        grads(scene.num_channels * kTilePixels),
        pixel_sums(kExtras == kPixelExtras ? 2 * kTilePixels : 0),
        workspace(kChannels == kAnyChannels ? scene.num_channels : 0),
        num_channels(scene.num_channels),
        max_alpha(scene.max_alpha),
        is_faithful(in.is_faithful) {
    const int64_t channels = kChannels == kAnyChannels ? num_channels : kChannels;
    tile.for_each_run([&](int64_t place, int64_t pixel, auto length) {
      std::copy_n(in.transmittance + pixel, length, transmittance.flat() + place);
      std::copy_n(in.stops + pixel, length, stop.flat() + place);
      T* const seen = behind.flat() + place;
      for (int64_t k = 0; k < length; ++k) {
        T grad_left = in.grad_alpha ? -in.grad_alpha[pixel + k] : T(0);
        for (int64_t c = 0; c < channels; ++c) {
          const T grad = in.grad_image[(pixel + k) * channels + c];
          grads[c * kTilePixels + place + k] = grad;
          grad_left += scene.background[c] * grad;
        }
        seen[k] = grad_left;
      }
    });
    for (int64_t c = 0; c < channels; ++c) {
      Vec<T> total{};
      for (int64_t k = 0; k < kTilePixels; k += kLanes<T>)
        total += load(transmittance.flat() + k) * load(grads.data() + c * kTilePixels + k);
      grad_background[c] = sum<T>(total);
    }
    for (int cell = 0; cell < kCells; ++cell) {
      last_stops[cell] = *std::max_element(stop.cells[cell], stop.cells[cell] + kCellPixels);
      last_stop = std::max<int64_t>(last_stop, last_stops[cell]);
    }
  }

  // For each Gaussian of a batch, whose first is number `first` of the list, finds the cells that
  // it may have been drawn to.
  void find_cells(const Batch<T, kChannels>& batch, int64_t count, int64_t first) {
    const Vec<T> least = broadcast(kFaintest<T> - kBoundMargin<T>);
    for (int64_t j = 0; j < count; j += kLanes<T>) {
      const LocalSplat<T, Vec<T>> many = batch.many(j);
      const IntVec<T> places = lane_numbers<Int>() + static_cast<Int>(first + j);
      IntVec<T> bits{};
      for (int cell = 0; cell < kCells; ++cell) {
        const Vec<T> bound =
            many.bound(broadcast(kGeometry<T>.cell_x[cell]), broadcast(kGeometry<T>.cell_y[cell]));
        const Mask<T> is_reached =
            is_at_least<T>(bound, least) & is_less<T>(places, broadcast(last_stops[cell]));
        bits |= select<T>(is_reached, broadcast(static_cast<Int>(1 << cell)), IntVec<T>{});
      }
      store(cells + j, bits);
    }
  }

  // Gaussian j of the batch that find_cells has seen, number `place` of the list.
  void undraw(const Batch<T, kChannels>& batch, int64_t j, Int place, T* row) {
    uint32_t left = static_cast<uint32_t>(cells[j]);
    if (!left) {
      std::fill_n(row, Row::length(num_channels), T(0));
      return;
    }
    PairSums<T, kChannels, kExtras> sums(workspace.data(), num_channels);
    const Sweep sweep{batch.one(j), place, max_alpha, is_faithful, grads.data()};
    for (; left; left &= left - 1) {
      const int cell = std::countr_zero(left);
      for (int lane = 0; lane < kCellPixels; lane += kLanes<T>)
        undraw_part(sweep, batch, j, cell, lane, sums);
    }
    sums.finish(row, num_channels);
  }

  void finish(const Tile& tile, T* pixel_gradients) const {
    if constexpr (kExtras == kPixelExtras)
      tile.for_each_run([&](int64_t place, int64_t pixel, auto length) {
        for (int64_t k = 0; k < length; ++k) {
          pixel_gradients[2 * (pixel + k)] = pixel_sums[place + k];
          pixel_gradients[2 * (pixel + k) + 1] = pixel_sums[kTilePixels + place + k];
        }
      });
  }

 private:
  // What stays the same while a Gaussian visits its cells. A copy, because for all that the
  // compiler knows the pixels that are stored might be these.
  struct Sweep {
    LocalSplat<T, T> splat;
    Int place;
    T max_alpha;
    bool is_faithful;
    const T* grads;
  };

  [[gnu::always_inline]] inline void undraw_part(const Sweep& sweep,
                                                 const Batch<T, kChannels>& batch, int64_t j,
                                                 int cell, int lane,
                                                 PairSums<T, kChannels, kExtras>& sums) {
    const LocalSplat<T, T>& s = sweep.splat;
    const Vec<T> x = load(kGeometry<T>.x[cell % kCellsAcross] + lane);
    const Vec<T> y = load(kGeometry<T>.y[cell / kCellsAcross] + lane);
    const Vec<T> u = s.u(x, y), e = s.e(y);
    const Vec<T> log2_alpha = s.log2_alpha(s.log2_opacity, u, e);
    const Mask<T> is_drawn = is_at_least<T>(log2_alpha, broadcast(kFaintest<T>)) &
                             is_less<T>(broadcast(sweep.place), load(stop.cells[cell] + lane));
    const Vec<T> free = select<T>(is_drawn, exp2_normal<T>(log2_alpha), Vec<T>{});
    const Vec<T> alpha = minimum<T>(free, broadcast(sweep.max_alpha));

    const Vec<T> front = load(transmittance.cells[cell] + lane) * reciprocal<T>(T(1) - alpha);
    const Vec<T> weight = alpha * front;
    Vec<T> value{};
    const T* grad = sweep.grads + cell * kCellPixels + lane;
    const int64_t channels = kChannels == kAnyChannels ? num_channels : kChannels;
    for (int64_t c = 0; c < channels; ++c) {
      const Vec<T> g = load(grad + c * kTilePixels);
      value += feature(batch, j, c) * g;
      sums.features.add(c, weight * g);
    }
    store(transmittance.cells[cell] + lane, front);
    const Vec<T> rest = load(behind.cells[cell] + lane);
    const Vec<T> more = value - rest;
    store(behind.cells[cell] + lane, rest + alpha * more);

    // Where alpha was cut it does not depend on the Gaussian.
    const Mask<T> is_cut = is_less<T>(broadcast(sweep.max_alpha), free);
    const Vec<T> through = sweep.is_faithful ? free * front : Vec<T>{};
    const Vec<T> h = select<T>(is_cut, through, weight) * more;
    const Vec<T> hu = h * u, he = h * e;
    sums.add_moments(h, hu, he, u, e);
    if constexpr (kExtras != kNoExtras) {
      constexpr T kTwoLn2 = T(1.38629436111989061883);
      const Vec<T> abs_x = absolute<T>(hu * (kTwoLn2 * s.across));
      const Vec<T> abs_y = absolute<T>(hu * (kTwoLn2 * s.shear) + he * (kTwoLn2 * s.down));
      sums.add_extras(abs_x, abs_y, std::popcount(bits_of<T>(is_drawn)));
      if constexpr (kExtras == kPixelExtras) {
        T* at = pixel_sums.data() + cell * kCellPixels + lane;
        store(at, load(at) + abs_x);
        store(at + kTilePixels, load(at + kTilePixels) + abs_y);
      }
    }
  }

  static T feature(const Batch<T, kChannels>& batch, int64_t j, int64_t c) {
    if constexpr (kChannels == kAnyChannels)
      return batch.feature_rows[j][c];
    else
      return batch.features[c][j];
  }
};

}  // namespace diorama
