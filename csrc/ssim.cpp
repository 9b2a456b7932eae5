// SPDX-License-Identifier: Apache-2.0
// Both passes blur up to four images at once, in tiles that stay in the cache: rows first, then
// columns, four rows at a time so that each blurred row is loaded once for all four. Channels stay
// interleaved: a step along the row is a step of `channels` numbers.
#include "ssim.h"

#include <algorithm>
#include <vector>

#include "parallel.h"
#include "simd.h"

namespace diorama {
namespace {

constexpr int64_t kRadius = kSsimTaps / 2;
constexpr int64_t kTileRows = 32;
constexpr int64_t kTileWidth = 256;  // Numbers, not pixels.
constexpr int64_t kRowsAtOnce = 4;
constexpr int64_t kInputRows = kTileRows + 2 * kRadius;

// Variances do not depend on the origin, and lose fewer digits when it is in the middle.
template <class T>
constexpr T kShift = T(0.5);
constexpr double kC1 = 0.01 * 0.01, kC2 = 0.03 * 0.03;

// A row of numbers `begin .. begin + count` of an image whose numbers outside it are `outside`.
template <class T>
void copy_row(const T* image, int64_t height, int64_t row_size, int64_t y, int64_t begin,
              int64_t count, T shift, T outside, T* target) {
  const bool is_inside = y >= 0 && y < height;
  const int64_t low = is_inside ? std::clamp<int64_t>(-begin, 0, count) : count;
  const int64_t high = is_inside ? std::clamp<int64_t>(row_size - begin, low, count) : count;
  std::fill(target, target + low, outside);
  const T* const source = image + y * row_size + begin;
#pragma omp simd
  for (int64_t k = low; k < high; ++k) target[k] = source[k] - shift;
  std::fill(target + high, target + count, outside);
}

// Blurs kCount images over one tile after the other.
template <class T, int kCount>
class Blur {
 public:
  explicit Blur(const SsimShape& shape)
      : step_(shape.channels),
        segment_((kTileWidth + 2 * kRadius * step_ + 15) / 16 * 16),
        raw_(kCount * segment_),
        rows_(kCount * kInputRows * kTileWidth),
        blurred_(kCount * kRowsAtOnce * kTileWidth) {
    for (int k = 0; k < kSsimTaps; ++k) taps_[k] = T(shape.taps[k]);
  }

  int64_t segment() const { return segment_; }
  T* raw(int image) { return raw_.data() + image * segment_; }
  const T* blurred(int image, int64_t row) const {
    return blurred_.data() + (image * kRowsAtOnce + row) * kTileWidth;
  }

  // Calls fill(i) to have raw(..) hold input row i, which is kRadius above output row i and begins
  // kRadius pixels to its left, then use(row) for each of the output rows.
  template <class Fill, class Use>
  void run(int64_t num_rows, const Fill& fill, const Use& use) {
    const int64_t groups = (num_rows + kRowsAtOnce - 1) / kRowsAtOnce;
    for (int64_t i = 0; i < groups * kRowsAtOnce + 2 * kRadius; ++i) {
      fill(i);
      for (int image = 0; image < kCount; ++image)
        along_row(raw(image), rows_.data() + (image * kInputRows + i) * kTileWidth);
    }
    for (int64_t first = 0; first < num_rows; first += kRowsAtOnce) {
      for (int image = 0; image < kCount; ++image)
        across_rows(rows_.data() + (image * kInputRows + first) * kTileWidth,
                    blurred_.data() + image * kRowsAtOnce * kTileWidth);
      for (int64_t k = 0; k < std::min(kRowsAtOnce, num_rows - first); ++k) use(first + k, k);
    }
  }

 private:
  void along_row(const T* source, T* target) const {
    constexpr int64_t kAtOnce = 4;
    for (int64_t x = 0; x < kTileWidth; x += kAtOnce * kLanes<T>) {
      Vec<T> sums[kAtOnce] = {};
#pragma GCC unroll 11
      for (int64_t k = 0; k < kSsimTaps; ++k)
#pragma GCC unroll 4
        for (int64_t j = 0; j < kAtOnce; ++j)
          sums[j] += taps_[k] * load(source + x + j * kLanes<T> + k * step_);
      for (int64_t j = 0; j < kAtOnce; ++j) store(target + x + j * kLanes<T>, sums[j]);
    }
  }

