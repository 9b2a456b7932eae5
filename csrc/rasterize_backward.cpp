// SPDX-License-Identifier: Apache-2.0
// Rasterising backward: a tile's list from back to front; each Gaussian sweeps the cells it
// reaches, and what it gathers there goes to a row of its own. Rows are then summed by Gaussian, in
// the order of the tiles: no thread writes what another does, and the order never changes.
#include <memory>
#include <vector>

#include "huge_pages.h"
#include "parallel.h"
#include "rasterize_undraw.h"

namespace diorama {
namespace {

constexpr int64_t kSplatsPerPiece = 1024;
constexpr int64_t kAhead = 8;  // Gaussians

template <class T, int kChannels, int kExtras>
void undraw_tile(const RasterScene<T>& scene, const RasterCotangents<T>& in, int64_t index, T* rows,
                 T* grad_background, T* pixel_gradients) {
  const Tile tile(scene.grid, index);
  const RasterLists& lists = scene.lists;
  const int64_t start = lists.starts[index], length = lists.starts[index + 1] - start;
  const int64_t row_length = PairRow<kExtras>::length(scene.num_channels);
  const auto row = [&](int64_t place) { return rows + lists.slots[start + place] * row_length; };
  UndrawnTile<T, kChannels, kExtras> undrawn(scene, tile, in, grad_background);
  Batch<T, kChannels> batch;
  const int64_t seen = std::min(length, undrawn.last_stop);
  for (int64_t place = seen; place < length; ++place) std::fill_n(row(place), row_length, T(0));
  for (int64_t end = seen; end > 0;) {
    const int64_t first = (end - 1) / kBatch * kBatch;
    batch.gather(scene, in.prepared, lists.splats + start + first, end - first, tile);
    undrawn.find_cells(batch, end - first, first);
    for (int64_t place = end - 1; place >= first; --place) {
      // The row will be somewhere in memory: have it fetched before it is written.
      if (place >= kAhead) {
        __builtin_prefetch(row(place - kAhead), 1);
        __builtin_prefetch(row(place - kAhead) + row_length - 1, 1);
      }
      undrawn.undraw(batch, place - first, static_cast<SignedBits<T>>(place), row(place));
    }
    end = first;
  }
  undrawn.finish(tile, pixel_gradients);
}

// From the sums over all pixels to the gradients of Gaussian i. With dx = (u - shear dy) / across
// and dy = e / down: dL/da = -1/2 sum h dx^2, dL/db = -sum h dx dy, dL/dc = -1/2 sum h dy^2,
// dL/dcenter = sum h conic d, dL/dopacity = sum h / opacity.
template <class T, int kExtras>
void finish_splat(const RasterScene<T>& scene, const PreparedSplat<T>& s, const T* sums,
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
  if (out.opacities) out.opacities[i] = sums[0] / scene.opacities[i];
  if (out.features)
    std::copy_n(sums + Row::kFeatures, scene.num_channels, out.features + i * scene.num_channels);
  if constexpr (kExtras != kNoExtras) {
    std::copy_n(sums + Row::kAbsolute, 2, out.abs_gradients + 2 * i);
    out.gradient_norms[i] = sums[Row::kNorm];
    out.pixels[i] = static_cast<int32_t>(sums[Row::kFeatures + scene.num_channels]);
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
void sum_rows(const RasterScene<T>& scene, const PreparedSplat<T>* prepared, const T* rows,
              const RasterGradients<T>& out, int num_threads) {
  constexpr int64_t kLength = PairRow<kExtras>::length(kChannels);
  const int64_t length =
      kChannels == kAnyChannels ? PairRow<kExtras>::length(scene.num_channels) : kLength;
  parallel_for(scene.count, kSplatsPerPiece, num_threads, [&](int64_t begin, int64_t end) {
    const int64_t num_vectors = (length + kLanes<T> - 1) / kLanes<T>;
    std::vector<T> sums(num_vectors * kLanes<T>);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = scene.lists.splat_starts[i], last = scene.lists.splat_starts[i + 1];
      if (first == last || prepared[i].across == 0.0) {
        clear_splat(out, scene.num_channels, i);
        continue;
      }
      // Whole vectors: what is behind a row's end is summed in vain.
      for (int64_t k = 0; k < length; k += kLanes<T>) {
        Vec<T> total = load(rows + first * length + k);
        for (int64_t slot = first + 1; slot < last; ++slot) total += load(rows + slot * length + k);
        store(sums.data() + k, total);
      }
      finish_splat<T, kExtras>(scene, prepared[i], sums.data(), out, i);
    }
  });
}

template <class T, int kChannels, int kExtras>
void backward(const RasterScene<T>& scene, const RasterCotangents<T>& in,
              const RasterGradients<T>& out, int num_threads) {
  const int64_t num_channels = scene.num_channels, num_tiles = scene.grid.size();
  const int64_t num_numbers = scene.lists.num_pairs * PairRow<kExtras>::length(num_channels);
  const std::unique_ptr<T[]> rows(new T[num_numbers + kLanes<T>]);
  advise_huge_pages(rows.get(), num_numbers * sizeof(T));
  std::fill_n(rows.get() + num_numbers, kLanes<T>, T(0));  // The last row is read in whole vectors.
  std::vector<T> backgrounds(num_tiles * num_channels);
  parallel_for(num_tiles, 1, num_threads, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile)
      undraw_tile<T, kChannels, kExtras>(scene, in, tile, rows.get(),
                                         backgrounds.data() + tile * num_channels,
                                         out.pixel_gradients);
  });
  sum_rows<T, kChannels, kExtras>(scene, in.prepared, rows.get(), out, num_threads);
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
void rasterize_backward(const RasterScene<T>& scene, const RasterCotangents<T>& in,
                        const RasterGradients<T>& out, int num_threads) {
  with_raster_channels<T>(scene.num_channels, [&](auto channels) {
    const auto run = [&](auto extras) {
      backward<T, channels, extras>(scene, in, out, num_threads);
    };
    if (out.pixel_gradients)
      run(std::integral_constant<int, kPixelExtras>());
    else if (out.gradient_norms)
      run(std::integral_constant<int, kSplatExtras>());
    else
      run(std::integral_constant<int, kNoExtras>());
  });
}

template void rasterize_backward(const RasterScene<float>&, const RasterCotangents<float>&,
                                 const RasterGradients<float>&, int);
template void rasterize_backward(const RasterScene<double>&, const RasterCotangents<double>&,
                                 const RasterGradients<double>&, int);

}  // namespace diorama
