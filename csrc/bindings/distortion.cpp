// SPDX-License-Identifier: Apache-2.0
#include "../distortion.h"

#include "arrays.h"
#include "module.h"

namespace diorama {
namespace {

template <class T>
DistortionSamples<T> distortion_samples(const Array<const T, 1>& weights,
                                        const Array<const T, 1>& t, const Array<const T, 1>& delta,
                                        const Array<const int64_t, 1>& ray_offsets) {
  require_size(t, "t", 0, weights.shape(0));
  require_size(delta, "delta", 0, weights.shape(0));
  require_offsets(ray_offsets, weights.shape(0));
  return {weights.data(), t.data(), delta.data(), ray_offsets.data(),
          static_cast<int64_t>(ray_offsets.shape(0)) - 1};
}

template <class T>
void bind_distortion_passes(nb::module_& m) {
  m.def(
      "distortion_forward",
      [](Array<const T, 1> weights, Array<const T, 1> t, Array<const T, 1> delta,
         Array<const int64_t, 1> ray_offsets, Array<T, 1> loss, int num_threads) {
        const DistortionSamples<T> samples = distortion_samples<T>(weights, t, delta, ray_offsets);
        require_size(loss, "loss", 0, samples.num_rays);
        const nb::gil_scoped_release without_gil;
        distortion_forward<T>(samples, loss.data(), num_threads);
      },
      "weights"_a.noconvert(), "t"_a.noconvert(), "delta"_a.noconvert(),
      "ray_offsets"_a.noconvert(), "loss"_a.noconvert(), "num_threads"_a.noconvert(),
      "Fill loss, one number per ray; see diorama.ops.distortion.");
  m.def(
      "distortion_backward",
      [](Array<const T, 1> weights, Array<const T, 1> t, Array<const T, 1> delta,
         Array<const int64_t, 1> ray_offsets, Array<const T, 1> grad_loss,
         OptionalArray<T, 1> grad_weights, OptionalArray<T, 1> grad_t,
         OptionalArray<T, 1> grad_delta, int num_threads) {
        const DistortionSamples<T> samples = distortion_samples<T>(weights, t, delta, ray_offsets);
        require_size(grad_loss, "grad_loss", 0, samples.num_rays);
        require_size(grad_weights, "grad_weights", 0, weights.shape(0));
        require_size(grad_t, "grad_t", 0, weights.shape(0));
        require_size(grad_delta, "grad_delta", 0, weights.shape(0));
        const nb::gil_scoped_release without_gil;
        distortion_backward<T>(samples, grad_loss.data(),
                               {pointer(grad_weights), pointer(grad_t), pointer(grad_delta)},
                               num_threads);
      },
      "weights"_a.noconvert(), "t"_a.noconvert(), "delta"_a.noconvert(),
      "ray_offsets"_a.noconvert(), "grad_loss"_a.noconvert(), "grad_weights"_a.noconvert().none(),
      "grad_t"_a.noconvert().none(), "grad_delta"_a.noconvert().none(), "num_threads"_a.noconvert(),
      "Fill those of grad_weights, grad_t and grad_delta that are not None.");
}

}  // namespace

void bind_distortion(nb::module_& m) {
  bind_distortion_passes<float>(m);
  bind_distortion_passes<double>(m);
}

}  // namespace diorama
