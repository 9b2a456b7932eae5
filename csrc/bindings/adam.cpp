// SPDX-License-Identifier: Apache-2.0
#include "../adam.h"

#include "arrays.h"
#include "module.h"

namespace diorama {
namespace {

template <class T>
void bind_adam_step(nb::module_& m) {
  m.def(
      "adam_step",
      [](Array<T, 1> parameter, Array<const T, 1> gradient, Array<T, 1> exp_avg,
         Array<T, 1> exp_avg_sq, Array<bool, 1> touched, double lr, double beta1, double beta2,
         double eps, double weight_decay, double bias_correction1, double bias_correction2,
         bool is_decoupled, int num_threads) {
        const size_t count = parameter.shape(0);
        require_size(gradient, "gradient", 0, count);
        require_size(exp_avg, "exp_avg", 0, count);
        require_size(exp_avg_sq, "exp_avg_sq", 0, count);
        require_size(touched, "touched", 0, (count + kAdamBlock - 1) / kAdamBlock);
        const nb::gil_scoped_release without_gil;
        adam_step<T>(
            {parameter.data(), gradient.data(), exp_avg.data(), exp_avg_sq.data(), touched.data(),
             static_cast<int64_t>(count)},
            {lr, beta1, beta2, eps, weight_decay, bias_correction1, bias_correction2, is_decoupled},
            num_threads);
      },
      "parameter"_a.noconvert(), "gradient"_a.noconvert(), "exp_avg"_a.noconvert(),
      "exp_avg_sq"_a.noconvert(), "touched"_a.noconvert(), "lr"_a, "beta1"_a, "beta2"_a, "eps"_a,
      "weight_decay"_a, "bias_correction1"_a, "bias_correction2"_a, "is_decoupled"_a.noconvert(),
      "num_threads"_a.noconvert(),
      "Update parameter, exp_avg, exp_avg_sq and touched in place; see diorama.ops.adam.");
}

}  // namespace

void bind_adam(nb::module_& m) {
  bind_adam_step<float>(m);
  bind_adam_step<double>(m);
}

}  // namespace diorama
