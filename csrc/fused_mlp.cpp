// SPDX-License-Identifier: Apache-2.0
// The fused perceptron: a block of points passes through all layers while it is in the cache.
//
// The backward pass computes hidden values again: reading them from memory would take as long, and
// they would be by far the largest thing that training has to keep.
#include "fused_mlp.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "fused_mlp_activation.h"
#include "fused_mlp_tile.h"
#include "parallel.h"
#include "simd.h"

namespace diorama {
namespace {

constexpr int64_t kBlockRows = 64;
constexpr int64_t kForwardPiece = 8 * kBlockRows;
constexpr int64_t kReducedRows = 64;

// Rows over which one partial sum of weight gradients runs: at most 64 of them, whatever the
// threads.
int64_t gradient_piece(int64_t num_points) {
  const int64_t rows = std::max<int64_t>(1024, (num_points + 63) / 64);
  return (rows + kBlockRows - 1) / kBlockRows * kBlockRows;
}

// Uninitialised numbers at the start of a cache line.
template <class T>
class Buffer {
 public:
  explicit Buffer(int64_t size)
      : data_(static_cast<T*>(::operator new(size * sizeof(T), std::align_val_t(64)))) {}
  T* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(T* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::unique_ptr<T, Free> data_;
};

// Where rows of numbers lie.
template <class T>
struct Rows {
  T* data;
  int64_t stride;
  T* at(int64_t row) const { return data + row * stride; }
};

// A last layer of few outputs is narrow: its results lie next to each other without padding.
template <class T>
struct PackedLayer {
  int64_t num_inputs, num_outputs;
  bool is_narrow, is_biased;
  const T* forward;     // Panels of W^T; if narrow, padded rows of W.
  const T* backward;    // Panels of W.
  const T* bias;        // Padded; if narrow, repeated over as many whole vectors as outputs.
  int64_t gradient_at;  // Where the layer's sums begin among those of a piece.
};

// The weights in the order in which tiles read them.
template <class T>
class PackedMlp {
 public:
  PackedMlp(const Mlp<T>& mlp, bool is_for_backward)
      : hidden(mlp.hidden), head(mlp.head), beta(mlp.beta), storage_(packed_size(mlp)) {
    T* free = storage_.data();
    for (const LinearLayer<T>& layer : mlp.layers) {
      const bool is_last = &layer == &mlp.layers.back();
      layers.push_back(pack(layer, is_last, is_for_backward, free));
      num_sums += sums_of(layer);
      widest = std::max({widest, layer.num_inputs, layer.num_outputs});
    }
  }

  std::vector<PackedLayer<T>> layers;
  Activation hidden, head;
  T beta;
  int64_t num_sums = 0;  // Partial sums of the gradients of all layers.
  int64_t widest = 0;

 private:
  static int64_t sums_of(const LinearLayer<T>& layer) {
    return layer.num_outputs * padded_columns<T>(layer.num_inputs) +
           padded_columns<T>(layer.num_outputs);
  }

  static int64_t packed_size(const Mlp<T>& mlp) {
    int64_t size = 0;
    for (const LinearLayer<T>& layer : mlp.layers) {
      const int64_t ins = padded_columns<T>(layer.num_inputs);
      const int64_t outs = padded_columns<T>(layer.num_outputs);
      size += 2 * ins * outs + kMostNarrowColumns * outs;
    }
    return size;
  }

  PackedLayer<T> pack(const LinearLayer<T>& layer, bool is_last, bool is_for_backward, T*& free) {
    const int64_t ins = layer.num_inputs, outs = layer.num_outputs;
    const bool narrow = is_last && is_narrow<T>(outs);
    const int64_t padded_ins = padded_columns<T>(ins), padded_outs = padded_columns<T>(outs);
    const auto take = [&](int64_t size) { return std::exchange(free, free + size); };
    T* forward = take(padded_ins * padded_outs);
    T* backward = take(padded_ins * padded_outs);
    T* bias = take(kMostNarrowColumns * padded_outs);
    const auto weight = [&](int64_t o, int64_t i) { return layer.weight[o * ins + i]; };
    const auto transposed = [&](int64_t i, int64_t o) { return layer.weight[o * ins + i]; };
    if (narrow)
      for (int64_t o = 0; o < outs; ++o)
        pack_panels<T>(
            1, ins, [&](int64_t, int64_t i) { return weight(o, i); }, forward + o * padded_ins);
    else
      pack_panels<T>(ins, outs, transposed, forward);
    if (is_for_backward) pack_panels<T>(outs, ins, weight, backward);
    std::fill_n(bias, kMostNarrowColumns * padded_outs, T(0));
    if (layer.bias)
      for (int64_t k = 0; k < (narrow ? outs * kLanes<T> : outs); ++k)
        bias[k] = layer.bias[k % outs];
    return {ins, outs, narrow, layer.bias != nullptr, forward, backward, bias, num_sums};
  }

