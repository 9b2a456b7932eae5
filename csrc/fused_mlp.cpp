// SPDX-License-Identifier: Apache-2.0
// The fused perceptron: a block of points passes through all layers while it is in the cache.
//
// The backward pass takes hidden values that the forward pass kept, or computes them again from x:
// that is a quarter more arithmetic, and still faster once they do not fit the cache.
#include "fused_mlp.h"

#include <algorithm>

#include "fused_mlp_block.h"
#include "fused_mlp_packed.h"
#include "fused_mlp_tile.h"
#include "parallel.h"

namespace diorama {
namespace {

using namespace mlp;

constexpr int64_t kForwardPiece = 8 * kBlockRows;
constexpr int64_t kReducedRows = 64;

// Rows over which one partial sum of weight gradients runs: at most 64 of them, whatever the
// threads.
int64_t gradient_piece(int64_t num_points) {
  const int64_t rows = std::max<int64_t>(1024, (num_points + 63) / 64);
  return (rows + kBlockRows - 1) / kBlockRows * kBlockRows;
}

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
int64_t fused_mlp_hidden_size(const Mlp<T>& mlp, int64_t num_points) {
  int64_t size = 0;
  for (size_t k = 1; k < mlp.layers.size(); ++k) size += kept_columns(mlp.layers[k].num_inputs);
  return size * ((num_points + kBlockRows - 1) / kBlockRows * kBlockRows);
}

template <class T>
void fused_mlp_forward(const Mlp<T>& mlp, const T* x, int64_t num_points, T* out, T* hidden,
                       int num_threads) {
  const PackedMlp<T> packed(mlp, false);
  const int64_t ins = mlp.layers.front().num_inputs, outs = mlp.layers.back().num_outputs;
  parallel_for(num_points, kForwardPiece, num_threads, [&](int64_t begin, int64_t end) {
    const BlockRunner<T> runner(packed);
    for (int64_t row = begin; row < end; row += kBlockRows)
      runner.forward(x + row * ins, std::min(kBlockRows, end - row), out + row * outs,
                     hidden ? hidden + row * packed.num_kept : nullptr);
  });
}

template <class T>
void fused_mlp_backward(const Mlp<T>& mlp, const T* x, const T* out, const T* grad_out,
                        const T* hidden, int64_t num_points, const MlpGradients<T>& gradients,
                        int num_threads) {
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
                      hidden ? hidden + row * packed.num_kept : nullptr,
                      std::min(kBlockRows, end - row),
                      gradients.x ? gradients.x + row * ins : nullptr, own);
  });
  const std::vector<GradientRow<T>> rows = gradient_rows(packed, sums.data(), gradients.layers);
  parallel_for(rows.size(), kReducedRows, num_threads, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) sum_pieces(rows[k], num_pieces, packed.num_sums);
  });
}

template void fused_mlp_forward(const Mlp<float>&, const float*, int64_t, float*, float*, int);
template void fused_mlp_forward(const Mlp<double>&, const double*, int64_t, double*, double*, int);
template void fused_mlp_backward(const Mlp<float>&, const float*, const float*, const float*,
                                 const float*, int64_t, const MlpGradients<float>&, int);
template void fused_mlp_backward(const Mlp<double>&, const double*, const double*, const double*,
                                 const double*, int64_t, const MlpGradients<double>&, int);
template int64_t fused_mlp_hidden_size(const Mlp<float>&, int64_t);
template int64_t fused_mlp_hidden_size(const Mlp<double>&, int64_t);

}  // namespace diorama
