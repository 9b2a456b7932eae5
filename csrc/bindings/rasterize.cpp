// SPDX-License-Identifier: Apache-2.0
#include "../rasterize.h"

#include <limits>

#include "arrays.h"
#include "module.h"

namespace diorama {
namespace {

RasterLists raster_lists(const Array<const int64_t, 1>& starts,
                         const Array<const int32_t, 1>& splats,
                         const Array<const int32_t, 1>& slots,
                         const Array<const int64_t, 1>& splat_starts, size_t count,
                         const TileGrid& grid) {
  const size_t num_pairs = splats.shape(0);
  require_size(starts, "starts", 0, static_cast<size_t>(grid.size()) + 1);
  require_offsets(starts, num_pairs, "starts");
  require_indices(splats, count, "splats");
  require_size(slots, "slots", 0, num_pairs);
  require_indices(slots, num_pairs, "slots");
  require_size(splat_starts, "splat_starts", 0, count + 1);
  require_offsets(splat_starts, num_pairs, "splat_starts");
  return {starts.data(), splats.data(), slots.data(), splat_starts.data(),
          static_cast<int64_t>(num_pairs)};
}

template <class T>
RasterScene<T> raster_scene(const Array<const T, 2>& centers, const Array<const T, 2>& conics,
                            const Array<const T, 1>& opacities, const Array<const T, 2>& features,
                            const Array<const T, 1>& background,
                            const Array<const int64_t, 1>& starts,
                            const Array<const int32_t, 1>& splats,
                            const Array<const int32_t, 1>& slots,
                            const Array<const int64_t, 1>& splat_starts, const TileGrid& grid,
                            double max_alpha) {
  const size_t count = centers.shape(0);
  require(grid.width >= 1 && grid.height >= 1, "width and height must be positive");
  require_size(centers, "centers", 1, 2);
  require_size(conics, "conics", 0, count);
  require_size(conics, "conics", 1, 3);
  require_size(opacities, "opacities", 0, count);
  require_size(features, "features", 0, count);
  require_size(background, "background", 0, features.shape(1));
  return {centers.data(),
          conics.data(),
          opacities.data(),
          features.data(),
          background.data(),
          static_cast<int64_t>(count),
          static_cast<int64_t>(features.shape(1)),
          raster_lists(starts, splats, slots, splat_starts, count, grid),
          grid,
          static_cast<T>(max_alpha)};
}

template <class A>
void require_image(const A& array, const char* name, const TileGrid& grid) {
  require_size(array, name, 0, static_cast<size_t>(grid.height));
  require_size(array, name, 1, static_cast<size_t>(grid.width));
}

// The array holds structures of T; they are written and read by this module only.
template <class T, class Number>
auto* prepared_splats(const Array<Number, 2>& prepared, size_t count) {
  using Splat =
      std::conditional_t<std::is_const_v<Number>, const PreparedSplat<T>, PreparedSplat<T>>;
  require_size(prepared, "prepared", 0, count);
  require_size(prepared, "prepared", 1, kPreparedNumbers);
  auto* data = reinterpret_cast<Splat*>(prepared.data());
  require(reinterpret_cast<uintptr_t>(data) % alignof(Splat) == 0, "prepared is not aligned");
  return data;
}

template <class T>
void bind_rasterize_forward(nb::module_& m) {
  m.def(
      "rasterize_forward",
      [](Array<const T, 2> centers, Array<const T, 2> conics, Array<const T, 1> opacities,
         Array<const T, 2> features, Array<const T, 1> background, Array<const int64_t, 1> starts,
         Array<const int32_t, 1> splats, Array<const int32_t, 1> slots,
         Array<const int64_t, 1> splat_starts, int64_t width, int64_t height, double max_alpha,
         Array<T, 3> image, Array<T, 2> transmittance, Array<int32_t, 2> counts,
         Array<int32_t, 2> median_splats, Array<int32_t, 2> stops, Array<T, 2> prepared,
         int num_threads) {
        const TileGrid grid{width, height};
        const RasterScene<T> scene =
            raster_scene<T>(centers, conics, opacities, features, background, starts, splats, slots,
                            splat_starts, grid, max_alpha);
        require_image(image, "image", grid);
        require_size(image, "image", 2, features.shape(1));
        require_image(transmittance, "transmittance", grid);
        require_image(counts, "counts", grid);
        require_image(median_splats, "median_splats", grid);
        require_image(stops, "stops", grid);
        const RasterOutputs<T> out{image.data(),  transmittance.data(),
                                   counts.data(), median_splats.data(),
                                   stops.data(),  prepared_splats<T>(prepared, centers.shape(0))};
        const nb::gil_scoped_release without_gil;
        rasterize_forward<T>(scene, out, num_threads);
      },
      "centers"_a.noconvert(), "conics"_a.noconvert(), "opacities"_a.noconvert(),
      "features"_a.noconvert(), "background"_a.noconvert(), "starts"_a.noconvert(),
      "splats"_a.noconvert(), "slots"_a.noconvert(), "splat_starts"_a.noconvert(),
      "width"_a.noconvert(), "height"_a.noconvert(), "max_alpha"_a.noconvert(),
      "image"_a.noconvert(), "transmittance"_a.noconvert(), "counts"_a.noconvert(),
      "median_splats"_a.noconvert(), "stops"_a.noconvert(), "prepared"_a.noconvert(),
      "num_threads"_a.noconvert(),
      "Fill image, transmittance, counts, median_splats, and stops and prepared for the way back; "
      "see diorama.ops.rasterize.");
}

template <class T>
void bind_rasterize_backward(nb::module_& m) {
  m.def(
      "rasterize_backward",
      [](Array<const T, 2> centers, Array<const T, 2> conics, Array<const T, 1> opacities,
         Array<const T, 2> features, Array<const T, 1> background, Array<const int64_t, 1> starts,
         Array<const int32_t, 1> splats, Array<const int32_t, 1> slots,
         Array<const int64_t, 1> splat_starts, int64_t width, int64_t height, double max_alpha,
         bool is_faithful, Array<const T, 2> transmittance, Array<const int32_t, 2> stops,
         Array<const T, 2> prepared, Array<const T, 3> grad_image,
         OptionalArray<const T, 2> grad_alpha, OptionalArray<T, 2> grad_centers,
         OptionalArray<T, 2> grad_conics, OptionalArray<T, 1> grad_opacities,
         OptionalArray<T, 2> grad_features, OptionalArray<T, 1> grad_background,
         OptionalArray<T, 1> gradient_norms, OptionalArray<T, 2> abs_gradients,
         OptionalArray<int32_t, 1> pixels, OptionalArray<T, 3> pixel_gradients, int num_threads) {
        const size_t count = centers.shape(0);
        const TileGrid grid{width, height};
        const RasterScene<T> scene =
            raster_scene<T>(centers, conics, opacities, features, background, starts, splats, slots,
                            splat_starts, grid, max_alpha);
        require_image(transmittance, "transmittance", grid);
        require_image(stops, "stops", grid);
        require_image(grad_image, "grad_image", grid);
        require_size(grad_image, "grad_image", 2, features.shape(1));
        if (grad_alpha) require_image(*grad_alpha, "grad_alpha", grid);
        require_size(grad_centers, "grad_centers", 0, count);
        require_size(grad_centers, "grad_centers", 1, 2);
        require_size(grad_conics, "grad_conics", 0, count);
        require_size(grad_conics, "grad_conics", 1, 3);
        require_size(grad_opacities, "grad_opacities", 0, count);
        require_size(grad_features, "grad_features", 0, count);
        require_size(grad_features, "grad_features", 1, features.shape(1));
        require_size(grad_background, "grad_background", 0, features.shape(1));
        require(gradient_norms.has_value() == abs_gradients.has_value() &&
                    gradient_norms.has_value() == pixels.has_value(),
                "gradient_norms, abs_gradients and pixels must be given all or none");
        require(gradient_norms || !pixel_gradients, "pixel_gradients needs gradient_norms as well");
        require_size(gradient_norms, "gradient_norms", 0, count);
        require_size(abs_gradients, "abs_gradients", 0, count);
        require_size(abs_gradients, "abs_gradients", 1, 2);
        require_size(pixels, "pixels", 0, count);
        if (pixel_gradients) require_image(*pixel_gradients, "pixel_gradients", grid);
        require_size(pixel_gradients, "pixel_gradients", 2, 2);
        const RasterCotangents<T> kept{
            transmittance.data(), stops.data(),        prepared_splats<T>(prepared, count),
            grad_image.data(),    pointer(grad_alpha), is_faithful};
        const RasterGradients<T> out{
            pointer(grad_centers),  pointer(grad_conics),     pointer(grad_opacities),
            pointer(grad_features), pointer(grad_background), pointer(gradient_norms),
            pointer(abs_gradients), pointer(pixels),          pointer(pixel_gradients)};
        const nb::gil_scoped_release without_gil;
        rasterize_backward<T>(scene, kept, out, num_threads);
      },
      "centers"_a.noconvert(), "conics"_a.noconvert(), "opacities"_a.noconvert(),
      "features"_a.noconvert(), "background"_a.noconvert(), "starts"_a.noconvert(),
      "splats"_a.noconvert(), "slots"_a.noconvert(), "splat_starts"_a.noconvert(),
      "width"_a.noconvert(), "height"_a.noconvert(), "max_alpha"_a.noconvert(),
      "is_faithful"_a.noconvert(), "transmittance"_a.noconvert(), "stops"_a.noconvert(),
      "prepared"_a.noconvert(), "grad_image"_a.noconvert(), "grad_alpha"_a.noconvert().none(),
      "grad_centers"_a.noconvert().none(), "grad_conics"_a.noconvert().none(),
      "grad_opacities"_a.noconvert().none(), "grad_features"_a.noconvert().none(),
      "grad_background"_a.noconvert().none(), "gradient_norms"_a.noconvert().none(),
      "abs_gradients"_a.noconvert().none(), "pixels"_a.noconvert().none(),
      "pixel_gradients"_a.noconvert().none(), "num_threads"_a.noconvert(),
      "Fill the gradients and sums that are not None; stops and prepared are the forward pass's.");
}

}  // namespace

void bind_rasterize(nb::module_& m) {
  m.attr("RASTER_PREPARED_NUMBERS") = kPreparedNumbers;
  bind_rasterize_forward<float>(m);
  bind_rasterize_forward<double>(m);
  bind_rasterize_backward<float>(m);
  bind_rasterize_backward<double>(m);
}

}  // namespace diorama
