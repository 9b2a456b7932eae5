// SPDX-License-Identifier: Apache-2.0
#include "../sh_colors.h"

#include "arrays.h"
#include "module.h"

namespace diorama {
namespace {

template <class T>
ColorInputs<T> checked_inputs(const Array<const T, 3>& sh_dc, const Array<const T, 3>& sh_rest,
                              const Array<const T, 2>& means,
                              const Array<const T, 1>& camera_center,
                              const Array<const bool, 1>& visible, int num_bands, bool is_sigmoid) {
  const size_t count = sh_dc.shape(0), num_rest = sh_rest.shape(1);
  require_size(sh_dc, "sh_dc", 1, 1);
  require_size(sh_dc, "sh_dc", 2, 3);
  require_size(sh_rest, "sh_rest", 0, count);
  require_size(sh_rest, "sh_rest", 2, 3);
  require_size(means, "means", 0, count);
  require_size(means, "means", 1, 3);
  require_size(camera_center, "camera_center", 0, 3);
  require_size(visible, "visible", 0, count);
  require(num_bands >= 1 && num_bands <= kMaxColorBands, "num_bands must be 1 to 4");
  require(static_cast<size_t>(num_bands * num_bands - 1) <= num_rest,
          "sh_rest must have at least num_bands^2 - 1 coefficients");
  return {sh_dc.data(),
          sh_rest.data(),
          means.data(),
          camera_center.data(),
          visible.data(),
          static_cast<int64_t>(count),
          static_cast<int64_t>(num_rest),
          num_bands,
          is_sigmoid};
}

template <class T>
void bind_forward(nb::module_& m) {
  m.def(
      "sh_colors_forward",
      [](Array<const T, 3> sh_dc, Array<const T, 3> sh_rest, Array<const T, 2> means,
         Array<const T, 1> camera_center, Array<const bool, 1> visible, int num_bands,
         bool is_sigmoid, Array<T, 2> colors, int num_threads) {
        const auto in =
            checked_inputs<T>(sh_dc, sh_rest, means, camera_center, visible, num_bands, is_sigmoid);
        require_size(colors, "colors", 0, in.count);
        require_size(colors, "colors", 1, 3);
        const nb::gil_scoped_release without_gil;
        sh_colors_forward<T>(in, colors.data(), num_threads);
      },
      "sh_dc"_a.noconvert(), "sh_rest"_a.noconvert(), "means"_a.noconvert(),
      "camera_center"_a.noconvert(), "visible"_a.noconvert(), "num_bands"_a.noconvert(),
      "is_sigmoid"_a.noconvert(), "colors"_a.noconvert(), "num_threads"_a.noconvert(),
      "Fill colors; see diorama.ops.sh_colors.");
}

template <class T>
void bind_backward(nb::module_& m) {
  m.def(
      "sh_colors_backward",
      [](Array<const T, 3> sh_dc, Array<const T, 3> sh_rest, Array<const T, 2> means,
         Array<const T, 1> camera_center, Array<const bool, 1> visible, int num_bands,
         bool is_sigmoid, Array<const T, 2> colors, Array<const T, 2> grad_colors,
         OptionalArray<T, 3> grad_dc, OptionalArray<T, 3> grad_rest, OptionalArray<T, 2> grad_means,
         OptionalArray<T, 1> grad_camera_center, int num_threads) {
        const auto in =
            checked_inputs<T>(sh_dc, sh_rest, means, camera_center, visible, num_bands, is_sigmoid);
        require_size(colors, "colors", 0, in.count);
        require_size(colors, "colors", 1, 3);
        require_size(grad_colors, "grad_colors", 0, in.count);
        require_size(grad_colors, "grad_colors", 1, 3);
        require_size(grad_dc, "grad_dc", 0, in.count);
        require_size(grad_dc, "grad_dc", 1, 1);
        require_size(grad_dc, "grad_dc", 2, 3);
        require_size(grad_rest, "grad_rest", 0, in.count);
        require_size(grad_rest, "grad_rest", 1, in.num_rest);
        require_size(grad_rest, "grad_rest", 2, 3);
        require_size(grad_means, "grad_means", 0, in.count);
        require_size(grad_means, "grad_means", 1, 3);
        require_size(grad_camera_center, "grad_camera_center", 0, 3);
        const nb::gil_scoped_release without_gil;
        sh_colors_backward<T>(in, colors.data(), grad_colors.data(),
                              {pointer(grad_dc), pointer(grad_rest), pointer(grad_means),
                               pointer(grad_camera_center)},
                              num_threads);
      },
      "sh_dc"_a.noconvert(), "sh_rest"_a.noconvert(), "means"_a.noconvert(),
      "camera_center"_a.noconvert(), "visible"_a.noconvert(), "num_bands"_a.noconvert(),
      "is_sigmoid"_a.noconvert(), "colors"_a.noconvert(), "grad_colors"_a.noconvert(),
      "grad_dc"_a.noconvert().none(), "grad_rest"_a.noconvert().none(),
      "grad_means"_a.noconvert().none(), "grad_camera_center"_a.noconvert().none(),
      "num_threads"_a.noconvert(), "Fill those of the gradients that are not None.");
}

}  // namespace

void bind_sh_colors(nb::module_& m) {
  bind_forward<float>(m);
  bind_forward<double>(m);
  bind_backward<float>(m);
  bind_backward<double>(m);
}

}  // namespace diorama
