// SPDX-License-Identifier: Apache-2.0
// A stable parallel sort by an unsigned key, least significant digit first.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "parallel.h"

namespace diorama {

template <class Key>
struct SortEntry {
  Key key;
  int32_t index;
};

// Pieces of fixed size count their digits, then each moves its own entries to places that were
// reserved for it; the order that comes out does not depend on the pieces at all.
template <class Key>
void radix_sort(std::vector<SortEntry<Key>>& entries, int num_threads) {
  constexpr int kDigitBits = 11, kNumDigits = 1 << kDigitBits, kPiece = 1 << 14;
  const int64_t count = static_cast<int64_t>(entries.size());
  const int64_t num_pieces = (count + kPiece - 1) / kPiece;
  using Places = std::array<uint32_t, kNumDigits>;
  std::vector<Places> places(num_pieces);
  std::vector<SortEntry<Key>> sorted(entries.size());

  for (int shift = 0; shift < static_cast<int>(8 * sizeof(Key)); shift += kDigitBits) {
    const auto digit = [&](Key key) { return (key >> shift) & (kNumDigits - 1); };
    parallel_for(count, kPiece, num_threads, [&](int64_t begin, int64_t end) {
      Places& counts = places[begin / kPiece];
      counts.fill(0);
      for (int64_t i = begin; i < end; ++i) ++counts[digit(entries[i].key)];
    });
    uint32_t total = 0, largest = 0;
    for (int d = 0; d < kNumDigits; ++d) {
      const uint32_t before = total;
      for (Places& piece : places) {
        const uint32_t own = piece[d];
        piece[d] = total;
        total += own;
      }
      largest = std::max(largest, total - before);
    }
    if (largest == total) continue;  // All have the same digit.
    parallel_for(count, kPiece, num_threads, [&](int64_t begin, int64_t end) {
      Places& next = places[begin / kPiece];
      for (int64_t i = begin; i < end; ++i) sorted[next[digit(entries[i].key)]++] = entries[i];
    });
    entries.swap(sorted);
  }
}

}  // namespace diorama
