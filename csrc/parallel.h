// SPDX-License-Identifier: Apache-2.0
// Splits an outer loop over threads; every item has one owner, so results never depend on them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace diorama {

// Calls work(begin, end) for consecutive pieces of [0, count) of at most `grain` items each.
// Pieces are handed out as threads become free: rays differ in length, and cores in speed.
// `work` must write only what belongs to its items, and must not throw.
template <class Work>
void parallel_for(int64_t count, int64_t grain, int num_threads, const Work& work) {
  const int64_t num_pieces = (count + grain - 1) / grain;
  const int team = static_cast<int>(std::clamp<int64_t>(num_pieces, 1, std::max(1, num_threads)));
#pragma omp parallel for schedule(dynamic) num_threads(team) if (team > 1)
  for (int64_t piece = 0; piece < num_pieces; ++piece) {
    work(piece * grain, std::min(count, (piece + 1) * grain));
  }
  (void)team;
}

}  // namespace diorama
