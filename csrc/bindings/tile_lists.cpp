// SPDX-License-Identifier: Apache-2.0
#include "../tile_lists.h"

#include <limits>

#include "arrays.h"
#include "module.h"

namespace diorama {
namespace {

template <class T>
ProjectedSplats<T> projected_splats(const Array<const T, 2>& centers,
                                    const Array<const T, 2>& conics,
                                    const Array<const T, 1>& opacities,
                                    const Array<const T, 2>& half_extents,
                                    const Array<const T, 1>& depths) {
  const size_t count = centers.shape(0);
  require_size(centers, "centers", 1, 2);
  require_size(conics, "conics", 0, count);
  require_size(conics, "conics", 1, 3);
  require_size(opacities, "opacities", 0, count);
  require_size(half_extents, "half_extents", 0, count);
  require_size(half_extents, "half_extents", 1, 2);
  require_size(depths, "depths", 0, count);
  require(count <= std::numeric_limits<int32_t>::max(), "centers has too many rows for int32");
  return {centers.data(),      conics.data(), opacities.data(),
          half_extents.data(), depths.data(), static_cast<int64_t>(count)};
}

TileGrid tile_grid(int64_t width, int64_t height) {
  require(width >= 1 && height >= 1, "width and height must be positive");
  const TileGrid grid{width, height};
  require(grid.size() < std::numeric_limits<int32_t>::max(), "the image has too many tiles");
  return grid;
}

// The array holds structures; they are written and read by this module only.
template <class Word>
auto* tile_masks(const Array<Word, 2>& masks, size_t count) {
  using Mask = std::conditional_t<std::is_const_v<Word>, const TileMask, TileMask>;
  static_assert(sizeof(TileMask) == 2 * sizeof(int64_t));
  require_size(masks, "masks", 0, count);
  require_size(masks, "masks", 1, 2);
  return reinterpret_cast<Mask*>(masks.data());
}

template <class T>
void bind_tile_lists_passes(nb::module_& m) {
  m.def(
      "tile_lists_count",
      [](Array<const T, 2> centers, Array<const T, 2> conics, Array<const T, 1> opacities,
         Array<const T, 2> half_extents, Array<const T, 1> depths, int64_t width, int64_t height,
         Array<int64_t, 1> splat_starts, Array<int64_t, 2> masks, int num_threads) {
        const ProjectedSplats<T> splats =
            projected_splats<T>(centers, conics, opacities, half_extents, depths);
        const TileGrid grid = tile_grid(width, height);
        require_size(splat_starts, "splat_starts", 0, centers.shape(0) + 1);
        TileMask* const masks_data = tile_masks(masks, centers.shape(0));
        const nb::gil_scoped_release without_gil;
        tile_lists_count<T>(splats, grid, splat_starts.data(), masks_data, num_threads);
      },
      "centers"_a.noconvert(), "conics"_a.noconvert(), "opacities"_a.noconvert(),
      "half_extents"_a.noconvert(), "depths"_a.noconvert(), "width"_a.noconvert(),
      "height"_a.noconvert(), "splat_starts"_a.noconvert(), "masks"_a.noconvert(),
      "num_threads"_a.noconvert(),
      "First pass: fill splat_starts, whose last entry is the number of pairs, and masks.");
  m.def(
      "tile_lists_fill",
      [](Array<const T, 2> centers, Array<const T, 2> conics, Array<const T, 1> opacities,
         Array<const T, 2> half_extents, Array<const T, 1> depths, int64_t width, int64_t height,
         Array<const int64_t, 1> splat_starts, Array<const int64_t, 2> masks,
         Array<int64_t, 1> starts, Array<int32_t, 1> splats, Array<int32_t, 1> slots,
         int num_threads) {
        const ProjectedSplats<T> projected =
            projected_splats<T>(centers, conics, opacities, half_extents, depths);
        const TileGrid grid = tile_grid(width, height);
        const size_t num_pairs = splats.shape(0);
        require(num_pairs <= std::numeric_limits<int32_t>::max(), "splats is too long for int32");
        require_size(splat_starts, "splat_starts", 0, centers.shape(0) + 1);
        require_offsets(splat_starts, num_pairs, "splat_starts");
        require_size(starts, "starts", 0, static_cast<size_t>(grid.size()) + 1);
        require_size(slots, "slots", 0, num_pairs);
        const TileMask* const masks_data = tile_masks(masks, centers.shape(0));
        const nb::gil_scoped_release without_gil;
        tile_lists_fill<T>(
            projected, grid, splat_starts.data(), masks_data,
            {starts.data(), splats.data(), slots.data(), static_cast<int64_t>(num_pairs)},
            num_threads);
      },
      "centers"_a.noconvert(), "conics"_a.noconvert(), "opacities"_a.noconvert(),
      "half_extents"_a.noconvert(), "depths"_a.noconvert(), "width"_a.noconvert(),
      "height"_a.noconvert(), "splat_starts"_a.noconvert(), "masks"_a.noconvert(),
      "starts"_a.noconvert(), "splats"_a.noconvert(), "slots"_a.noconvert(),
      "num_threads"_a.noconvert(),
      "Second pass: fill starts, splats and slots; splat_starts and masks are what the first pass "
      "made of the same Gaussians.");
}

}  // namespace

void bind_tile_lists(nb::module_& m) {
  bind_tile_lists_passes<float>(m);
  bind_tile_lists_passes<double>(m);
}

}  // namespace diorama
