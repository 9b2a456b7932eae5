// SPDX-License-Identifier: Apache-2.0
// One block of points on its way through the perceptron's layers and back, within the cache.
#pragma once

#include <algorithm>

#include "fused_mlp_activation.h"
#include "fused_mlp_packed.h"
#include "fused_mlp_tile.h"
#include "simd.h"

namespace diorama::mlp {

constexpr int64_t kBlockRows = 64;

// Where rows of numbers lie.
template <class T>
struct Rows {
  T* data;
  int64_t stride;
  T* at(int64_t row) const { return data + row * stride; }
};

inline int64_t whole_tiles(int64_t num_rows) {
  return (num_rows + kRowMultiple - 1) / kRowMultiple * kRowMultiple;
}

// Whether tiles may work on caller's rows in place: nothing to pad.
template <class T>
bool is_whole(int64_t num_rows, int64_t num_columns) {
  return num_rows % kRowMultiple == 0 && num_columns % kLanes<T> == 0;
}

// A copy of the caller's rows, filled up with zeros to whole tiles.
template <class T>
void copy_in(const T* source, int64_t num_rows, int64_t num_columns, const Rows<T>& target) {
  const int64_t width = padded_columns<T>(num_columns);
  for (int64_t row = 0; row < num_rows; ++row) {
    std::copy_n(source + row * num_columns, num_columns, target.at(row));
    std::fill(target.at(row) + num_columns, target.at(row) + width, T(0));
  }
  for (int64_t row = num_rows; row < whole_tiles(num_rows); ++row)
    std::fill_n(target.at(row), width, T(0));
}

template <class T>
void copy_out(const Rows<T>& source, int64_t num_rows, int64_t num_columns, T* target) {
  for (int64_t row = 0; row < num_rows; ++row)
    std::copy_n(source.at(row), num_columns, target + row * num_columns);
}

// work(row, first column) for all vectors of a block.
template <class T, class Work>
void for_each_vector(int64_t num_rows, int64_t num_columns, const Work& work) {
  for (int64_t row = 0; row < num_rows; ++row)
    for (int64_t c = 0; c < num_columns; c += kLanes<T>) work(row, c);
}

// y = activation(x W^T + b).
template <class T>
void forward_layer(const PackedLayer<T>& layer, Activation activation, T beta, int64_t num_rows,
                   const Rows<const T>& x, const Rows<T>& y) {
  const auto multiply = [&](const auto& activate_now) {
    multiply_rows<T>(num_rows, x.data, x.stride, layer.forward, layer.num_inputs, layer.num_outputs,
                     [&](int64_t row, int64_t c, Vec<T> sum) {
                       store(y.at(row) + c, activate_now(sum + load(layer.bias + c)));
                     });
  };
  if (activation == Activation::kRelu) return multiply([](Vec<T> z) { return relu<T>(z); });
  multiply([](Vec<T> z) { return z; });
  if (activation == Activation::kNone) return;
  for_each_vector<T>(num_rows, layer.num_outputs, [&](int64_t row, int64_t c) {
    store(y.at(row) + c, activate<T>(activation, load(y.at(row) + c), beta));
  });
}

// The same for a narrow layer, whose results are flat.
template <class T>
void forward_narrow_layer(const PackedLayer<T>& layer, Activation activation, T beta,
                          int64_t num_rows, const Rows<const T>& x, T* y) {
  with_count<kMostNarrowColumns>(layer.num_outputs, [&](auto outs) {
    multiply_narrow<outs>(num_rows, x.data, x.stride, layer.forward, layer.num_inputs,
                          [&](int64_t index, Vec<T> sum) {
                            const int64_t bias_at = index % (outs * kLanes<T>);
                            const Vec<T> z = sum + load(layer.bias + bias_at);
                            store(y + index, activate<T>(activation, z, beta));
                          });
  });
}

// dL/dz of the layer before: (g W) * activation'(h), where h are the hidden values that the layer
// took in. The result may take their place.
template <class T>
void backward_layer(const PackedLayer<T>& layer, Activation activation, T beta, int64_t num_rows,
                    const Rows<T>& grad, const Rows<const T>& h, const Rows<T>& result) {
  const auto multiply = [&](const Rows<const T>& factors, const auto& apply) {
    multiply_rows<T>(num_rows, grad.data, grad.stride, layer.backward, layer.num_outputs,
                     layer.num_inputs, [&](int64_t row, int64_t c, Vec<T> sum) {
                       store(result.at(row) + c, apply(sum, load(factors.at(row) + c)));
                     });
  };
  if (activation == Activation::kRelu)
    return multiply(h, [](Vec<T> g, Vec<T> v) { return v <= Vec<T>{} ? Vec<T>{} : g; });
  for_each_vector<T>(num_rows, layer.num_inputs, [&](int64_t row, int64_t c) {
    store(result.at(row) + c, activation_slope<T>(activation, load(h.at(row) + c), beta));
  });
  multiply({result.data, result.stride}, [](Vec<T> g, Vec<T> slope) { return g * slope; });
}

// Takes blocks of points through the layers, in buffers that one thread uses for many blocks.
template <class T>
class BlockRunner {
 public:
  explicit BlockRunner(const PackedMlp<T>& mlp)
      : mlp_(mlp),
        stride_(buffer_stride<T>(mlp.widest)),
        storage_((mlp.layers.size() + 1) * kBlockRows * stride_) {}

