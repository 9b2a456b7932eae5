// SPDX-License-Identifier: Apache-2.0
// Distortion: one ray after the other, a vector of its samples at a time, scans within vectors.
#include "distortion.h"

#include "parallel.h"
#include "simd.h"

namespace diorama {
namespace {

constexpr int64_t kRaysPerPiece = 64;

// Walks a ray from the front and keeps, for each sample i of a vector,
//   weight_i = sum_{j<i} w_j   and   distance_i = sum_{j<i} w_j (t_i - t_j).
// The latter is summed from weight_i (t_i - t_{i-1}): all terms have one sign, so nothing cancels.
template <class T>
struct FromFront {
  Vec<T> weight{}, distance{};
  T last_weight = T(0), last_distance = T(0), last_t;

  explicit FromFront(T first_t) : last_t(first_t) {}

  void add(Vec<T> w, Vec<T> t) {
    const Vec<T> with_own = prefix_sum<T>(w) + last_weight;
    weight = shift_up<T>(with_own, last_weight);
    distance = prefix_sum<T>(weight * (t - shift_up<T>(t, last_t))) + last_distance;
    last_weight = with_own[kLanes<T> - 1];
    last_distance = distance[kLanes<T> - 1];
    last_t = t[kLanes<T> - 1];
  }
};

// The same from the back: weight_i = sum_{j>i} w_j, distance_i = sum_{j>i} w_j (t_j - t_i). Zeros
// that fill the last vector have no weight in front of them that is not zero, and add nothing.
template <class T>
struct FromBack {
  Vec<T> weight{}, distance{};
  T last_weight = T(0), last_distance = T(0), last_t = T(0);

  void add(Vec<T> w, Vec<T> t) {
    const Vec<T> with_own = suffix_sum<T>(w) + last_weight;
    weight = shift_down<T>(with_own, last_weight);
    distance = suffix_sum<T>(weight * (shift_down<T>(t, last_t) - t)) + last_distance;
    last_weight = with_own[0];
    last_distance = distance[0];
    last_t = t[0];
  }
};

template <class T>
T forward_ray(const DistortionSamples<T>& in, int64_t begin, int64_t end) {
  if (begin == end) return T(0);
  FromFront<T> front(in.t[begin]);
  Vec<T> loss{};
  for (int64_t i = begin; i < end; i += kLanes<T>) {
    const int64_t count = end - i;
    const Vec<T> w = load(in.weights + i, count);
    front.add(w, load(in.t + i, count));
    // Each pair counts twice.
    loss += w * (T(2) * front.distance + T(1.0 / 3.0) * w * load(in.delta + i, count));
  }
  return sum<T>(loss);
}

// dL/dw_i = 2 sum_j w_j |t_i - t_j| + 2/3 w_i delta_i,   dL/dt_i = 2 w_i (sum_{j<i} - sum_{j>i})
// w_j, dL/ddelta_i = w_i^2 / 3.  A first sweep leaves what lies in front of each sample in the
// outputs, a second one from the back completes it.
template <class T>
void backward_ray(const DistortionSamples<T>& in, T grad, const DistortionGradients<T>& out,
                  int64_t begin, int64_t end) {
  if (begin == end) return;
  FromFront<T> front(in.t[begin]);
  for (int64_t i = begin; i < end; i += kLanes<T>) {
    const int64_t count = end - i;
    front.add(load(in.weights + i, count), load(in.t + i, count));
    if (out.weights) store(out.weights + i, front.distance, count);
    if (out.t) store(out.t + i, front.weight, count);
  }
  FromBack<T> back;
  const int64_t num_vectors = (end - begin + kLanes<T> - 1) / kLanes<T>;
  for (int64_t i = begin + (num_vectors - 1) * kLanes<T>; i >= begin; i -= kLanes<T>) {
    const int64_t count = end - i;
    const Vec<T> w = load(in.weights + i, count);
    back.add(w, load(in.t + i, count));
    if (out.weights) {
      const Vec<T> distance = load(out.weights + i, count) + back.distance;
      const Vec<T> own = T(1.0 / 3.0) * w * load(in.delta + i, count);
      store(out.weights + i, T(2) * grad * (distance + own), count);
    }
    if (out.t) store(out.t + i, T(2) * grad * w * (load(out.t + i, count) - back.weight), count);
    if (out.delta) store(out.delta + i, T(1.0 / 3.0) * grad * w * w, count);
  }
}

}  // namespace

template <class T>
void distortion_forward(const DistortionSamples<T>& samples, T* loss, int num_threads) {
  parallel_for(samples.num_rays, kRaysPerPiece, num_threads, [&](int64_t begin, int64_t end) {
    for (int64_t ray = begin; ray < end; ++ray)
      loss[ray] = forward_ray(samples, samples.ray_offsets[ray], samples.ray_offsets[ray + 1]);
  });
}

template <class T>
void distortion_backward(const DistortionSamples<T>& samples, const T* grad_loss,
                         const DistortionGradients<T>& out, int num_threads) {
  parallel_for(samples.num_rays, kRaysPerPiece, num_threads, [&](int64_t begin, int64_t end) {
    for (int64_t ray = begin; ray < end; ++ray)
      backward_ray(samples, grad_loss[ray], out, samples.ray_offsets[ray],
                   samples.ray_offsets[ray + 1]);
  });
}

template void distortion_forward(const DistortionSamples<float>&, float*, int);
template void distortion_forward(const DistortionSamples<double>&, double*, int);
template void distortion_backward(const DistortionSamples<float>&, const float*,
                                  const DistortionGradients<float>&, int);
template void distortion_backward(const DistortionSamples<double>&, const double*,
                                  const DistortionGradients<double>&, int);

}  // namespace diorama
