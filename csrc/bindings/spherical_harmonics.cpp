// SPDX-License-Identifier: Apache-2.0
#include "../spherical_harmonics.h"

#include "arrays.h"
#include "module.h"

namespace diorama {
namespace {

template <class T>
void check(const Array<const T, 2>& directions, int num_bands) {
  require_size(directions, "directions", 1, 3);
  require(num_bands >= 1 && num_bands <= kMaxSphericalBands, "num_bands must be 1 to 5");
}

template <class T>
void bind_forward(nb::module_& m) {
  m.def(
      "spherical_harmonics_forward",
      [](Array<const T, 2> directions, int num_bands, Array<T, 2> values, int num_threads) {
        check<T>(directions, num_bands);
        require_size(values, "values", 0, directions.shape(0));
        require_size(values, "values", 1, num_bands * num_bands);
        const nb::gil_scoped_release without_gil;
        spherical_harmonics_forward<T>(directions.data(), directions.shape(0), num_bands,
                                       values.data(), num_threads);
      },
      "directions"_a.noconvert(), "num_bands"_a.noconvert(), "values"_a.noconvert(),
      "num_threads"_a.noconvert(), "Fill values; see diorama.ops.spherical_harmonics.");
}

template <class T>
void bind_backward(nb::module_& m) {
  m.def(
      "spherical_harmonics_backward",
      [](Array<const T, 2> directions, Array<const T, 2> grad_values, int num_bands,
         Array<T, 2> grad_directions, int num_threads) {
        check<T>(directions, num_bands);
        require_size(grad_values, "grad_values", 0, directions.shape(0));
        require_size(grad_values, "grad_values", 1, num_bands * num_bands);
        require_size(grad_directions, "grad_directions", 0, directions.shape(0));
        require_size(grad_directions, "grad_directions", 1, 3);
        const nb::gil_scoped_release without_gil;
        spherical_harmonics_backward<T>(directions.data(), grad_values.data(), directions.shape(0),
                                        num_bands, grad_directions.data(), num_threads);
      },
      "directions"_a.noconvert(), "grad_values"_a.noconvert(), "num_bands"_a.noconvert(),
      "grad_directions"_a.noconvert(), "num_threads"_a.noconvert(), "Fill grad_directions.");
}

}  // namespace

void bind_spherical_harmonics(nb::module_& m) {
  bind_forward<float>(m);
  bind_forward<double>(m);
  bind_backward<float>(m);
  bind_backward<double>(m);
}

}  // namespace diorama