  // Leaves hidden values in `kept` unless that is null.
  void forward(const T* x, int64_t num_points, T* out, T* kept) const {
    const PackedLayer<T>& last = mlp_.layers.back();
    const int64_t outs = last.num_outputs, num_rows = whole_tiles(num_points);
    const Rows<const T> in = hidden_values(x, num_points, kept);
    const int64_t stride = last.is_narrow ? outs : stride_;
    const bool is_direct = num_rows == num_points && (last.is_narrow || outs % kLanes<T> == 0);
    const Rows<T> result =
        is_direct ? Rows<T>{out, outs} : Rows<T>{buffer(last_buffer()).data, stride};
    if (last.is_narrow)
      forward_narrow_layer(last, mlp_.head, mlp_.beta, num_rows, in, result.data);
    else
      forward_layer(last, mlp_.head, mlp_.beta, num_rows, in, result);
    if (!is_direct) copy_out(result, num_points, outs, out);
  }

  // Adds the block's part of the weights' gradients to `sums` unless that is null.
  void backward(const T* x, const T* out, const T* grad_out, const T* kept, int64_t num_points,
                T* grad_x, T* sums) const {
    const int64_t num_rows = whole_tiles(num_points);
    const Rows<const T> input = input_rows(x, num_points);
    if (!kept) hidden_values(x, num_points, nullptr);
    Rows<T> grad = output_gradient(out, grad_out, num_points);
    for (size_t k = mlp_.layers.size(); k-- > 0;) {
      const PackedLayer<T>& layer = mlp_.layers[k];
      const Rows<const T> in = k == 0 ? input : kept ? kept_rows(kept, k) : constant(buffer(k));
      if (sums) add_gradients(layer, num_rows, in, grad, sums + layer.gradient_at);
      if (k == 0) break;
      backward_layer(layer, mlp_.hidden, mlp_.beta, num_rows, grad, in, buffer(k));
      grad = buffer(k);
    }
    if (grad_x) input_gradient(grad, num_points, grad_x);
  }

 private:
  // Buffer 0 holds the input where it must be padded, buffer k what layer k - 1 gave.
  Rows<T> buffer(size_t k) const { return {storage_.data() + k * kBlockRows * stride_, stride_}; }
  size_t last_buffer() const { return mlp_.layers.size(); }
  // Where kept values lie that layer k takes in.
  template <class Number>
  Rows<Number> kept_rows(Number* kept, size_t k) const {
    const PackedLayer<T>& layer = mlp_.layers[k];
    return {kept + layer.kept_at * kBlockRows, kept_columns(layer.num_inputs)};
  }
  static Rows<const T> constant(const Rows<T>& rows) { return {rows.data, rows.stride}; }

  Rows<const T> input_rows(const T* x, int64_t num_points) const {
    const int64_t ins = mlp_.layers[0].num_inputs;
    if (is_whole<T>(num_points, ins)) return {x, ins};
    copy_in(x, num_points, ins, buffer(0));
    return constant(buffer(0));
  }

  // Fills `kept`, or if that is null the buffers, with the hidden values of all layers, and returns
  // what the last layer takes in.
  Rows<const T> hidden_values(const T* x, int64_t num_points, T* kept) const {
    Rows<const T> in = input_rows(x, num_points);
    for (size_t k = 1; k < mlp_.layers.size(); ++k) {
      const Rows<T> values = kept ? kept_rows(kept, k) : buffer(k);
      forward_layer(mlp_.layers[k - 1], mlp_.hidden, mlp_.beta, whole_tiles(num_points), in,
                    values);
      in = constant(values);
    }
    return in;
  }

  // dL/dz of the last layer, rows next to each other: they are only read number by number.
  Rows<T> output_gradient(const T* out, const T* grad_out, int64_t num_points) const {
    const int64_t outs = mlp_.layers.back().num_outputs, count = num_points * outs;
    T* grad = buffer(last_buffer()).data;
    if (mlp_.head == Activation::kNone)
      std::copy_n(grad_out, count, grad);
    else
      for (int64_t k = 0; k < count; k += kLanes<T>) {
        const Vec<T> slope = activation_slope<T>(mlp_.head, load(out + k, count - k), mlp_.beta);
        store(grad + k, slope * load(grad_out + k, count - k));
      }
    std::fill(grad + count, grad + whole_tiles(num_points) * outs, T(0));
    return {grad, outs};
  }

  static void add_gradients(const PackedLayer<T>& layer, int64_t num_rows, const Rows<const T>& in,
                            const Rows<T>& grad, T* sums) {
    add_outer_products<T>(num_rows, grad.data, grad.stride, layer.num_outputs, in.data, in.stride,
                          layer.num_inputs, sums);
    if (!layer.is_biased) return;
    T* bias = sums + layer.num_outputs * padded_columns<T>(layer.num_inputs);
    // Lanes past the last output sum up whatever is there; nobody reads them.
    for (int64_t c = 0; c < layer.num_outputs; c += kLanes<T>) {
      Vec<T> total{};
      for (int64_t row = 0; row < num_rows; ++row) total += load(grad.at(row) + c);
      store(bias + c, load(bias + c) + total);
    }
  }

  void input_gradient(const Rows<T>& grad, int64_t num_points, T* grad_x) const {
    const PackedLayer<T>& first = mlp_.layers[0];
    const int64_t ins = first.num_inputs;
    const bool is_direct = is_whole<T>(num_points, ins);
    const Rows<T> target = is_direct ? Rows<T>{grad_x, ins} : buffer(0);
    multiply_rows<T>(whole_tiles(num_points), grad.data, grad.stride, first.backward,
                     first.num_outputs, ins,
                     [&](int64_t row, int64_t c, Vec<T> sum) { store(target.at(row) + c, sum); });
    if (!is_direct) copy_out(target, num_points, ins, grad_x);
  }

  const PackedMlp<T>& mlp_;
  int64_t stride_;
  Buffer<T> storage_;
};

}  // namespace diorama::mlp
