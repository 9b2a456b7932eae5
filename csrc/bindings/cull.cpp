// SPDX-License-Identifier: Apache-2.0
#include "../cull.h"

#include "arrays.h"
#include "module.h"

namespace diorama {
namespace {

template <class T>
CullSamples<T> cull_samples(const Array<const T, 1>& sigma, const Array<const T, 1>& delta,
                            const Array<const int64_t, 1>& ray_offsets) {
  require_size(delta, "delta", 0, sigma.shape(0));
  require_offsets(ray_offsets, sigma.shape(0));
  return {sigma.data(), delta.data(), ray_offsets.data(),
          static_cast<int64_t>(ray_offsets.shape(0)) - 1};
}

template <class T>
void bind_cull_passes(nb::module_& m) {
  m.def(
      "cull_count",
      [](Array<const T, 1> sigma, Array<const T, 1> delta, Array<const int64_t, 1> ray_offsets,
         double max_depth, double min_tau, Array<int64_t, 1> new_offsets, int num_threads) {
        const CullSamples<T> samples = cull_samples<T>(sigma, delta, ray_offsets);
        require_size(new_offsets, "new_offsets", 0, ray_offsets.shape(0));
        const nb::gil_scoped_release without_gil;
        cull_count<T>(samples, {static_cast<T>(max_depth), static_cast<T>(min_tau)},
                      new_offsets.data(), num_threads);
      },
      "sigma"_a.noconvert(), "delta"_a.noconvert(), "ray_offsets"_a.noconvert(),
      "max_depth"_a.noconvert(), "min_tau"_a.noconvert(), "new_offsets"_a.noconvert(),
      "num_threads"_a.noconvert(), "First pass: fill new_offsets.");
  m.def(
      "cull_write",
      [](Array<const T, 1> sigma, Array<const T, 1> delta, Array<const int64_t, 1> ray_offsets,
         double max_depth, double min_tau, Array<const int64_t, 1> new_offsets,
         Array<int64_t, 1> kept, int num_threads) {
        const CullSamples<T> samples = cull_samples<T>(sigma, delta, ray_offsets);
        require_size(new_offsets, "new_offsets", 0, ray_offsets.shape(0));
        require_offsets(new_offsets, kept.shape(0));
        const nb::gil_scoped_release without_gil;
        cull_write<T>(samples, {static_cast<T>(max_depth), static_cast<T>(min_tau)},
                      new_offsets.data(), kept.data(), num_threads);
      },
      "sigma"_a.noconvert(), "delta"_a.noconvert(), "ray_offsets"_a.noconvert(),
      "max_depth"_a.noconvert(), "min_tau"_a.noconvert(), "new_offsets"_a.noconvert(),
      "kept"_a.noconvert(), "num_threads"_a.noconvert(),
      "Second pass: fill kept with the indices of the samples that can be seen.");
}

}  // namespace

void bind_cull(nb::module_& m) {
  bind_cull_passes<float>(m);
  bind_cull_passes<double>(m);
}

}  // namespace diorama
