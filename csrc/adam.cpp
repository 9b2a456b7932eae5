// SPDX-License-Identifier: Apache-2.0
// Adam is bound by memory: it reads four numbers for each parameter and writes three. Of a block
// that no gradient has ever reached it need read only the gradient, and write nothing.
#include "adam.h"

#include <cmath>

#include "denormals.h"
#include "parallel.h"
#include "simd.h"

namespace diorama {
namespace {

constexpr int64_t kBlocksPerPiece = 128;

// AdamStep in the arithmetic of the tensors, with what is the same for all items worked out.
template <class T>
struct Factors {
  T average_share, beta2, square_share;
  T inverse_root_bias2, eps, step_size;
  T l2, keep;
  bool may_skip;

  explicit Factors(const AdamStep& s)
      : average_share(T(1 - s.beta1)),
        beta2(T(s.beta2)),
        square_share(T(1 - s.beta2)),
        inverse_root_bias2(T(1 / std::sqrt(s.bias_correction2))),
        eps(T(s.eps)),
        step_size(T(s.lr / s.bias_correction1)),
        l2(T(s.is_decoupled ? 0 : s.weight_decay)),
        keep(T(s.is_decoupled ? 1 - s.lr * s.weight_decay : 1)),
        // Without eps, zero moments would move a parameter by 0 / 0.
        may_skip(s.weight_decay == 0 && eps > 0 && std::isfinite(step_size)) {}
};

template <class T>
bool is_zero(const T* numbers, int64_t count) {
  using Bits = Vec<SignedBits<T>>;
  Bits seen{};
  for (int64_t i = 0; i < count; i += kLanes<T>)
    seen |= std::bit_cast<Bits>(load(numbers + i, count - i)) << 1;  // A zero may have a sign.
  using Words = std::array<uint64_t, kVectorBytes / sizeof(uint64_t)>;
  uint64_t any = 0;
  for (const uint64_t word : std::bit_cast<Words>(seen)) any |= word;
  return any == 0;
}

template <class T>
void update(const AdamTensors<T>& t, const Factors<T>& f, int64_t begin, int64_t end) {
  T* const parameter = t.parameter;
  const T* const gradient = t.gradient;
  T* const exp_avg = t.exp_avg;
  T* const exp_avg_sq = t.exp_avg_sq;
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const T g = gradient[i] + f.l2 * parameter[i];
    const T m = exp_avg[i] + f.average_share * (g - exp_avg[i]);
    const T v = f.beta2 * exp_avg_sq[i] + f.square_share * g * g;
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    const T root = std::sqrt(v) * f.inverse_root_bias2 + f.eps;
    parameter[i] = f.keep * parameter[i] - f.step_size * m / root;
  }
}

}  // namespace

template <class T>
void adam_step(const AdamTensors<T>& tensors, const AdamStep& step, int num_threads) {
  const Factors<T> factors(step);
  const int64_t num_blocks = (tensors.count + kAdamBlock - 1) / kAdamBlock;
  parallel_for(num_blocks, kBlocksPerPiece, num_threads, [&](int64_t first, int64_t last) {
    // The moments of entries that no gradient reaches any more shrink for ever.
    const WithoutDenormals guard;
    for (int64_t block = first; block < last; ++block) {
      const int64_t begin = block * kAdamBlock, end = std::min(begin + kAdamBlock, tensors.count);
      // With zero moments and a zero gradient, the formula gives all three the bits they have.
      if (factors.may_skip && !tensors.touched[block] &&
          is_zero(tensors.gradient + begin, end - begin))
        continue;
      tensors.touched[block] = true;
      update(tensors, factors, begin, end);
    }
  });
}

template void adam_step(const AdamTensors<float>&, const AdamStep&, int);
template void adam_step(const AdamTensors<double>&, const AdamStep&, int);

}  // namespace diorama
