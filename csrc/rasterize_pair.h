// SPDX-License-Identifier: Apache-2.0
// The gradient of one Gaussian in one tile: sums over its pixels, in registers, then one row.
#pragma once

#include "rasterize_batch.h"

namespace diorama {

// What is summed besides the gradients: nothing, sizes of the pixels' gradients for each Gaussian,
// or for each pixel as well.
enum RasterExtras { kNoExtras, kSplatExtras, kPixelExtras };

// Places in a pair's row. With h = dL/dalpha alpha of a pixel: h, h u, h e, h u^2, h u e, h e^2;
// then the extras, the gradients of the features, and last the number of pixels.
template <int kExtras>
struct PairRow {
  static constexpr int kMoments = 0, kAbsolute = 6, kNorm = 8;
  static constexpr int kFeatures = kExtras == kNoExtras ? 6 : 9;

  static constexpr int64_t length(int64_t num_channels) {
    return kFeatures + num_channels + (kExtras == kNoExtras ? 0 : 1);
  }
};

// Sums over pixels of the gradients of a Gaussian's features.
template <class T, int kChannels>
struct FeatureSums {
  Vec<T> sums[kChannels] = {};

  FeatureSums(Vec<T>*, int64_t) {}
  void add(int64_t c, Vec<T> value) { sums[c] += value; }
};

template <class T>
struct FeatureSums<T, kAnyChannels> {
  Vec<T>* sums;

  FeatureSums(Vec<T>* workspace, int64_t num_channels) : sums(workspace) {
    std::fill_n(sums, num_channels, Vec<T>{});
  }
  void add(int64_t c, Vec<T> value) { sums[c] += value; }
};

// Writes the sum over lanes of each of the vectors to a row.
template <class T, int kCount>
inline void store_sums(T* row, const Vec<T> (&vectors)[kCount]) {
  constexpr int kLanesHere = static_cast<int>(kLanes<T>);
  if constexpr (kCount <= kLanesHere) {
    store(row, sum_each<T, kCount>(vectors), kCount);
  } else {
    Vec<T> first[kLanesHere], rest[kCount - kLanesHere];
    std::copy_n(vectors, kLanesHere, first);
    std::copy_n(vectors + kLanesHere, kCount - kLanesHere, rest);
    store(row, sum_each<T, kLanesHere>(first));
    store_sums<T, kCount - kLanesHere>(row + kLanesHere, rest);
  }
}

template <class T, int kChannels, int kExtras>
struct PairSums {
  using Row = PairRow<kExtras>;
  Vec<T> fixed[Row::kFeatures] = {};
  FeatureSums<T, kChannels> features;
  int num_pixels = 0;

  PairSums(Vec<T>* workspace, int64_t num_channels) : features(workspace, num_channels) {}

  void add_moments(Vec<T> h, Vec<T> hu, Vec<T> he, Vec<T> u, Vec<T> e) {
    fixed[0] += h;
    fixed[1] += hu;
    fixed[2] += he;
    fixed[3] += hu * u;
    fixed[4] += hu * e;
    fixed[5] += he * e;
  }

  void add_extras(Vec<T> abs_x, Vec<T> abs_y, int count) {
    fixed[Row::kAbsolute] += abs_x;
    fixed[Row::kAbsolute + 1] += abs_y;
    fixed[Row::kNorm] += square_root<T>(abs_x * abs_x + abs_y * abs_y);
    num_pixels += count;
  }

  void finish(T* row, int64_t num_channels) const {
    if constexpr (kChannels == kAnyChannels) {
      store_sums<T, Row::kFeatures>(row, fixed);
      for (int64_t c = 0; c < num_channels; ++c) row[Row::kFeatures + c] = sum<T>(features.sums[c]);
    } else {
      Vec<T> all[Row::kFeatures + kChannels];
      std::copy_n(fixed, Row::kFeatures, all);
      std::copy_n(features.sums, kChannels, all + Row::kFeatures);
      store_sums<T, Row::kFeatures + kChannels>(row, all);
    }
    if constexpr (kExtras != kNoExtras)
      row[Row::kFeatures + num_channels] = static_cast<T>(num_pixels);
  }
};

}  // namespace diorama
