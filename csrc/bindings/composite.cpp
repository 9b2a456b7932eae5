// SPDX-License-Identifier: Apache-2.0
#include "../composite.h"

#include "arrays.h"
#include "module.h"

namespace diorama {
namespace {

// Without ray_offsets, samples are those of as many rays of one length as ray_values has rows.
template <class T>
PackedSamples<T> packed_samples(const Array<const T, 1>& sigma, const Array<const T, 1>& delta,
                                const Array<const T, 2>& values,
                                const OptionalArray<const int64_t, 1>& ray_offsets,
                                size_t num_rows) {
  const size_t num_samples = sigma.shape(0);
  const size_t num_rays = ray_offsets ? ray_offsets->shape(0) - 1 : num_rows;
  require_size(delta, "delta", 0, num_samples);
  require_size(values, "values", 0, num_samples);
  if (ray_offsets) {
    require_offsets(*ray_offsets, num_samples);
  } else {
    require(num_rays ? num_samples % num_rays == 0 : num_samples == 0,
            std::to_string(num_samples) + " samples cannot be those of " +
                std::to_string(num_rays) + " rays of one length");
  }
  return {sigma.data(),
          delta.data(),
          values.data(),
          pointer(ray_offsets),
          static_cast<int64_t>(num_rays ? num_samples / num_rays : 0),
          static_cast<int64_t>(num_rays),
          static_cast<int64_t>(values.shape(1))};
}

template <class T>
void bind_composite_forward(nb::module_& m) {
  m.def(
      "composite_forward",
      [](Array<const T, 1> sigma, Array<const T, 1> delta, Array<const T, 2> values,
         OptionalArray<const int64_t, 1> ray_offsets, Array<T, 1> weights,
         Array<T, 1> transmittance, Array<T, 2> ray_values, Array<T, 1> opacity, int num_threads) {
        const PackedSamples<T> samples =
            packed_samples<T>(sigma, delta, values, ray_offsets, ray_values.shape(0));
        require_size(weights, "weights", 0, sigma.shape(0));
        require_size(transmittance, "transmittance", 0, sigma.shape(0));
        require_size(ray_values, "ray_values", 0, samples.num_rays);
        require_size(ray_values, "ray_values", 1, samples.num_channels);
        require_size(opacity, "opacity", 0, samples.num_rays);
        const nb::gil_scoped_release without_gil;
        composite_forward<T>(
            samples, {weights.data(), transmittance.data(), ray_values.data(), opacity.data()},
            num_threads);
      },
      "sigma"_a.noconvert(), "delta"_a.noconvert(), "values"_a.noconvert(),
      "ray_offsets"_a.noconvert().none(), "weights"_a.noconvert(), "transmittance"_a.noconvert(),
      "ray_values"_a.noconvert(), "opacity"_a.noconvert(), "num_threads"_a.noconvert(),
      "Fill weights, transmittance, ray_values and opacity; see diorama.ops.composite.");
}

template <class T>
void bind_composite_backward(nb::module_& m) {
  m.def(
      "composite_backward",
      [](Array<const T, 1> sigma, Array<const T, 1> delta, Array<const T, 2> values,
         OptionalArray<const int64_t, 1> ray_offsets, Array<const T, 1> weights,
         Array<const T, 1> transmittance, OptionalArray<const T, 1> grad_weights,
         Array<const T, 2> grad_ray_values, OptionalArray<const T, 1> grad_opacity,
         OptionalArray<T, 1> grad_sigma, OptionalArray<T, 1> grad_delta,
         OptionalArray<T, 2> grad_values, int num_threads) {
        const PackedSamples<T> samples =
            packed_samples<T>(sigma, delta, values, ray_offsets, grad_ray_values.shape(0));
        require_size(weights, "weights", 0, sigma.shape(0));
        require_size(transmittance, "transmittance", 0, sigma.shape(0));
        require_size(grad_weights, "grad_weights", 0, sigma.shape(0));
        require_size(grad_ray_values, "grad_ray_values", 0, samples.num_rays);
        require_size(grad_ray_values, "grad_ray_values", 1, samples.num_channels);
        require_size(grad_opacity, "grad_opacity", 0, samples.num_rays);
        require_size(grad_sigma, "grad_sigma", 0, sigma.shape(0));
        require_size(grad_delta, "grad_delta", 0, sigma.shape(0));
        require_size(grad_values, "grad_values", 0, sigma.shape(0));
        require_size(grad_values, "grad_values", 1, samples.num_channels);
        const nb::gil_scoped_release without_gil;
        composite_backward<T>(samples,
                              {weights.data(), transmittance.data(), pointer(grad_weights),
                               grad_ray_values.data(), pointer(grad_opacity)},
                              {pointer(grad_sigma), pointer(grad_delta), pointer(grad_values)},
                              num_threads);
      },
      "sigma"_a.noconvert(), "delta"_a.noconvert(), "values"_a.noconvert(),
      "ray_offsets"_a.noconvert().none(), "weights"_a.noconvert(), "transmittance"_a.noconvert(),
      "grad_weights"_a.noconvert().none(), "grad_ray_values"_a.noconvert(),
      "grad_opacity"_a.noconvert().none(), "grad_sigma"_a.noconvert().none(),
      "grad_delta"_a.noconvert().none(), "grad_values"_a.noconvert().none(),
      "num_threads"_a.noconvert(),
      "Fill those of grad_sigma, grad_delta and grad_values that are not None.");
}

}  // namespace

void bind_composite(nb::module_& m) {
  bind_composite_forward<float>(m);
  bind_composite_forward<double>(m);
  bind_composite_backward<float>(m);
  bind_composite_backward<double>(m);
}

}  // namespace diorama
