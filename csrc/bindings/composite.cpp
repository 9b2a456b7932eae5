// SPDX-License-Identifier: Apache-2.0
#include "../composite.h"

#include "arrays.h"
#include "module.h"

namespace diorama {
namespace {

// What stands on the last axis, and how many such rows there are.
template <class T>
size_t num_channels(const AnyArray<T>& values) {
  require(values.ndim() > 0, "values must have an axis of channels");
  return values.shape(values.ndim() - 1);
}

template <class T>
size_t num_rows(const AnyArray<T>& values) {
  size_t product = 1;
  for (size_t axis = 0; axis + 1 < values.ndim(); ++axis) product *= values.shape(axis);
  return product;
}

// Without ray_offsets, samples are those of as many rays of one length as ray_values has rows.
template <class T>
PackedSamples<T> packed_samples(const AnyArray<const T>& sigma, const AnyArray<const T>& delta,
                                const AnyArray<const T>& values,
                                const OptionalArray<const int64_t, 1>& ray_offsets,
                                size_t num_ray_values) {
  const size_t num_samples = sigma.size();
  const size_t num_rays = ray_offsets ? ray_offsets->shape(0) - 1 : num_ray_values;
  require_count(delta.size(), "delta", num_samples);
  const size_t channels = num_channels(values);
  require_count(num_rows(values), "rows of values", num_samples);
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
          static_cast<int64_t>(channels)};
}

template <class T>
void bind_composite_forward(nb::module_& m) {
  m.def(
      "composite_forward",
      [](AnyArray<const T> sigma, AnyArray<const T> delta, AnyArray<const T> values,
         OptionalArray<const int64_t, 1> ray_offsets, AnyArray<T> weights,
         OptionalAnyArray<T> transmittance, Array<T, 2> ray_values, Array<T, 1> opacity,
         int num_threads) {
        const PackedSamples<T> samples =
            packed_samples<T>(sigma, delta, values, ray_offsets, ray_values.shape(0));
        require_count(weights.size(), "weights", sigma.size());
        if (transmittance) require_count(transmittance->size(), "transmittance", sigma.size());
        require_size(ray_values, "ray_values", 0, samples.num_rays);
        require_size(ray_values, "ray_values", 1, samples.num_channels);
        require_size(opacity, "opacity", 0, samples.num_rays);
        const nb::gil_scoped_release without_gil;
        composite_forward<T>(
            samples, {weights.data(), pointer(transmittance), ray_values.data(), opacity.data()},
            num_threads);
      },
      "sigma"_a.noconvert(), "delta"_a.noconvert(), "values"_a.noconvert(),
      "ray_offsets"_a.noconvert().none(), "weights"_a.noconvert(),
      "transmittance"_a.noconvert().none(), "ray_values"_a.noconvert(), "opacity"_a.noconvert(),
      "num_threads"_a.noconvert(),
      "Fill weights, ray_values, opacity and, unless it is None, transmittance; see "
      "diorama.ops.composite.");
}

template <class T>
void bind_composite_backward(nb::module_& m) {
  m.def(
      "composite_backward",
      [](AnyArray<const T> sigma, AnyArray<const T> delta, AnyArray<const T> values,
         OptionalArray<const int64_t, 1> ray_offsets, AnyArray<const T> weights,
         AnyArray<const T> transmittance, OptionalAnyArray<const T> grad_weights,
         Array<const T, 2> grad_ray_values, OptionalArray<const T, 1> grad_opacity,
         OptionalAnyArray<T> grad_sigma, OptionalAnyArray<T> grad_delta,
         OptionalAnyArray<T> grad_values, int num_threads) {
        const PackedSamples<T> samples =
            packed_samples<T>(sigma, delta, values, ray_offsets, grad_ray_values.shape(0));
        const size_t count = sigma.size();
        require_count(weights.size(), "weights", count);
        require_count(transmittance.size(), "transmittance", count);
        if (grad_weights) require_count(grad_weights->size(), "grad_weights", count);
        require_size(grad_ray_values, "grad_ray_values", 0, samples.num_rays);
        require_size(grad_ray_values, "grad_ray_values", 1, samples.num_channels);
        require_size(grad_opacity, "grad_opacity", 0, samples.num_rays);
        if (grad_sigma) require_count(grad_sigma->size(), "grad_sigma", count);
        if (grad_delta) require_count(grad_delta->size(), "grad_delta", count);
        if (grad_values) require_count(grad_values->size(), "grad_values", values.size());
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
