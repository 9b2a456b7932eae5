// SPDX-License-Identifier: Apache-2.0
// Rasterising backward: a tile's list from back to front; each Gaussian sweeps the cells it
// reaches, and what it gathers there goes to a row of its own. Rows are then summed by Gaussian, in
// the order of the tiles: no thread writes what another does, and the order never changes.
#include <bit>
#include <memory>
#include <vector>

#include "huge_pages.h"
#include "parallel.h"
#include "rasterize_batch.h"
#include "rasterize_pair.h"

namespace diorama {
namespace {

constexpr int64_t kSplatsPerPiece = 1024;
constexpr int64_t kAhead = 8;  // Gaussians

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
  alignas(64) Int cells[kBatch];
  int64_t last_stop = 0;
  std::vector<T> grads;  // Channels x pixels.
  std::vector<T> pixel_sums;
  std::vector<Vec<T>> workspace;
  int64_t num_channels;
  T max_alpha;
  bool is_faithful;

  UndrawnTile(const RasterSplats<T>& splats, const TileGrid& grid, const Tile& tile, T max,
              bool faithful, const RasterCotangents<T>& in, T* grad_background)
      : transmittance(),
        behind(),
        stop(),
        grads(splats.num_channels * kTilePixels),
        pixel_sums(kExtras == kPixelExtras ? 2 * kTilePixels : 0),
        workspace(kChannels == kAnyChannels ? splats.num_channels : 0),
        num_channels(splats.num_channels),
        max_alpha(max),
        is_faithful(faithful) {
    const int64_t channels = kChannels == kAnyChannels ? num_channels : kChannels;
    tile.for_each_run(grid, [&](int64_t place, int64_t pixel, auto length) {
      std::copy_n(in.transmittance + pixel, length, transmittance.flat() + place);
      std::copy_n(in.stops + pixel, length, stop.flat() + place);
      T* const seen = behind.flat() + place;
      for (int64_t k = 0; k < length; ++k) {
        T grad_left = in.grad_alpha ? -in.grad_alpha[pixel + k] : T(0);
        for (int64_t c = 0; c < channels; ++c) {
          const T grad = in.grad_image[(pixel + k) * channels + c];
          grads[c * kTilePixels + place + k] = grad;
          grad_left += splats.background[c] * grad;
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
    const LocalSplat<T, T> s = batch.one(j);
    PairSums<T, kChannels, kExtras> sums(workspace.data(), num_channels);
    // The compiler cannot know that pixels which are stored are none of these.
    const Pixels pixels{s, place, max_alpha, is_faithful, grads.data()};
    for (; left; left &= left - 1) {
      const int cell = std::countr_zero(left);
      for (int lane = 0; lane < kCellPixels; lane += kLanes<T>)
        undraw_part(pixels, batch, j, cell, lane, sums);
    }
    sums.finish(row, num_channels);
  }

  void finish(const TileGrid& grid, const Tile& tile, T* pixel_gradients) const {
    if constexpr (kExtras == kPixelExtras)
      tile.for_each_run(grid, [&](int64_t place, int64_t pixel, auto length) {
        for (int64_t k = 0; k < length; ++k) {
          pixel_gradients[2 * (pixel + k)] = pixel_sums[place + k];
          pixel_gradients[2 * (pixel + k) + 1] = pixel_sums[kTilePixels + place + k];
        }
      });
  }

 private:
  struct Pixels {
    LocalSplat<T, T> splat;
    Int place;
    T max_alpha;
    bool is_faithful;
    const T* grads;
  };

  [[gnu::always_inline]] inline void undraw_part(const Pixels& now,
                                                 const Batch<T, kChannels>& batch, int64_t j,
                                                 int cell, int lane,
                                                 PairSums<T, kChannels, kExtras>& sums) {
    const LocalSplat<T, T>& s = now.splat;
    const Vec<T> x = load(kGeometry<T>.x[cell % kCellsAcross] + lane);
    const Vec<T> y = load(kGeometry<T>.y[cell / kCellsAcross] + lane);
    const Vec<T> u = s.u(x, y), e = s.e(y);
    const Vec<T> log2_alpha = s.log2_alpha(s.log2_opacity, u, e);
    const Mask<T> is_drawn = is_at_least<T>(log2_alpha, broadcast(kFaintest<T>)) &
                             is_less<T>(broadcast(now.place), load(stop.cells[cell] + lane));

    const Vec<T> free = select<T>(is_drawn, exp2_normal<T>(log2_alpha), Vec<T>{});
    const Vec<T> alpha = minimum<T>(free, broadcast(now.max_alpha));

    const Vec<T> front = load(transmittance.cells[cell] + lane) * reciprocal<T>(T(1) - alpha);
    const Vec<T> weight = alpha * front;
    Vec<T> value{};
    const T* grad = now.grads + cell * kCellPixels + lane;
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
    const Mask<T> is_cut = is_less<T>(broadcast(now.max_alpha), free);
    const Vec<T> through = now.is_faithful ? free * front : Vec<T>{};
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

template <class T, int kChannels, int kExtras>
void undraw_tile(const RasterSplats<T>& splats, const RasterLists& lists, const TileGrid& grid,
                 T max_alpha, bool is_faithful, const RasterCotangents<T>& in, T* pixel_gradients,
                 T* rows, T* grad_background, int64_t index) {
  const Tile tile(grid, index);
  const int64_t start = lists.starts[index], length = lists.starts[index + 1] - start;
  const int64_t row_length = PairRow<kExtras>::length(splats.num_channels);
  UndrawnTile<T, kChannels, kExtras> undrawn(splats, grid, tile, max_alpha, is_faithful, in,
                                             grad_background);
  Batch<T, kChannels> batch;
  const auto row = [&](int64_t place) { return rows + lists.slots[start + place] * row_length; };
  const int64_t seen = std::min(length, undrawn.last_stop);
  for (int64_t place = seen; place < length; ++place) std::fill_n(row(place), row_length, T(0));
  for (int64_t end = seen; end > 0;) {
    const int64_t first = (end - 1) / kBatch * kBatch;
    batch.gather(splats, in.prepared, lists.splats + start + first, end - first, tile);
    undrawn.find_cells(batch, end - first, first);
    for (int64_t place = end - 1; place >= first; --place) {
      // The row will be somewhere in memory: have it fetched before it is written.
      if (place >= kAhead) __builtin_prefetch(row(place - kAhead), 1);
      undrawn.undraw(batch, place - first, static_cast<SignedBits<T>>(place), row(place));
    }
    end = first;
  }
  undrawn.finish(grid, tile, pixel_gradients);
}

// From the sums over all pixels to the gradients of Gaussian i. With dx = (u - shear dy) / across
// and dy = e / down: dL/da = -1/2 sum h dx^2, dL/db = -sum h dx dy, dL/dc = -1/2 sum h dy^2,
// dL/dcenter = sum h conic d, dL/dopacity = sum h / opacity.
template <class T, int kExtras>
void finish_splat(const RasterSplats<T>& splats, const PreparedSplat<T>& s, const T* sums,
                  const RasterGradients<T>& out, int64_t i) {
  using Row = PairRow<kExtras>;
  constexpr T kTwoLn2 = T(1.38629436111989061883);
  const T across = static_cast<T>(s.across), shear = static_cast<T>(s.shear);
  const T down = static_cast<T>(s.down);
  if (out.centers) {
    out.centers[2 * i] = kTwoLn2 * across * sums[1];
    out.centers[2 * i + 1] = kTwoLn2 * (shear * sums[1] + down * sums[2]);
  }
  if (out.conics) {
    const T per_across = T(1) / across, per_down = T(1) / down;
    const T lean = shear * per_down;
    const T yy = sums[5] * per_down * per_down;
    const T xy = (sums[4] - lean * sums[5]) * per_down * per_across;
    const T xx =
        (sums[3] - T(2) * lean * sums[4] + lean * lean * sums[5]) * per_across * per_across;
    out.conics[3 * i] = T(-0.5) * xx;
    out.conics[3 * i + 1] = -xy;
    out.conics[3 * i + 2] = T(-0.5) * yy;
  }
  if (out.opacities) out.opacities[i] = sums[0] / splats.opacities[i];
  if (out.features)
    std::copy_n(sums + Row::kFeatures, splats.num_channels, out.features + i * splats.num_channels);
  if constexpr (kExtras != kNoExtras) {
    std::copy_n(sums + Row::kAbsolute, 2, out.abs_gradients + 2 * i);
    out.gradient_norms[i] = sums[Row::kNorm];
    out.pixels[i] = static_cast<int32_t>(sums[Row::kFeatures + splats.num_channels]);
  }
}

template <class T>
void clear_splat(const RasterGradients<T>& out, int64_t num_channels, int64_t i) {
  if (out.centers) std::fill_n(out.centers + 2 * i, 2, T(0));
  if (out.conics) std::fill_n(out.conics + 3 * i, 3, T(0));
  if (out.opacities) out.opacities[i] = T(0);
  if (out.features) std::fill_n(out.features + i * num_channels, num_channels, T(0));
  if (out.gradient_norms) {
    std::fill_n(out.abs_gradients + 2 * i, 2, T(0));
    out.gradient_norms[i] = T(0);
    out.pixels[i] = 0;
  }
}

template <class T, int kChannels, int kExtras>
void sum_rows(const RasterSplats<T>& splats, const RasterLists& lists,
              const PreparedSplat<T>* prepared, const T* rows, const RasterGradients<T>& out,
              int num_threads) {
  constexpr int64_t kLength = PairRow<kExtras>::length(kChannels);
  const int64_t length =
      kChannels == kAnyChannels ? PairRow<kExtras>::length(splats.num_channels) : kLength;
  parallel_for(splats.count, kSplatsPerPiece, num_threads, [&](int64_t begin, int64_t end) {
    const int64_t num_vectors = (length + kLanes<T> - 1) / kLanes<T>;
    std::vector<T> sums(num_vectors * kLanes<T>);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = lists.splat_starts[i], last = lists.splat_starts[i + 1];
      if (first == last || prepared[i].across == 0.0) {
        clear_splat(out, splats.num_channels, i);
        continue;
      }
      // Whole vectors: what is behind a row's end is summed in vain.
      for (int64_t k = 0; k < length; k += kLanes<T>) {
        Vec<T> total = load(rows + first * length + k);
        for (int64_t slot = first + 1; slot < last; ++slot) total += load(rows + slot * length + k);
        store(sums.data() + k, total);
      }
      finish_splat<T, kExtras>(splats, prepared[i], sums.data(), out, i);
    }
  });
}

template <class T, int kChannels, int kExtras>
void backward(const RasterSplats<T>& splats, const RasterLists& lists, const TileGrid& grid,
              T max_alpha, bool is_faithful, const RasterCotangents<T>& in,
              const RasterGradients<T>& out, int num_threads) {
  const int64_t num_channels = splats.num_channels, num_tiles = grid.size();
  const int64_t num_numbers = lists.num_pairs * PairRow<kExtras>::length(num_channels);
  const std::unique_ptr<T[]> rows(new T[num_numbers + kLanes<T>]);
  advise_huge_pages(rows.get(), num_numbers * sizeof(T));
  std::fill_n(rows.get() + num_numbers, kLanes<T>, T(0));  // The last row is read in whole vectors.
  std::vector<T> backgrounds(num_tiles * num_channels);
  parallel_for(num_tiles, 1, num_threads, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile)
      undraw_tile<T, kChannels, kExtras>(splats, lists, grid, max_alpha, is_faithful, in,
                                         out.pixel_gradients, rows.get(),
                                         backgrounds.data() + tile * num_channels, tile);
  });
  sum_rows<T, kChannels, kExtras>(splats, lists, in.prepared, rows.get(), out, num_threads);
  if (out.background) {
    for (int64_t c = 0; c < num_channels; ++c) {
      double total = 0.0;
      for (int64_t tile = 0; tile < num_tiles; ++tile)
        total += backgrounds[tile * num_channels + c];
      out.background[c] = static_cast<T>(total);
    }
  }
}

}  // namespace

template <class T>
void rasterize_backward(const RasterSplats<T>& splats, const RasterLists& lists,
                        const TileGrid& grid, T max_alpha, bool is_faithful,
                        const RasterCotangents<T>& in, const RasterGradients<T>& out,
                        int num_threads) {
  with_raster_channels<T>(splats.num_channels, [&](auto channels) {
    const auto run = [&](auto extras) {
      backward<T, channels, extras>(splats, lists, grid, max_alpha, is_faithful, in, out,
                                    num_threads);
    };
    if (out.pixel_gradients)
      run(std::integral_constant<int, kPixelExtras>());
    else if (out.gradient_norms)
      run(std::integral_constant<int, kSplatExtras>());
    else
      run(std::integral_constant<int, kNoExtras>());
  });
}

template void rasterize_backward(const RasterSplats<float>&, const RasterLists&, const TileGrid&,
                                 float, bool, const RasterCotangents<float>&,
                                 const RasterGradients<float>&, int);
template void rasterize_backward(const RasterSplats<double>&, const RasterLists&, const TileGrid&,
                                 double, bool, const RasterCotangents<double>&,
                                 const RasterGradients<double>&, int);

}  // namespace diorama
