// SPDX-License-Identifier: Apache-2.0
// One ray after the other: its CDF, a binary search for all samples at once, interpolation.
#include "sample_pdf.h"

#include <bit>
#include <limits>
#include <vector>

#include "parallel.h"
#include "simd.h"

namespace diorama {
namespace {

constexpr int64_t kRaysPerPiece = 64;

template <class T>
struct Scratch {
  std::vector<T> cdf;  // Filled up with infinity to a power of two, which ends every search.
  std::vector<T> u;
  std::vector<SignedBits<T>> below;  // The edge below each sample.

  Scratch(int64_t num_bins, int64_t num_samples)
      : cdf(std::bit_ceil(static_cast<size_t>(num_bins + 1)), std::numeric_limits<T>::infinity()),
        u(num_samples),
        below(num_samples) {}
};

// Summed in double, so that the order of the sum does not matter, and 1 at the end exactly.
template <class T>
void fill_cdf(const T* weights, int64_t num_bins, T padding, T* cdf) {
  double total = 0;
  for (int64_t k = 0; k < num_bins; ++k) total += weights[k] + padding;
  const double scale = 1 / total;
  double sum = 0;
  for (int64_t k = 0; k < num_bins; ++k) {
    cdf[k] = static_cast<T>(sum * scale);
    sum += weights[k] + padding;
  }
  cdf[num_bins] = static_cast<T>(sum / total);
}

template <class T>
void fill_u(const CdfPlaces<T>& places, int64_t ray, T* u) {
  if (places.u) {
    std::copy_n(places.u + (places.is_shared ? 0 : ray * places.num_samples), places.num_samples,
                u);
    return;
  }
  const T jitter = places.jitter ? places.jitter[ray] : T(0.5);
  const T count = static_cast<T>(places.num_samples);
#pragma omp simd
  for (int64_t k = 0; k < places.num_samples; ++k)
    u[k] = (static_cast<T>(static_cast<int32_t>(k)) + jitter) / count;
}

// The last edge whose CDF is not above u.
template <class T>
void search(const T* cdf, size_t padded_size, const T* u, int64_t count, SignedBits<T>* below) {
  std::fill_n(below, count, SignedBits<T>(0));
  for (size_t half = padded_size / 2; half > 0; half /= 2) {
    const auto step = static_cast<SignedBits<T>>(half);
#pragma omp simd
    for (int64_t k = 0; k < count; ++k) below[k] += cdf[below[k] + step] <= u[k] ? step : 0;
  }
}

template <class T>
void interpolate(const Scratch<T>& scratch, const T* edges, const Histograms<T>& in, int64_t count,
                 T* samples) {
  const T* const cdf = scratch.cdf.data();
  const T* const u = scratch.u.data();
  const SignedBits<T>* const found = scratch.below.data();
  const auto last = static_cast<SignedBits<T>>(in.num_bins);
  const T smallest_step = in.smallest_step;
#pragma omp simd
  for (int64_t k = 0; k < count; ++k) {
    const SignedBits<T> below = std::min(found[k], last), above = std::min(below + 1, last);
    T step = cdf[above] - cdf[below];
    step = step < smallest_step ? T(1) : step;
    const T low = edges[below], high = edges[above];
    const T sample = low + (u[k] - cdf[below]) / step * (high - low);
    samples[k] = sample > high ? high : sample;
  }
}

}  // namespace

template <class T>
void invert_cdf(const Histograms<T>& in, const CdfPlaces<T>& places, T* samples, int num_threads) {
  parallel_for(in.num_rays, kRaysPerPiece, num_threads, [&](int64_t begin, int64_t end) {
    const int64_t count = places.num_samples;
    Scratch<T> scratch(in.num_bins, count);
    for (int64_t ray = begin; ray < end; ++ray) {
      fill_cdf(in.weights + ray * in.num_bins, in.num_bins, in.padding, scratch.cdf.data());
      fill_u(places, ray, scratch.u.data());
      search(scratch.cdf.data(), scratch.cdf.size(), scratch.u.data(), count, scratch.below.data());
      interpolate(scratch, in.edges + ray * (in.num_bins + 1), in, count, samples + ray * count);
    }
  });
}

template void invert_cdf(const Histograms<float>&, const CdfPlaces<float>&, float*, int);
template void invert_cdf(const Histograms<double>&, const CdfPlaces<double>&, double*, int);

}  // namespace diorama
