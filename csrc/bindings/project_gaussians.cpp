// SPDX-License-Identifier: Apache-2.0
#include "../project_gaussians.h"

#include "arrays.h"
#include "module.h"

namespace diorama {
namespace {

template <class A>
void require_rows(const A& array, const char* name, size_t rows, size_t columns) {
  require_size(array, name, 0, rows);
  require_size(array, name, 1, columns);
}

template <class T>
Gaussians<T> checked_gaussians(const Array<const T, 2>& means, const Array<const T, 2>& quaternions,
                               const Array<const T, 2>& log_scales,
                               const Array<const T, 1>& opacity_logits) {
  const size_t count = means.shape(0);
  require_rows(means, "means", count, 3);
  require_rows(quaternions, "quaternions", count, 4);
  require_rows(log_scales, "log_scales", count, 3);
  require_size(opacity_logits, "opacity_logits", 0, count);
  return {means.data(), quaternions.data(), log_scales.data(), opacity_logits.data(),
          static_cast<int64_t>(count)};
}

template <class T>
SplatView<T> checked_view(const Array<const T, 2>& camera_from_world,
                          const Array<const T, 1>& intrinsics, double width, double height,
                          double near, double far, double blur, bool is_fisheye,
                          bool is_antialiased) {
  require_rows(camera_from_world, "camera_from_world", 3, 4);
  require_size(intrinsics, "intrinsics", 0, 4);
  return {camera_from_world.data(), intrinsics.data(),    static_cast<T>(width),
          static_cast<T>(height),   static_cast<T>(near), static_cast<T>(far),
          static_cast<T>(blur),     is_fisheye,           is_antialiased};
}

template <class T>
void bind_forward(nb::module_& m) {
  m.def(
      "project_gaussians_forward",
      [](Array<const T, 2> means, Array<const T, 2> quaternions, Array<const T, 2> log_scales,
         Array<const T, 1> opacity_logits, Array<const T, 2> camera_from_world,
         Array<const T, 1> intrinsics, double width, double height, double near, double far,
         double blur, bool is_fisheye, bool is_antialiased, Array<T, 2> centers, Array<T, 2> conics,
         Array<T, 1> depths, Array<T, 1> opacities, Array<T, 2> half_extents, int num_threads) {
        const auto gaussians = checked_gaussians<T>(means, quaternions, log_scales, opacity_logits);
        const auto view = checked_view<T>(camera_from_world, intrinsics, width, height, near, far,
                                          blur, is_fisheye, is_antialiased);
        require_rows(centers, "centers", gaussians.count, 2);
        require_rows(conics, "conics", gaussians.count, 3);
        require_size(depths, "depths", 0, gaussians.count);
        require_size(opacities, "opacities", 0, gaussians.count);
        require_rows(half_extents, "half_extents", gaussians.count, 2);
        const nb::gil_scoped_release without_gil;
        project_gaussians_forward<T>(
            gaussians, view,
            {centers.data(), conics.data(), depths.data(), opacities.data(), half_extents.data()},
            num_threads);
      },
      "means"_a.noconvert(), "quaternions"_a.noconvert(), "log_scales"_a.noconvert(),
      "opacity_logits"_a.noconvert(), "camera_from_world"_a.noconvert(), "intrinsics"_a.noconvert(),
      "width"_a.noconvert(), "height"_a.noconvert(), "near"_a.noconvert(), "far"_a.noconvert(),
      "blur"_a.noconvert(), "is_fisheye"_a.noconvert(), "is_antialiased"_a.noconvert(),
      "centers"_a.noconvert(), "conics"_a.noconvert(), "depths"_a.noconvert(),
      "opacities"_a.noconvert(), "half_extents"_a.noconvert(), "num_threads"_a.noconvert(),
      "Fill five outputs; see diorama.ops.project_gaussians.");
}

template <class T>
void bind_backward(nb::module_& m) {
  m.def(
      "project_gaussians_backward",
      [](Array<const T, 2> means, Array<const T, 2> quaternions, Array<const T, 2> log_scales,
         Array<const T, 1> opacity_logits, Array<const T, 2> camera_from_world,
         Array<const T, 1> intrinsics, double width, double height, double near, double far,
         double blur, bool is_fisheye, bool is_antialiased, bool is_exact,
         Array<const T, 2> half_extents, OptionalArray<const T, 2> grad_centers,
         OptionalArray<const T, 2> grad_conics, OptionalArray<const T, 1> grad_depths,
         OptionalArray<const T, 1> grad_opacities, OptionalArray<T, 2> grad_means,
         OptionalArray<T, 2> grad_quaternions, OptionalArray<T, 2> grad_log_scales,
         OptionalArray<T, 1> grad_opacity_logits, OptionalArray<T, 2> grad_camera_from_world,
         OptionalArray<T, 1> grad_intrinsics, int num_threads) {
        const auto gaussians = checked_gaussians<T>(means, quaternions, log_scales, opacity_logits);
        const auto view = checked_view<T>(camera_from_world, intrinsics, width, height, near, far,
                                          blur, is_fisheye, is_antialiased);
        const size_t count = gaussians.count;
        require_rows(half_extents, "half_extents", count, 2);
        require_rows(grad_centers, "grad_centers", count, 2);
        require_rows(grad_conics, "grad_conics", count, 3);
        require_size(grad_depths, "grad_depths", 0, count);
        require_size(grad_opacities, "grad_opacities", 0, count);
        require_rows(grad_means, "grad_means", count, 3);
        require_rows(grad_quaternions, "grad_quaternions", count, 4);
        require_rows(grad_log_scales, "grad_log_scales", count, 3);
        require_size(grad_opacity_logits, "grad_opacity_logits", 0, count);
        require_rows(grad_camera_from_world, "grad_camera_from_world", 3, 4);
        require_size(grad_intrinsics, "grad_intrinsics", 0, 4);
        const nb::gil_scoped_release without_gil;
        project_gaussians_backward<T>(
            gaussians, view, is_exact,
            {half_extents.data(), pointer(grad_centers), pointer(grad_conics), pointer(grad_depths),
             pointer(grad_opacities)},
            {pointer(grad_means), pointer(grad_quaternions), pointer(grad_log_scales),
             pointer(grad_opacity_logits), pointer(grad_camera_from_world),
             pointer(grad_intrinsics)},
            num_threads);
      },
      "means"_a.noconvert(), "quaternions"_a.noconvert(), "log_scales"_a.noconvert(),
      "opacity_logits"_a.noconvert(), "camera_from_world"_a.noconvert(), "intrinsics"_a.noconvert(),
      "width"_a.noconvert(), "height"_a.noconvert(), "near"_a.noconvert(), "far"_a.noconvert(),
      "blur"_a.noconvert(), "is_fisheye"_a.noconvert(), "is_antialiased"_a.noconvert(),
      "is_exact"_a.noconvert(), "half_extents"_a.noconvert(), "grad_centers"_a.noconvert().none(),
      "grad_conics"_a.noconvert().none(), "grad_depths"_a.noconvert().none(),
      "grad_opacities"_a.noconvert().none(), "grad_means"_a.noconvert().none(),
      "grad_quaternions"_a.noconvert().none(), "grad_log_scales"_a.noconvert().none(),
      "grad_opacity_logits"_a.noconvert().none(), "grad_camera_from_world"_a.noconvert().none(),
      "grad_intrinsics"_a.noconvert().none(), "num_threads"_a.noconvert(),
      "Fill those of the last six gradients that are not None.");
}

}  // namespace

void bind_project_gaussians(nb::module_& m) {
  bind_forward<float>(m);
  bind_forward<double>(m);
  bind_backward<float>(m);
  bind_backward<double>(m);
}

}  // namespace diorama
