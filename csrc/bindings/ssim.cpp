// SPDX-License-Identifier: Apache-2.0
#include "../ssim.h"

#include <algorithm>

#include "arrays.h"
#include "module.h"

namespace diorama {
namespace {

template <class A, class B>
void require_shape(const A& array, const char* name, const B& like) {
  for (int axis = 0; axis < 3; ++axis) require_size(array, name, axis, like[axis]);
}

template <class T>
SsimShape checked_shape(const Array<const T, 3>& a, const Array<const T, 3>& b,
                        const Array<const double, 1>& window, bool is_padded) {
  const std::array<size_t, 3> size = {a.shape(0), a.shape(1), a.shape(2)};
  require_shape(b, "b", size);
  const size_t taps = window.shape(0);
  require(taps % 2 == 1 && taps <= kSsimTaps, "window must have an odd size up to 11");
  require(is_padded || (taps <= size[0] && taps <= size[1]), "window must fit into the images");
  SsimShape shape{};
  shape.height = static_cast<int64_t>(size[0]);
  shape.width = static_cast<int64_t>(size[1]);
  shape.channels = static_cast<int64_t>(size[2]);
  shape.offset = is_padded ? 0 : static_cast<int64_t>(taps / 2);
  shape.out_height = shape.height - 2 * shape.offset;
  shape.out_width = shape.width - 2 * shape.offset;
  std::copy_n(window.data(), taps, shape.taps.begin() + (kSsimTaps - taps) / 2);
  return shape;
}

template <class T, class M>
SsimMaps<T> checked_maps(const SsimShape& shape, const M& mean_a, const M& mean_b, const M& squares,
                         const M& product) {
  const std::array<size_t, 3> size = {static_cast<size_t>(shape.out_height),
                                      static_cast<size_t>(shape.out_width),
                                      static_cast<size_t>(shape.channels)};
  require_shape(mean_a, "by_mean_a", size);
  require_shape(mean_b, "by_mean_b", size);
  require_shape(squares, "by_squares", size);
  require_shape(product, "by_product", size);
  return {pointer(mean_a), pointer(mean_b), pointer(squares), pointer(product)};
}

template <class T>
void bind_forward(nb::module_& m) {
  m.def(
      "ssim_forward",
      [](Array<const T, 3> a, Array<const T, 3> b, Array<const double, 1> window, bool is_padded,
         OptionalArray<T, 3> by_mean_a, OptionalArray<T, 3> by_mean_b,
         OptionalArray<T, 3> by_squares, OptionalArray<T, 3> by_product, int num_threads) {
        const SsimShape shape = checked_shape<T>(a, b, window, is_padded);
        const auto maps = checked_maps<T>(shape, by_mean_a, by_mean_b, by_squares, by_product);
        const nb::gil_scoped_release without_gil;
        return ssim_forward<T>(shape, a.data(), b.data(), maps, num_threads);
      },
      "a"_a.noconvert(), "b"_a.noconvert(), "window"_a.noconvert(), "is_padded"_a.noconvert(),
      "by_mean_a"_a.noconvert().none(), "by_mean_b"_a.noconvert().none(),
      "by_squares"_a.noconvert().none(), "by_product"_a.noconvert().none(),
      "num_threads"_a.noconvert(),
      "Return the mean similarity and fill those maps that are not None; see diorama.ops.ssim.");
}

template <class T>
void bind_backward(nb::module_& m) {
  m.def(
      "ssim_backward",
      [](Array<const T, 3> a, Array<const T, 3> b, Array<const double, 1> window, bool is_padded,
         OptionalArray<const T, 3> by_mean_a, OptionalArray<const T, 3> by_mean_b,
         OptionalArray<const T, 3> by_squares, OptionalArray<const T, 3> by_product, double scale,
         OptionalArray<T, 3> grad_a, OptionalArray<T, 3> grad_b, int num_threads) {
        const SsimShape shape = checked_shape<T>(a, b, window, is_padded);
        const auto maps =
            checked_maps<const T>(shape, by_mean_a, by_mean_b, by_squares, by_product);
        require(maps.squares && maps.product && (maps.mean_a || !grad_a) &&
                    (maps.mean_b || !grad_b) && (grad_a || grad_b),
                "each wanted gradient must have its maps");
        const std::array<size_t, 3> size = {a.shape(0), a.shape(1), a.shape(2)};
        require_shape(grad_a, "grad_a", size);
        require_shape(grad_b, "grad_b", size);
        const nb::gil_scoped_release without_gil;
        ssim_backward<T>(shape, a.data(), b.data(), maps, scale, pointer(grad_a), pointer(grad_b),
                         num_threads);
      },
      "a"_a.noconvert(), "b"_a.noconvert(), "window"_a.noconvert(), "is_padded"_a.noconvert(),
      "by_mean_a"_a.noconvert().none(), "by_mean_b"_a.noconvert().none(),
      "by_squares"_a.noconvert().none(), "by_product"_a.noconvert().none(), "scale"_a,
      "grad_a"_a.noconvert().none(), "grad_b"_a.noconvert().none(), "num_threads"_a.noconvert(),
      "Fill those of grad_a and grad_b that are not None.");
}

}  // namespace

void bind_ssim(nb::module_& m) {
  bind_forward<float>(m);
  bind_forward<double>(m);
  bind_backward<float>(m);
  bind_backward<double>(m);
}

}  // namespace diorama
