// SPDX-License-Identifier: Apache-2.0
#include "../adam_rows.h"

#include "arrays.h"
#include "module.h"

namespace diorama {
namespace {

template <class T>
void bind_adam_rows_step(nb::module_& m) {
  m.def(
      "adam_rows_step",
      [](Array<T, 2> parameter, Array<const T, 2> gradient, Array<T, 2> exp_avg,
         Array<T, 2> exp_avg_sq, Array<T, 1> row_steps, Array<const bool, 1> chosen, double lr,
         double beta1, double beta2, double eps, double weight_decay, bool is_decoupled,
         int num_threads) {
        const size_t num_rows = parameter.shape(0), width = parameter.shape(1);
        for (int axis = 0; axis < 2; ++axis) {
          require_size(gradient, "gradient", axis, parameter.shape(axis));
          require_size(exp_avg, "exp_avg", axis, parameter.shape(axis));
          require_size(exp_avg_sq, "exp_avg_sq", axis, parameter.shape(axis));
        }
        require_size(row_steps, "row_steps", 0, num_rows);
        require_size(chosen, "chosen", 0, num_rows);
        const nb::gil_scoped_release without_gil;
        adam_rows_step<T>(
            {parameter.data(), gradient.data(), exp_avg.data(), exp_avg_sq.data(), row_steps.data(),
             chosen.data(), static_cast<int64_t>(num_rows), static_cast<int64_t>(width)},
            {lr, beta1, beta2, eps, weight_decay, is_decoupled}, num_threads);
      },
      "parameter"_a.noconvert(), "gradient"_a.noconvert(), "exp_avg"_a.noconvert(),
      "exp_avg_sq"_a.noconvert(), "row_steps"_a.noconvert(), "chosen"_a.noconvert(), "lr"_a,
      "beta1"_a, "beta2"_a, "eps"_a, "weight_decay"_a, "is_decoupled"_a.noconvert(),
      "num_threads"_a.noconvert(),
      "Update parameter, exp_avg, exp_avg_sq and row_steps in place; see diorama.ops.adam_rows.");
}

}  // namespace

void bind_adam_rows(nb::module_& m) {
  bind_adam_rows_step<float>(m);
  bind_adam_rows_step<double>(m);
}

}  // namespace diorama
