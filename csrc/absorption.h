// SPDX-License-Identifier: Apache-2.0
// What a stretch of a ray lets through and what it absorbs: exp(-tau) and 1 - exp(-tau).
#pragma once

#include "simd_block.h"

namespace diorama {

template <class T, int kCount>
struct Absorption {
  Block<T, kCount> through, absorbed;
};

// Coefficients of (1 - exp(-s)) / s for |s| <= ln 2 / 2. In float: the polynomial through
// Chebyshev's points, exact to 2.5e-8; in double: Taylor's.
template <class T>
constexpr auto kAbsorbedCoefficients = [] {
  if constexpr (sizeof(T) == 4) {
    return std::array<float, 6>{1.0f,           -0.5f,           0x1.55547cp-3f, -0x1.5554eap-5f,
                                0x1.123d90p-7f, -0x1.6d4324p-10f};
  } else {
    std::array<double, 14> table{};
    double term = 1.0;
    for (size_t k = 0; k < table.size(); ++k) {
      table[k] = term;
      term /= -static_cast<double>(k + 2);
    }
    return table;
  }
}();

// With tau = s - n ln 2, exp(-tau) = 2^n exp(-s). Both results are good to about one unit in the
// last place. Beyond 126.5 ln 2 (in double 1022.5 ln 2) exp(-tau) is 0. NaN passes through, and
// negative depths whose exp(-tau) no number can hold give infinities or NaN.
template <class T, int kCount>
inline Absorption<T, kCount> absorption(const Block<T, kCount>& tau) {
  using K = ExpConstants<T>;
  constexpr auto& c = kAbsorbedCoefficients<T>;
  // At these bounds 2^n has the exponents of zero and of infinity, and s the sign that keeps them.
  constexpr T kThickest = sizeof(T) == 4 ? T(88) : T(709), kThinnest = -kThickest - T(1);
  // Adding it rounds to an integer, and leaves the exponent of 2^n in the lowest bits.
  constexpr T kRounder = K::kRounder + T(K::kExponentBias);
  const Block<T, kCount> bounded = map(tau, [&](Vec<T> v) {
    return maximum<T>(broadcast(kThinnest), minimum<T>(broadcast(kThickest), v));
  });
  const Block<T, kCount> shifted = bounded * T(-1.4426950408889634) + kRounder;
  const Block<T, kCount> n = shifted - kRounder;
  const Block<T, kCount> s = (bounded + n * K::kLn2High) + n * K::kLn2Low;

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
