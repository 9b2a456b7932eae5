// SPDX-License-Identifier: Apache-2.0
// One Adam step on one tensor, in place; diorama/ops/adam.py is its specification.
#pragma once

#include <cstdint>

namespace diorama {

// Items are skipped in blocks of this many: a block that no gradient has reached is left alone.
// Smaller ones would break the streams that the caches prefetch and cost more than they save.
constexpr int64_t kAdamBlock = 256;

template <class T>
struct AdamTensors {
  T* parameter;
  const T* gradient;
  T* exp_avg;
  T* exp_avg_sq;
  bool* touched;  // One for each block: false says that both moments are zero bits there.
  int64_t count;
};

struct AdamStep {
  double lr, beta1, beta2, eps, weight_decay;
  double bias_correction1, bias_correction2;  // 1 - beta^step
  bool is_decoupled;                          // Weight decay as in AdamW.
};

template <class T>
void adam_step(const AdamTensors<T>& tensors, const AdamStep& step, int num_threads);

}  // namespace diorama
