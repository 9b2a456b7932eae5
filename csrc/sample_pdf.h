// SPDX-License-Identifier: Apache-2.0
// Inverse-CDF sampling of a piecewise-constant density; diorama/ops/sample_pdf.py specifies it.
#pragma once

#include <cstdint>

namespace diorama {

// Ray r has the edges edges[r (num_bins + 1) ..] and the weights weights[r num_bins ..].
template <class T>
struct Histograms {
  const T* edges;
  const T* weights;
  int64_t num_rays;
  int64_t num_bins;
  T padding;        // Added to each weight.
  T smallest_step;  // A step of the CDF below it is taken for 1.
};

// Where the CDF is inverted: at u[r num_samples + k], or at u[k] for all rays if is_shared;
// without u at (k + jitter[r]) / num_samples, without jitter at (k + 1/2) / num_samples.
template <class T>
struct CdfPlaces {
  const T* u;
  bool is_shared;
  const T* jitter;
  int64_t num_samples;
};

template <class T>
void invert_cdf(const Histograms<T>& in, const CdfPlaces<T>& places, T* samples, int num_threads);

}  // namespace diorama
