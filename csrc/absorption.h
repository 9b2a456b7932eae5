// SPDX-License-Identifier: Apache-2.0
// What a stretch of a ray lets through and what it absorbs: exp(-tau) and 1 - exp(-tau).
#pragma once

#include "simd_block.h"

namespace diorama {

template <class T, int kCount>
struct Absorption {
  Block<T, kCount> through, absorbed;
};

// Coefficients of (1 - 2^-s) / s for |s| <= 1/2. In float: the polynomial through Chebyshev's
// points, exact to 2.2e-8; in double: Taylor's.
template <class T>
constexpr auto kAbsorbedCoefficients = [] {
  if constexpr (sizeof(T) == 4) {
    return std::array<float, 6>{0x1.62e430p-1f,  -0x1.ebfbe0p-3f, 0x1.c6af6cp-5f,
                                -0x1.3b2a54p-7f, 0x1.5f0894p-10f, -0x1.44138cp-13f};
  } else {
    constexpr double kLn2 = 0.69314718055994530942;
    std::array<double, 14> table{};
    double term = kLn2;
    for (size_t k = 0; k < table.size(); ++k) {
      table[k] = term;
      term *= -kLn2 / static_cast<double>(k + 2);
    }
    return table;
  }
}();

// With tau = (s - n) ln 2, exp(-tau) = 2^n 2^-s. The absorbed part is good to about two units in
// the last place, the rest to as many units of the larger one of tau and 1. Beyond 126.5 ln 2 (in
// double 1022.5 ln 2) exp(-tau) is 0. NaN passes through, and negative depths whose exp(-tau) no
// number can hold give infinities or NaN.
template <class T, int kCount>
inline Absorption<T, kCount> absorption(const Block<T, kCount>& tau) {
  using K = ExpConstants<T>;
  constexpr auto& c = kAbsorbedCoefficients<T>;
  // At these bounds 2^n has the exponents of zero and of infinity, and s the sign that keeps them.
  constexpr T kLowest = -T(K::kExponentBias) - T(0.25), kHighest = T(1) - kLowest;
  // Adding it rounds to an integer, and leaves the exponent of 2^n in the lowest bits.
  constexpr T kRounder = K::kRounder + T(K::kExponentBias);
  const Block<T, kCount> bounded = map(tau * T(-1.4426950408889634), [&](Vec<T> v) {
    return maximum<T>(broadcast(kLowest), minimum<T>(broadcast(kHighest), v));
  });
  const Block<T, kCount> shifted = bounded + kRounder;
  const Block<T, kCount> s = (shifted - kRounder) - bounded;

  Block<T, kCount> q = s * c[c.size() - 1] + c[c.size() - 2];
#pragma GCC unroll 16
  for (int k = static_cast<int>(c.size()) - 3; k >= 0; --k) q = q * s + c[k];
  const Block<T, kCount> absorbed = s * q;
  const Block<T, kCount> scale = map(shifted, [](Vec<T> v) {
    return std::bit_cast<Vec<T>>(std::bit_cast<IntVec<T>>(v) << K::kMantissaBits);
  });
  return {scale - scale * absorbed, (T(1) - scale) + scale * absorbed};
}

}  // namespace diorama