  void across_rows(const T* source, T* target) const {
    for (int64_t x = 0; x < kTileWidth; x += kLanes<T>) {
      Vec<T> sums[kRowsAtOnce] = {};
#pragma GCC unroll 14
      for (int64_t i = 0; i < kSsimTaps + kRowsAtOnce - 1; ++i) {
        const Vec<T> row = load(source + i * kTileWidth + x);
#pragma GCC unroll 4
        for (int64_t j = 0; j < kRowsAtOnce; ++j)
          if (i >= j && i - j < kSsimTaps) sums[j] += taps_[i - j] * row;
      }
      for (int64_t j = 0; j < kRowsAtOnce; ++j) store(target + j * kTileWidth + x, sums[j]);
    }
  }

  T taps_[kSsimTaps];
  int64_t step_, segment_;
  std::vector<T> raw_, rows_, blurred_;
};

// The similarity and its derivatives by the four blurred images, for one vector of numbers.
template <class T>
struct Similarity {
  Vec<T> value, by_mean_a, by_mean_b, by_squares, by_product;

  Similarity(Vec<T> shifted_a, Vec<T> shifted_b, Vec<T> squares, Vec<T> product) {
    const Vec<T> mean_a = shifted_a + kShift<T>, mean_b = shifted_b + kShift<T>;
    const Vec<T> variances = squares - shifted_a * shifted_a - shifted_b * shifted_b;
    const Vec<T> covariance = product - shifted_a * shifted_b;
    const Vec<T> over_means = T(1) / (mean_a * mean_a + mean_b * mean_b + T(kC1));
    const Vec<T> over_variances = T(1) / (variances + T(kC2));
    const Vec<T> luminance = (T(2) * mean_a * mean_b + T(kC1)) * over_means;
    const Vec<T> structure = (T(2) * covariance + T(kC2)) * over_variances;
    value = luminance * structure;
    by_product = T(2) * luminance * over_variances;
    by_squares = -value * over_variances;
    // mean_b - luminance mean_a, written so that similar means do not cancel.
    const Vec<T> by_means = T(2) * structure * over_means * over_means * (shifted_b - shifted_a);
    const Vec<T> both = mean_a + mean_b;
    by_mean_a =
        by_means * (mean_b * both + T(kC1)) + by_product * (structure * shifted_a - shifted_b);
    by_mean_b =
        by_product * (structure * shifted_b - shifted_a) - by_means * (mean_a * both + T(kC1));
  }
};

template <class T>
double forward_band(const SsimShape& shape, const T* a, const T* b, const SsimMaps<T>& maps,
                    int64_t y0) {
  const int64_t num_rows = std::min(kTileRows, shape.out_height - y0);
  const int64_t row_size = shape.width * shape.channels;
  const int64_t out_size = shape.out_width * shape.channels;
  const T black = -kShift<T>;
  Blur<T, 4> blur(shape);
  double total = 0;
  for (int64_t x0 = 0; x0 < out_size; x0 += kTileWidth) {
    const int64_t count = std::min(kTileWidth, out_size - x0);
    const auto fill = [&](int64_t i) {
      const int64_t y = y0 + shape.offset - kRadius + i;
      const int64_t begin = x0 + (shape.offset - kRadius) * shape.channels;
      T *const pa = blur.raw(0), *const pb = blur.raw(1);
      T *const squares = blur.raw(2), *const product = blur.raw(3);
      copy_row(a, shape.height, row_size, y, begin, blur.segment(), kShift<T>, black, pa);
      copy_row(b, shape.height, row_size, y, begin, blur.segment(), kShift<T>, black, pb);
#pragma omp simd
      for (int64_t k = 0; k < blur.segment(); ++k) {
        squares[k] = pa[k] * pa[k] + pb[k] * pb[k];
        product[k] = pa[k] * pb[k];
      }
    };
    const auto use = [&](int64_t row, int64_t k) {
      const int64_t at = (y0 + row) * out_size + x0;
      Vec<T> sums{};
      for (int64_t x = 0; x < count; x += kLanes<T>) {
        const Similarity<T> s(load(blur.blurred(0, k) + x), load(blur.blurred(1, k) + x),
                              load(blur.blurred(2, k) + x), load(blur.blurred(3, k) + x));
        const int64_t left = count - x;
        if (left >= kLanes<T>) {
          sums += s.value;
        } else {
          const auto lanes = std::bit_cast<std::array<T, kLanes<T>>>(s.value);
          sums += load(lanes.data(), left);
        }
        if (maps.mean_a) store(maps.mean_a + at + x, s.by_mean_a, left);
        if (maps.mean_b) store(maps.mean_b + at + x, s.by_mean_b, left);
        if (maps.squares) store(maps.squares + at + x, s.by_squares, left);
        if (maps.product) store(maps.product + at + x, s.by_product, left);
      }
      total += static_cast<double>(sum<T>(sums));
    };
    blur.run(num_rows, fill, use);
  }
  return total;
}

// dL/da = blur(by mean a) + 2 a blur(by squares) + b blur(by product), with shifted a and b.
template <class T, int kCount>
void backward_band(const SsimShape& shape, const T* a, const T* b, const SsimMaps<const T>& maps,
                   T scale, T* grad_a, T* grad_b, int64_t y0) {
  const int64_t num_rows = std::min(kTileRows, shape.height - y0);
  const int64_t row_size = shape.width * shape.channels;
  const int64_t out_size = shape.out_width * shape.channels;
  const T* const sources[4] = {maps.squares, maps.product, grad_a ? maps.mean_a : maps.mean_b,
                               maps.mean_b};
  const int image_a = 2, image_b = kCount - 1;
  Blur<T, kCount> blur(shape);
  for (int64_t x0 = 0; x0 < row_size; x0 += kTileWidth) {
    const int64_t count = std::min(kTileWidth, row_size - x0);
    const auto fill = [&](int64_t i) {
      const int64_t y = y0 - shape.offset - kRadius + i;
      const int64_t begin = x0 - (shape.offset + kRadius) * shape.channels;
      for (int image = 0; image < kCount; ++image)
        copy_row(sources[image], shape.out_height, out_size, y, begin, blur.segment(), T(0), T(0),
                 blur.raw(image));
    };
    const auto use = [&](int64_t row, int64_t k) {
      const int64_t at = (y0 + row) * row_size + x0;
      const T* const squares = blur.blurred(0, k);
      const T* const product = blur.blurred(1, k);
      const T* const mean_a = blur.blurred(image_a, k);
      const T* const mean_b = blur.blurred(image_b, k);
      for (int64_t x = 0; x < count; x += kLanes<T>) {
        const int64_t left = count - x;
        const Vec<T> va = load(a + at + x, left) - kShift<T>;
        const Vec<T> vb = load(b + at + x, left) - kShift<T>;
        const Vec<T> twice = T(2) * load(squares + x), mixed = load(product + x);
        if (grad_a)
          store(grad_a + at + x, scale * (load(mean_a + x) + va * twice + vb * mixed), left);
        if (grad_b)
          store(grad_b + at + x, scale * (load(mean_b + x) + vb * twice + va * mixed), left);
      }
    };
    blur.run(num_rows, fill, use);
  }
}

}  // namespace

template <class T>
double ssim_forward(const SsimShape& shape, const T* a, const T* b, const SsimMaps<T>& maps,
                    int num_threads) {
  const int64_t num_bands = (shape.out_height + kTileRows - 1) / kTileRows;
  std::vector<double> totals(num_bands);
  parallel_for(num_bands, 1, num_threads, [&](int64_t band, int64_t) {
    totals[band] = forward_band(shape, a, b, maps, band * kTileRows);
  });
  double total = 0;
  for (const double part : totals) total += part;
  return total / static_cast<double>(shape.out_height * shape.out_width * shape.channels);
}

template <class T>
void ssim_backward(const SsimShape& shape, const T* a, const T* b, const SsimMaps<const T>& maps,
                   double scale, T* grad_a, T* grad_b, int num_threads) {
  const double count = static_cast<double>(shape.out_height * shape.out_width * shape.channels);
  const T share = static_cast<T>(scale / count);
  const int64_t num_bands = (shape.height + kTileRows - 1) / kTileRows;
  parallel_for(num_bands, 1, num_threads, [&](int64_t band, int64_t) {
    if (grad_a && grad_b)
      backward_band<T, 4>(shape, a, b, maps, share, grad_a, grad_b, band * kTileRows);
    else
      backward_band<T, 3>(shape, a, b, maps, share, grad_a, grad_b, band * kTileRows);
  });
}

template double ssim_forward(const SsimShape&, const float*, const float*, const SsimMaps<float>&,
                             int);
template double ssim_forward(const SsimShape&, const double*, const double*,
                             const SsimMaps<double>&, int);
template void ssim_backward(const SsimShape&, const float*, const float*,
                            const SsimMaps<const float>&, double, float*, float*, int);
template void ssim_backward(const SsimShape&, const double*, const double*,
                            const SsimMaps<const double>&, double, double*, double*, int);

}  // namespace diorama
