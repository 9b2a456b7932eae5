// SPDX-License-Identifier: Apache-2.0
#include "../sample_pdf.h"

#include "arrays.h"
#include "module.h"

namespace diorama {
namespace {

template <class T>
void bind_invert_cdf(nb::module_& m) {
  m.def(
      "invert_cdf",
      [](Array<const T, 2> edges, Array<const T, 2> weights, OptionalArray<const T, 2> u,
         OptionalArray<const T, 1> jitter, double padding, double smallest_step,
         Array<T, 2> samples, int num_threads) {
        const size_t num_rays = weights.shape(0), num_bins = weights.shape(1);
        require(num_bins > 0 && num_bins < (1 << 30), "weights must have bins on axis 1");
        require_size(edges, "edges", 0, num_rays);
        require_size(edges, "edges", 1, num_bins + 1);
        require_size(samples, "samples", 0, num_rays);
        const bool is_shared = u && u->shape(0) == 1;
        if (!is_shared) require_size(u, "u", 0, num_rays);
        require_size(u, "u", 1, samples.shape(1));
        require_size(jitter, "jitter", 0, num_rays);
        const nb::gil_scoped_release without_gil;
        invert_cdf<T>(
            {edges.data(), weights.data(), static_cast<int64_t>(num_rays),
             static_cast<int64_t>(num_bins), static_cast<T>(padding),
             static_cast<T>(smallest_step)},
            {pointer(u), is_shared, pointer(jitter), static_cast<int64_t>(samples.shape(1))},
            samples.data(), num_threads);
      },
      "edges"_a.noconvert(), "weights"_a.noconvert(), "u"_a.noconvert().none(),
      "jitter"_a.noconvert().none(), "padding"_a, "smallest_step"_a, "samples"_a.noconvert(),
      "num_threads"_a.noconvert(), "Fill samples; see diorama.ops.sample_pdf.");
}

}  // namespace

void bind_sample_pdf(nb::module_& m) {
  bind_invert_cdf<float>(m);
  bind_invert_cdf<double>(m);
}

}  // namespace diorama
