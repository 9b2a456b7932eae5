// SPDX-License-Identifier: Apache-2.0
// A small multilayer perceptron, all layers at once; diorama/ops/fused_mlp.py is its specification.
#pragma once

#include <cstdint>
#include <vector>

namespace diorama {

enum class Activation { kNone, kRelu, kSoftplus, kSigmoid, kExp };

// z = x W^T + b; weight is [num_outputs][num_inputs], a null bias is zero.
template <class T>
struct LinearLayer {
  const T* weight;
  const T* bias;
  int64_t num_inputs;
  int64_t num_outputs;
};

// Each layer takes as many inputs as the one before has outputs. `hidden` follows every layer but
// the last, `head` the last.
template <class T>
struct Mlp {
  std::vector<LinearLayer<T>> layers;
  Activation hidden;
  Activation head;
  T beta;  // Of softplus.
};

// Gradients of one layer; null means not wanted.
template <class T>
struct LinearGradients {
  T* weight;
  T* bias;
};

// Gradients of the inputs; x may be null, layers has one entry per layer or none at all.
template <class T>
struct MlpGradients {
  T* x;
  std::vector<LinearGradients<T>> layers;
};

// Numbers that hidden values of all points take, in an order that only the kernel knows.
template <class T>
int64_t fused_mlp_hidden_size(const Mlp<T>& mlp, int64_t num_points);

// Rows of x and out belong to points and are contiguous. Leaves the hidden values in `hidden`,
// unless that is null.
template <class T>
void fused_mlp_forward(const Mlp<T>& mlp, const T* x, int64_t num_points, T* out, T* hidden,
                       int num_threads);

// `out` and `hidden` are what the forward pass gave; if `hidden` is null it is computed again.
template <class T>
void fused_mlp_backward(const Mlp<T>& mlp, const T* x, const T* out, const T* grad_out,
                        const T* hidden, int64_t num_points, const MlpGradients<T>& gradients,
                        int num_threads);

}  // namespace diorama
