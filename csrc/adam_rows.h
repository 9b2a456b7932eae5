// SPDX-License-Identifier: Apache-2.0
// One Adam step on some rows of one tensor, in place; diorama/ops/adam_rows.py is its
// specification.
#pragma once

#include <cstdint>

namespace diorama {

template <class T>
struct AdamRowTensors {
  T* parameter;
  const T* gradient;
  T* exp_avg;
  T* exp_avg_sq;
  T* row_steps;        // How often each row was updated.
  const bool* chosen;  // The rows to update.
  int64_t num_rows, width;
};

struct AdamRowRule {
  double lr, beta1, beta2, eps, weight_decay;
  bool is_decoupled;  // Weight decay as in AdamW.
};

template <class T>
void adam_rows_step(const AdamRowTensors<T>& tensors, const AdamRowRule& rule, int num_threads);

}  // namespace diorama
