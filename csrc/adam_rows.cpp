// SPDX-License-Identifier: Apache-2.0
// Rows that are wider than a vector are updated one by one, and what lies between is not even
// read. Narrow ones share cache lines anyway: there, all lanes are computed and some are kept.
#include "adam_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "interleave.h"
#include "parallel.h"
#include "simd.h"

namespace diorama {
namespace {

constexpr int64_t kRowsPerPiece = 1024;
constexpr int64_t kRowsPerBlock = 32;

// The factors that depend on how often a row was updated: [t - 1] are those of the t-th time.
template <class T>
struct Corrections {
  std::vector<T> step_size, inverse_root_bias2;

  Corrections(const AdamRowRule& rule, T most) {
    double power1 = 1, power2 = 1;
    // From where this ends on, both corrections are 1 in the arithmetic of T.
    do {
      power1 *= rule.beta1, power2 *= rule.beta2;
      step_size.push_back(T(rule.lr / (1 - power1)));
      inverse_root_bias2.push_back(T(1 / std::sqrt(1 - power2)));
    } while (T(step_size.size()) < most &&
             std::max(power1, power2) > std::numeric_limits<T>::epsilon() / 4);
  }

  // No count, not even NaN, leads out of the table.
  size_t index(T time) const {
    const size_t last = step_size.size() - 1;
    return time <= T(last) ? static_cast<size_t>(std::max(time, T(1))) - 1 : last;
  }
};

template <class T>
T most_updates(const AdamRowTensors<T>& t) {
  T most = 0;
  for (int64_t row = 0; row < t.num_rows; ++row)
    if (t.chosen[row]) most = std::max(most, t.row_steps[row]);
  return most + 1;
}

template <class T>
struct Updater {
  const AdamRowTensors<T>& t;
  T average_share, beta2, square_share, eps, l2, keep;

  Updater(const AdamRowTensors<T>& tensors, const AdamRowRule& rule)
      : t(tensors),
        average_share(T(1 - rule.beta1)),
        beta2(T(rule.beta2)),
        square_share(T(1 - rule.beta2)),
        eps(T(rule.eps)),
        l2(T(rule.is_decoupled ? 0 : rule.weight_decay)),
        keep(T(rule.is_decoupled ? 1 - rule.lr * rule.weight_decay : 1)) {}

  // A vector of items from `at` on; lanes whose inverse_root is 0 stay as they are.
  void update(int64_t at, int64_t count, Vec<T> step_size, Vec<T> inverse_root) const {
    const Vec<T> p = load(t.parameter + at, count);
    const Vec<T> m = load(t.exp_avg + at, count), v = load(t.exp_avg_sq + at, count);
    const Vec<T> g = load(t.gradient + at, count) + l2 * p;
    const Vec<T> average = m + average_share * (g - m);
    const Vec<T> square = beta2 * v + square_share * g * g;
    const Vec<T> root = square_root<T>(square) * inverse_root + eps;
    const Vec<T> moved = keep * p - step_size * average / root;
    const auto is_chosen = inverse_root > T(0);
    store(t.parameter + at, is_chosen ? moved : p, count);
    store(t.exp_avg + at, is_chosen ? average : m, count);
    store(t.exp_avg_sq + at, is_chosen ? square : v, count);
  }

  void wide_rows(int64_t first, int64_t last, const Corrections<T>& corrections) const {
    for (int64_t row = first; row < last; ++row) {
      if (!t.chosen[row]) continue;
      const size_t k = corrections.index(t.row_steps[row] += 1);
      const Vec<T> step_size = splat(corrections.step_size[k]);
      const Vec<T> inverse_root = splat(corrections.inverse_root_bias2[k]);
      for (int64_t i = 0; i < t.width; i += kLanes<T>)
        update(row * t.width + i, t.width - i, step_size, inverse_root);
    }
  }

  void narrow_rows(int64_t first, int64_t last, const Corrections<T>& corrections) const {
    alignas(64) T step_size[kRowsPerBlock * kLanes<T>], inverse_root[kRowsPerBlock * kLanes<T>];
    T *next_size = step_size, *next_root = inverse_root;
    for (int64_t row = first; row < last; ++row) {
      T size = 0, root = 0;
      if (t.chosen[row]) {
        const size_t k = corrections.index(t.row_steps[row] += 1);
        size = corrections.step_size[k], root = corrections.inverse_root_bias2[k];
      }
      for (int64_t i = 0; i < t.width; ++i) *next_size++ = size, *next_root++ = root;
    }
    const int64_t count = next_size - step_size;
    for (int64_t i = 0; i < count; i += kLanes<T>)
      update(first * t.width + i, count - i, load(step_size + i, count - i),
             load(inverse_root + i, count - i));
  }
};

}  // namespace

template <class T>
void adam_rows_step(const AdamRowTensors<T>& tensors, const AdamRowRule& rule, int num_threads) {
  const Updater<T> updater(tensors, rule);
  const Corrections<T> corrections(rule, most_updates(tensors));
  parallel_for(tensors.num_rows, kRowsPerPiece, num_threads, [&](int64_t begin, int64_t end) {
    if (tensors.width > kLanes<T>) return updater.wide_rows(begin, end, corrections);
    for (int64_t first = begin; first < end; first += kRowsPerBlock) {
      const int64_t last = std::min(first + kRowsPerBlock, end);
      const bool* chosen = tensors.chosen;
      if (std::find(chosen + first, chosen + last, true) != chosen + last)
        updater.narrow_rows(first, last, corrections);
    }
  });
}

template void adam_rows_step(const AdamRowTensors<float>&, const AdamRowRule&, int);
template void adam_rows_step(const AdamRowTensors<double>&, const AdamRowRule&, int);

}  // namespace diorama
