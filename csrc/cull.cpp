// SPDX-License-Identifier: Apache-2.0
// Culling: prefix sums of optical depth along each ray, until nothing behind can be seen.
#include "cull.h"

#include <algorithm>
#include <array>
#include <bit>

#include "parallel.h"
#include "simd.h"

namespace diorama {
namespace {

constexpr int64_t kRaysPerPiece = 64;

// Calls on_vector(index of the first sample, -1 in each lane that is kept and 0 in the others)
// along a ray until it is opaque.
template <class T, class OnVector>
void walk(const CullSamples<T>& in, const CullBounds<T>& bounds, int64_t ray,
          const OnVector& on_vector) {
  using Lane = SignedBits<T>;
  const int64_t end = in.ray_offsets[ray + 1];
  T depth = T(0);
  // A NaN fails every comparison and so hides itself and everything behind it.
  for (int64_t i = in.ray_offsets[ray]; i < end && depth <= bounds.max_depth; i += kLanes<T>) {
    const int64_t count = end - i;
    const Vec<T> tau = load(in.sigma + i, count) * load(in.delta + i, count);
    const Vec<T> behind = prefix_sum<T>(tau) + depth;
    const Vec<T> front = shift_up<T>(behind, depth);
    const Vec<Lane> is_sample =
        lane_numbers<Lane>() < broadcast(static_cast<Lane>(std::min(count, kLanes<T>)));
    on_vector(
        i, (front <= broadcast(bounds.max_depth)) & (tau >= broadcast(bounds.min_tau)) & is_sample);
    depth = behind[kLanes<T> - 1];
  }
}

template <class T>
int64_t count_ray(const CullSamples<T>& in, const CullBounds<T>& bounds, int64_t ray) {
  using Lane = SignedBits<T>;
  Vec<Lane> total{};
  walk(in, bounds, ray, [&](int64_t, Vec<Lane> is_kept) { total -= is_kept; });
  return sum<Lane>(total);
}

template <class T>
void write_ray(const CullSamples<T>& in, const CullBounds<T>& bounds, int64_t ray, int64_t* target,
               const int64_t* end) {
  using Lane = SignedBits<T>;
  walk(in, bounds, ray, [&](int64_t i, Vec<Lane> is_kept) {
    const auto lanes = std::bit_cast<std::array<Lane, kLanes<T>>>(is_kept);
    if (sum<Lane>(is_kept) == -kLanes<T> && end - target >= kLanes<T>) {
      for (int64_t k = 0; k < kLanes<T>; ++k) target[k] = i + k;
      target += kLanes<T>;
      return;
    }
    for (int64_t k = 0; k < kLanes<T> && target < end; ++k)
      if (lanes[k]) *target++ = i + k;
  });
}

}  // namespace

template <class T>
void cull_count(const CullSamples<T>& samples, const CullBounds<T>& bounds, int64_t* new_offsets,
                int num_threads) {
  parallel_for(samples.num_rays, kRaysPerPiece, num_threads, [&](int64_t begin, int64_t end) {
    for (int64_t ray = begin; ray < end; ++ray)
      new_offsets[ray + 1] = count_ray(samples, bounds, ray);
  });
  new_offsets[0] = 0;
  for (int64_t ray = 0; ray < samples.num_rays; ++ray) new_offsets[ray + 1] += new_offsets[ray];
}

template <class T>
void cull_write(const CullSamples<T>& samples, const CullBounds<T>& bounds,
                const int64_t* new_offsets, int64_t* kept, int num_threads) {
  parallel_for(samples.num_rays, kRaysPerPiece, num_threads, [&](int64_t begin, int64_t end) {
    for (int64_t ray = begin; ray < end; ++ray)
      write_ray(samples, bounds, ray, kept + new_offsets[ray], kept + new_offsets[ray + 1]);
  });
}

template void cull_count(const CullSamples<float>&, const CullBounds<float>&, int64_t*, int);
template void cull_count(const CullSamples<double>&, const CullBounds<double>&, int64_t*, int);
template void cull_write(const CullSamples<float>&, const CullBounds<float>&, const int64_t*,
                         int64_t*, int);
template void cull_write(const CullSamples<double>&, const CullBounds<double>&, const int64_t*,
                         int64_t*, int);

}  // namespace diorama
