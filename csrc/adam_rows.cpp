// SPDX-License-Identifier: Apache-2.0
// Rows of a vector's width and more are updated one by one, and what lies between them is not even
// read. Narrow ones share cache lines anyway: there, all lanes are computed and some are kept.
#include "adam_rows.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "lane_functions.h"
#include "parallel.h"
#include "simd.h"

namespace diorama {
namespace {

constexpr int64_t kRowsPerPiece = 1024;
constexpr int64_t kRowsPerBlock = 32;

// The factors that depend on how often a row was updated: [t - 1] are those of the t-th time.
template <class T>
class Corrections {
 public:
  struct Factors {
    T step_size, inverse_root_bias2;
  };

  Corrections(const AdamRowRule& rule, T most) {
    double power1 = 1, power2 = 1;
    // From where this ends on, both corrections are 1 in the arithmetic of T.
    do {
      power1 *= rule.beta1, power2 *= rule.beta2;
      table_.push_back({T(rule.lr / (1 - power1)), T(1 / std::sqrt(1 - power2))});
    } while (T(table_.size()) < most &&
             std::max(power1, power2) > std::numeric_limits<T>::epsilon() / 4);
  }

  // No count, not even NaN, leads out of the table.
  const Factors& at(T time) const {
    const T least = time > T(1) ? time : T(1), size = T(table_.size());
    return table_[static_cast<int64_t>(least < size ? least : size) - 1];
  }

 private:
  std::vector<Factors> table_;
};

template <class T>
T most_updates(const AdamRowTensors<T>& t) {
  T most = 0;
  const T* const row_steps = t.row_steps;
#pragma omp simd reduction(max : most)
  for (int64_t row = 0; row < t.num_rows; ++row)
    most = row_steps[row] > most ? row_steps[row] : most;
  return most + 1;
}

template <class T>
struct Updater {
  AdamRowTensors<T> t;
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

  // The factors of some rows; an inverse_root of 0 marks those that are not chosen.
  struct Block {
    T step_size[kRowsPerBlock], inverse_root[kRowsPerBlock];

    // Without a branch, because no predictor knows what a camera sees.
    Block(const AdamRowTensors<T>& t, int64_t first, int64_t last,
          const Corrections<T>& corrections) {
      const int64_t count = last - first;
      for (int64_t k = 0; k < count; ++k) {
        const T is_chosen = t.chosen[first + k];
        const auto factors = corrections.at(t.row_steps[first + k] += is_chosen);
        step_size[k] = factors.step_size;
        inverse_root[k] = is_chosen * factors.inverse_root_bias2;
      }
    }
  };

  void wide_rows(int64_t first, int64_t last, const Block& block) const {
    for (int64_t row = first; row < last; ++row) {
      const T size = block.step_size[row - first], root = block.inverse_root[row - first];
      if (root == 0) continue;
      for (int64_t i = 0; i < t.width; i += kLanes<T>)
        update(row * t.width + i, t.width - i, broadcast(size), broadcast(root));
    }
  }

  void narrow_rows(int64_t first, int64_t last, const Block& block) const {
    alignas(64) T step_size[kRowsPerBlock * kLanes<T>], inverse_root[kRowsPerBlock * kLanes<T>];
    int64_t count = 0;
    for (int64_t k = 0; k < last - first; ++k)
      for (int64_t i = 0; i < t.width; ++i, ++count) {
        step_size[count] = block.step_size[k];
        inverse_root[count] = block.inverse_root[k];
      }
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
    for (int64_t first = begin; first < end; first += kRowsPerBlock) {
      const int64_t last = std::min(first + kRowsPerBlock, end);
      if (std::none_of(tensors.chosen + first, tensors.chosen + last, std::identity())) continue;
      const typename Updater<T>::Block block(tensors, first, last, corrections);
      if (tensors.width >= kLanes<T>)
        updater.wide_rows(first, last, block);
      else
        updater.narrow_rows(first, last, block);
    }
  });
}

template void adam_rows_step(const AdamRowTensors<float>&, const AdamRowRule&, int);
template void adam_rows_step(const AdamRowTensors<double>&, const AdamRowRule&, int);

}  // namespace diorama
