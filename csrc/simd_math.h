// SPDX-License-Identifier: Apache-2.0
// Elementary functions of vectors, as fast as their callers' tolerance allows.
#pragma once

#include <cmath>

#include "simd_masks.h"

namespace diorama {

// Coefficients of 2^r for |r| <= 1/2. In float: the polynomial through (0, 1) of the least relative
// error, 9e-8; with rounding 1.7e-7. In double: Taylor's.
template <class T>
constexpr auto kExp2Coefficients = [] {
  if constexpr (sizeof(T) == 4) {
    return std::array<float, 6>{1.0f,           0x1.62e42ap-1f, 0x1.ebf9bcp-3f,
                                0x1.c6b752p-5f, 0x1.3cea88p-7f, 0x1.5bba14p-10f};
  } else {
    std::array<double, 14> table{};
    double term = 1.0;
    for (size_t k = 0; k < table.size(); ++k) {
      table[k] = term;
      term *= 0.69314718055994530942 / static_cast<double>(k + 1);
    }
    return table;
  }
}();

// 2^x for x in the range where the result is a normal number; anything for other x, but no trap.
template <class T>
inline Vec<T> exp2_normal(Vec<T> x) {
  using K = ExpConstants<T>;
  constexpr auto& c = kExp2Coefficients<T>;
  const Vec<T> shifted = x + K::kRounder;
  const Vec<T> r = x - (shifted - K::kRounder);
  Vec<T> power = c[c.size() - 1] * r + c[c.size() - 2];
#pragma GCC unroll 16
  for (int k = static_cast<int>(c.size()) - 3; k >= 0; --k) power = power * r + c[k];
  const IntVec<T> exponent = std::bit_cast<IntVec<T>>(shifted) << K::kMantissaBits;
  return std::bit_cast<Vec<T>>(std::bit_cast<IntVec<T>>(power) + exponent);
}

// 1 / x to about one unit in the last place, for x neither tiny nor huge; exactly 1 for 1.
template <class T>
inline Vec<T> reciprocal(Vec<T> x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    const auto guess =
        std::bit_cast<Vec<T>>(_mm512_maskz_rcp14_ps(0xffff, std::bit_cast<__m512>(x)));
    return guess + guess * (T(1) - x * guess);
  }
#endif
  return T(1) / x;
}

// sqrt(x) to about 2e-7, for x not huge; 1e-18 more where x is almost that small.
template <class T>
inline Vec<T> square_root(Vec<T> x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    x += T(1e-36);  // Zero has no reciprocal root.
    const auto guess =
        std::bit_cast<Vec<T>>(_mm512_maskz_rsqrt14_ps(0xffff, std::bit_cast<__m512>(x)));
    const Vec<T> root = x * guess;
    return root + T(0.5) * root * (T(1) - root * guess);
  }
#endif
  auto lanes = std::bit_cast<std::array<T, kLanes<T>>>(x);
  for (T& lane : lanes) lane = std::sqrt(lane);
  return std::bit_cast<Vec<T>>(lanes);
}

// Lane k of the result is the sum of vector k's lanes. The last of the vectors may be missing; what
// then stands in their lanes is of no use.
template <class T, int kCount, int kGroup = kLanes<T> / 2>
inline Vec<T> sum_each(const Vec<T> (&v)[kCount]) {
  if constexpr (kGroup == 0) {
    static_assert(kCount == 1);
    return v[0];
  } else {
    // Two vectors of groups of 2 kGroup lanes, each to be summed, become one of groups of kGroup.
    constexpr int kHalf = kLanes<T> / kGroup / 2;
    constexpr auto near = [](int k) {
      const int group = k / kGroup;
      return group / kHalf * int(kLanes<T>) + group % kHalf * 2 * kGroup + k % kGroup;
    };
    constexpr auto far = [](int k) {
      const int group = k / kGroup;
      return group / kHalf * int(kLanes<T>) + group % kHalf * 2 * kGroup + kGroup + k % kGroup;
    };
    Vec<T> folded[(kCount + 1) / 2];
#pragma GCC unroll 16
    for (int i = 0; i < (kCount + 1) / 2; ++i) {
      const Vec<T> first = v[2 * i], second = 2 * i + 1 < kCount ? v[2 * i + 1] : first;
      folded[i] = permute<T>(first, second, near) + permute<T>(first, second, far);
    }
    return sum_each<T, (kCount + 1) / 2, kGroup / 2>(folded);
  }
}

}  // namespace diorama
