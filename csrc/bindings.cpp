// SPDX-License-Identifier: Apache-2.0
// The one file that knows Python: checks sizes, releases the GIL, passes raw pointers on.
//
// Every array type fixes dtype, rank, contiguity and device, and every argument is .noconvert():
// otherwise an output of the wrong dtype or stride would be silently copied, and the caller's
// buffer would stay untouched.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "composite.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace diorama {
namespace {

template <class T, int kRank>
using Array = nb::ndarray<nb::pytorch, T, nb::ndim<kRank>, nb::c_contig, nb::device::cpu>;
template <class T, int kRank>
using OptionalArray = std::optional<Array<T, kRank>>;

template <class A>
auto* pointer(const std::optional<A>& array) {
  return array ? array->data() : nullptr;
}

void require(bool is_true, const std::string& message) {
  if (!is_true) throw std::invalid_argument(message);
}

template <class A>
void require_size(const A& array, const char* name, int axis, size_t expected) {
  const size_t got = array.shape(axis);
  require(got == expected, std::string(name) + " must have size " + std::to_string(expected) +
                               " on axis " + std::to_string(axis) + ", got " + std::to_string(got));
}

template <class A>
void require_size(const std::optional<A>& array, const char* name, int axis, size_t expected) {
  if (array) require_size(*array, name, axis, expected);
}

// Kernels index memory with these numbers, so a wrong one must never reach them.
void require_offsets(const Array<const int64_t, 1>& offsets, size_t num_samples) {
  const size_t size = offsets.shape(0);
  const int64_t* data = offsets.data();
  require(size >= 1 && data[0] == 0 && data[size - 1] == static_cast<int64_t>(num_samples),
          "ray_offsets must start at 0 and end at the number of samples, " +
              std::to_string(num_samples));
  bool is_sorted = true;
  for (size_t i = 1; i < size; ++i) is_sorted &= data[i - 1] <= data[i];
  require(is_sorted, "ray_offsets must not decrease");
}

template <class T>
PackedSamples<T> packed_samples(const Array<const T, 1>& sigma, const Array<const T, 1>& delta,
                                const Array<const T, 2>& values,
                                const Array<const int64_t, 1>& ray_offsets) {
  require_size(delta, "delta", 0, sigma.shape(0));
  require_size(values, "values", 0, sigma.shape(0));
  require_offsets(ray_offsets, sigma.shape(0));
  return {sigma.data(),
          delta.data(),
          values.data(),
          ray_offsets.data(),
          static_cast<int64_t>(ray_offsets.shape(0)) - 1,
          static_cast<int64_t>(values.shape(1))};
}

template <class T>
void bind_composite_forward(nb::module_& m) {
  m.def(
      "composite_forward",
      [](Array<const T, 1> sigma, Array<const T, 1> delta, Array<const T, 2> values,
         Array<const int64_t, 1> ray_offsets, Array<T, 1> weights, Array<T, 1> transmittance,
         Array<T, 2> ray_values, Array<T, 1> opacity, int num_threads) {
        const PackedSamples<T> samples = packed_samples<T>(sigma, delta, values, ray_offsets);
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
      "ray_offsets"_a.noconvert(), "weights"_a.noconvert(), "transmittance"_a.noconvert(),
      "ray_values"_a.noconvert(), "opacity"_a.noconvert(), "num_threads"_a.noconvert(),
      "Fill weights, transmittance, ray_values and opacity; see diorama.ops.composite.");
}

template <class T>
void bind_composite_backward(nb::module_& m) {
  m.def(
      "composite_backward",
      [](Array<const T, 1> sigma, Array<const T, 1> delta, Array<const T, 2> values,
         Array<const int64_t, 1> ray_offsets, Array<const T, 1> weights,
         Array<const T, 1> transmittance, OptionalArray<const T, 1> grad_weights,
         Array<const T, 2> grad_ray_values, Array<const T, 1> grad_opacity,
         OptionalArray<T, 1> grad_sigma, OptionalArray<T, 1> grad_delta,
         OptionalArray<T, 2> grad_values, int num_threads) {
        const PackedSamples<T> samples = packed_samples<T>(sigma, delta, values, ray_offsets);
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
                               grad_ray_values.data(), grad_opacity.data()},
                              {pointer(grad_sigma), pointer(grad_delta), pointer(grad_values)},
                              num_threads);
      },
      "sigma"_a.noconvert(), "delta"_a.noconvert(), "values"_a.noconvert(),
      "ray_offsets"_a.noconvert(), "weights"_a.noconvert(), "transmittance"_a.noconvert(),
      "grad_weights"_a.noconvert().none(), "grad_ray_values"_a.noconvert(),
      "grad_opacity"_a.noconvert(), "grad_sigma"_a.noconvert().none(),
      "grad_delta"_a.noconvert().none(), "grad_values"_a.noconvert().none(),
      "num_threads"_a.noconvert(),
      "Fill those of grad_sigma, grad_delta and grad_values that are not None.");
}

}  // namespace
}  // namespace diorama

NB_MODULE(DIORAMA_MODULE, m) {
  m.doc() = "Diorama's native kernels: Python allocates, these functions fill.";
  diorama::bind_composite_forward<float>(m);
  diorama::bind_composite_forward<double>(m);
  diorama::bind_composite_backward<float>(m);
  diorama::bind_composite_backward<double>(m);
}
