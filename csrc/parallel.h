// SPDX-License-Identifier: Apache-2.0
// Splits an outer loop over threads; every item has one owner, so results never depend on them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace diorama {

// Backward: each thread goes through its share from the end, and meets first what is still in its
// cache from a loop over the same items before.
enum class Order { kForward, kBackward };

// Neighbouring pieces of a loop, which one thread begins with and others help to finish.
class alignas(64) Share {
 public:
  void set(int64_t begin, int64_t end) { begin_ = begin, end_ = end; }

  // Calls work(piece) for those pieces that nobody else has taken.
  template <class Work>
  void take(Order order, const Work& work) {
    for (int64_t k; (k = num_taken_.fetch_add(1, std::memory_order_relaxed)) < end_ - begin_;)
      work(order == Order::kForward ? begin_ + k : end_ - 1 - k);
  }

 private:
  std::atomic<int64_t> num_taken_ = 0;
  int64_t begin_ = 0, end_ = 0;
};

inline int thread_number() {
#if defined(_OPENMP)
  return omp_get_thread_num();
#else
  return 0;
#endif
}

// Calls work(begin, end) for consecutive pieces of [0, count) of at most `grain` items each.
// A thread has the same share in every loop of so many items, which its cache may still hold. Then
// it helps the others: rays differ in length, and cores in speed.
// `work` must write only what belongs to its items, and must not throw.
template <class Work>
void parallel_for(int64_t count, int64_t grain, int num_threads, const Work& work,
                  Order order = Order::kForward) {
  const int64_t num_pieces = (count + grain - 1) / grain;
  const int team = static_cast<int>(std::clamp<int64_t>(num_pieces, 1, std::max(1, num_threads)));
  std::vector<Share> shares(team);
  for (int k = 0; k < team; ++k) shares[k].set(num_pieces * k / team, num_pieces * (k + 1) / team);
#pragma omp parallel num_threads(team) if (team > 1)
  for (int k = 0; k < team; ++k)
    shares[(thread_number() + k) % team].take(
        order, [&](int64_t piece) { work(piece * grain, std::min(count, (piece + 1) * grain)); });
}

}  // namespace diorama