  Buffer<T> storage_;
};

int64_t whole_tiles(int64_t num_rows) {
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

// work(vector's address) for all vectors of a block.
template <class T, class Work>
void for_each_vector(const Rows<T>& rows, int64_t num_rows, int64_t num_columns, const Work& work) {
  for (int64_t row = 0; row < num_rows; ++row)
    for (int64_t c = 0; c < num_columns; c += kLanes<T>) work(rows.at(row) + c);
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
  for_each_vector(y, num_rows, layer.num_outputs,
                  [&](T* at) { store(at, activate<T>(activation, load(at), beta)); });
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

// On entry `values` holds the hidden values h that the layer took in, on return dL/dz of the layer
// before: (g W) * activation'(h).
template <class T>
void backward_layer(const PackedLayer<T>& layer, Activation activation, T beta, int64_t num_rows,
                    const Rows<T>& grad, const Rows<T>& values) {
  const auto multiply = [&](const auto& apply_slope) {
    multiply_rows<T>(num_rows, grad.data, grad.stride, layer.backward, layer.num_outputs,
                     layer.num_inputs, [&](int64_t row, int64_t c, Vec<T> sum) {
                       T* at = values.at(row) + c;
                       store(at, apply_slope(sum, load(at)));
                     });
  };
  if (activation == Activation::kRelu)
    return multiply([](Vec<T> g, Vec<T> h) { return h <= Vec<T>{} ? Vec<T>{} : g; });
  for_each_vector(values, num_rows, layer.num_inputs,
                  [&](T* at) { store(at, activation_slope<T>(activation, load(at), beta)); });
  multiply([](Vec<T> g, Vec<T> slope) { return g * slope; });
}

// Takes blocks of points through the layers, in buffers that one thread uses for many blocks.
template <class T>
class BlockRunner {
 public:
  explicit BlockRunner(const PackedMlp<T>& mlp)
      : mlp_(mlp),
        stride_(buffer_stride<T>(mlp.widest)),
        storage_((mlp.layers.size() + 1) * kBlockRows * stride_) {}

  void forward(const T* x, int64_t num_points, T* out) const {
    const PackedLayer<T>& last = mlp_.layers.back();
    const int64_t outs = last.num_outputs, num_rows = whole_tiles(num_points);
    const Rows<const T> in = hidden_values(x, num_points);
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
  void backward(const T* x, const T* out, const T* grad_out, int64_t num_points, T* grad_x,
                T* sums) const {
    const int64_t num_rows = whole_tiles(num_points);
    const Rows<const T> input = input_rows(x, num_points);
    hidden_values(x, num_points);
    Rows<T> grad = output_gradient(out, grad_out, num_points);
    for (size_t k = mlp_.layers.size(); k-- > 0;) {
      const PackedLayer<T>& layer = mlp_.layers[k];
      const Rows<const T> in = k == 0 ? input : constant(buffer(k));
      if (sums) add_gradients(layer, num_rows, in, grad, sums + layer.gradient_at);
      if (k == 0) break;
      backward_layer(layer, mlp_.hidden, mlp_.beta, num_rows, grad, buffer(k));
      grad = buffer(k);
    }
    if (grad_x) input_gradient(grad, num_points, grad_x);
  }

 private:
  // Buffer 0 holds the input where it must be padded, buffer k what layer k - 1 gave.
  Rows<T> buffer(size_t k) const { return {storage_.data() + k * kBlockRows * stride_, stride_}; }
  size_t last_buffer() const { return mlp_.layers.size(); }
  static Rows<const T> constant(const Rows<T>& rows) { return {rows.data, rows.stride}; }

  Rows<const T> input_rows(const T* x, int64_t num_points) const {
    const int64_t ins = mlp_.layers[0].num_inputs;
    if (is_whole<T>(num_points, ins)) return {x, ins};
    copy_in(x, num_points, ins, buffer(0));
    return constant(buffer(0));
  }

  // Fills the buffers of all hidden layers and returns what the last layer takes in.
  Rows<const T> hidden_values(const T* x, int64_t num_points) const {
    Rows<const T> in = input_rows(x, num_points);
    for (size_t k = 0; k + 1 < mlp_.layers.size(); ++k) {
      forward_layer(mlp_.layers[k], mlp_.hidden, mlp_.beta, whole_tiles(num_points), in,
                    buffer(k + 1));
      in = constant(buffer(k + 1));
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

// One row of a gradient, and where the first piece's part of it lies.
template <class T>
struct GradientRow {
  const T* part;
  T* total;
  int64_t size;
};

template <class T>
std::vector<GradientRow<T>> gradient_rows(const PackedMlp<T>& mlp, const T* sums,
                                          const std::vector<LinearGradients<T>>& gradients) {
  std::vector<GradientRow<T>> rows;
  for (size_t k = 0; k < gradients.size(); ++k) {
    const PackedLayer<T>& layer = mlp.layers[k];
    const int64_t ins = layer.num_inputs, outs = layer.num_outputs;
    const T* part = sums + layer.gradient_at;
    for (int64_t o = 0; o < outs; ++o, part += padded_columns<T>(ins))
      if (gradients[k].weight) rows.push_back({part, gradients[k].weight + o * ins, ins});
    if (gradients[k].bias) rows.push_back({part, gradients[k].bias, outs});
  }
  return rows;
}

// Adds up the pieces' parts, `distance` apart, in their order.
template <class T>
void sum_pieces(const GradientRow<T>& row, int64_t num_pieces, int64_t distance) {
  std::fill_n(row.total, row.size, T(0));
  for (int64_t piece = 0; piece < num_pieces; ++piece) {
    const T* part = row.part + piece * distance;
#pragma omp simd
    for (int64_t c = 0; c < row.size; ++c) row.total[c] += part[c];
  }
}

}  // namespace

template <class T>
void fused_mlp_forward(const Mlp<T>& mlp, const T* x, int64_t num_points, T* out, int num_threads) {
  const PackedMlp<T> packed(mlp, false);
  const int64_t ins = mlp.layers.front().num_inputs, outs = mlp.layers.back().num_outputs;
  parallel_for(num_points, kForwardPiece, num_threads, [&](int64_t begin, int64_t end) {
    const BlockRunner<T> runner(packed);
    for (int64_t row = begin; row < end; row += kBlockRows)
      runner.forward(x + row * ins, std::min(kBlockRows, end - row), out + row * outs);
  });
}

template <class T>
void fused_mlp_backward(const Mlp<T>& mlp, const T* x, const T* out, const T* grad_out,
                        int64_t num_points, const MlpGradients<T>& gradients, int num_threads) {
  const PackedMlp<T> packed(mlp, true);
  const int64_t ins = mlp.layers.front().num_inputs, outs = mlp.layers.back().num_outputs;
  const bool is_for_layers = !gradients.layers.empty();
  const int64_t piece_rows = gradient_piece(num_points);
  const int64_t num_pieces = (num_points + piece_rows - 1) / piece_rows;
  const Buffer<T> sums(is_for_layers ? num_pieces * packed.num_sums : 0);
  parallel_for(num_points, piece_rows, num_threads, [&](int64_t begin, int64_t end) {
    const BlockRunner<T> runner(packed);
    T* own = is_for_layers ? sums.data() + begin / piece_rows * packed.num_sums : nullptr;
    if (own) std::fill_n(own, packed.num_sums, T(0));
    for (int64_t row = begin; row < end; row += kBlockRows)
      runner.backward(x + row * ins, out + row * outs, grad_out + row * outs,
                      std::min(kBlockRows, end - row),
                      gradients.x ? gradients.x + row * ins : nullptr, own);
  });
  const std::vector<GradientRow<T>> rows = gradient_rows(packed, sums.data(), gradients.layers);
  parallel_for(rows.size(), kReducedRows, num_threads, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) sum_pieces(rows[k], num_pieces, packed.num_sums);
  });
}

template void fused_mlp_forward(const Mlp<float>&, const float*, int64_t, float*, int);
template void fused_mlp_forward(const Mlp<double>&, const double*, int64_t, double*, int);
template void fused_mlp_backward(const Mlp<float>&, const float*, const float*, const float*,
                                 int64_t, const MlpGradients<float>&, int);
template void fused_mlp_backward(const Mlp<double>&, const double*, const double*, const double*,
                                 int64_t, const MlpGradients<double>&, int);

}  // namespace diorama
