// SPDX-License-Identifier: Apache-2.0
// The perceptron's weights in the order in which tiles read them, packed once per call.
#pragma once

#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "fused_mlp.h"
#include "fused_mlp_tile.h"
#include "simd.h"

namespace diorama::mlp {

// Width of kept hidden values: whole vectors of every build and number type.
inline int64_t kept_columns(int64_t count) { return (count + 15) / 16 * 16; }

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

// A last layer of few outputs is narrow: its results lie next to each other without padding.
template <class T>
struct PackedLayer {
  int64_t num_inputs, num_outputs;
  bool is_narrow, is_biased;
  const T* forward;     // Panels of W^T; if narrow, padded rows of W.
  const T* backward;    // Panels of W.
  const T* bias;        // Padded; if narrow, repeated over as many whole vectors as outputs.
  int64_t gradient_at;  // Where the layer's sums begin among those of a piece.
  int64_t kept_at;      // Kept numbers per point before those that this layer takes in.
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
      if (layers.size() > 1) num_kept += kept_columns(layer.num_inputs);
      widest = std::max({widest, layer.num_inputs, layer.num_outputs});
    }
  }

  std::vector<PackedLayer<T>> layers;
  Activation hidden, head;
  T beta;
  int64_t num_sums = 0;  // Partial sums of the gradients of all layers.
  int64_t num_kept = 0;  // Hidden values of a point, with padding.
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
    return {ins, outs, narrow, layer.bias != nullptr, forward, backward, bias, num_sums, num_kept};
  }

  Buffer<T> storage_;
};

}  // namespace diorama::mlp
