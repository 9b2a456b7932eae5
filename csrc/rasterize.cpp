// SPDX-License-Identifier: Apache-2.0
// Rasterising forward: a tile's list is taken in batches; each cell of 4 x 4 pixels finds those of
// a batch that reach it, and blends them with its pixels held in registers.
#include "rasterize.h"

#include "parallel.h"
#include "rasterize_cells.h"
#include "rasterize_draw.h"

namespace diorama {
namespace {

constexpr int64_t kSplatsPerPiece = 1024;

template <class T>
void prepare(const RasterScene<T>& scene, int64_t i, PreparedSplat<T>& out) {
  constexpr double kScale = 0.5 / 0.69314718055994530942;
  const T* conic = scene.conics + 3 * i;
  const double a = conic[0], b = conic[1], c = conic[2], determinant = a * c - b * b;
  // Not an ellipse, or nothing in it: never seen. Written so that NaN is refused.
  if (!(a > 0.0 && determinant > 0.0 && scene.opacities[i] > T(0))) {
    out = {};
    out.log2_opacity = -std::numeric_limits<T>::infinity();
    return;
  }
  const double inverse = 1.0 / a;
  out.across = std::sqrt(kScale * a);
  out.shear = out.across * b * inverse;
  out.down = std::sqrt(kScale * determinant * inverse);
  out.x = scene.centers[2 * i];
  out.y = scene.centers[2 * i + 1];
  out.log2_opacity = std::log2(scene.opacities[i]);
  if (scene.num_channels <= kInlineChannels)
    std::copy_n(scene.features + i * scene.num_channels, scene.num_channels, out.features);
}

template <class T, int kChannels>
void draw_tile(const RasterScene<T>& scene, const RasterOutputs<T>& out, int64_t index) {
  const Tile tile(scene.grid, index);
  const int64_t start = scene.lists.starts[index], length = scene.lists.starts[index + 1] - start;
  const int32_t* list = scene.lists.splats + start;
  DrawnTile<T, kChannels> drawn(scene, tile);
  Batch<T, kChannels> batch;
  CellLists cells;
  for (int64_t first = 0; first < length && drawn.open_cells; first += kBatch) {
    const int64_t count = std::min<int64_t>(kBatch, length - first);
    batch.gather(scene, out.prepared, list + first, count, tile);
    cells.fill<T, kChannels>(batch, count, drawn.open_cells);
    for (int cell = 0; cell < kCells; ++cell)
      drawn.draw_cell(batch, cells.places[cell], cells.counts[cell], cell, first);
  }
  drawn.finish(tile, list, scene.background, out);
}

}  // namespace

template <class T>
void rasterize_forward(const RasterScene<T>& scene, const RasterOutputs<T>& out, int num_threads) {
  parallel_for(scene.count, kSplatsPerPiece, num_threads, [&](int64_t begin, int64_t end) {
    const int64_t* starts = scene.lists.splat_starts;
    for (int64_t i = begin; i < end; ++i)
      if (starts[i] < starts[i + 1]) prepare(scene, i, out.prepared[i]);
  });
  with_raster_channels<T>(scene.num_channels, [&](auto channels) {
    parallel_for(scene.grid.size(), 1, num_threads, [&](int64_t begin, int64_t end) {
      for (int64_t tile = begin; tile < end; ++tile) draw_tile<T, channels>(scene, out, tile);
    });
  });
}

template void rasterize_forward(const RasterScene<float>&, const RasterOutputs<float>&, int);
template void rasterize_forward(const RasterScene<double>&, const RasterOutputs<double>&, int);

}  // namespace diorama
