// SPDX-License-Identifier: Apache-2.0
// Arithmetic that compilers vectorise and that rounds the same in every lane and remainder loop.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#define DIORAMA_RESTRICT __restrict__

namespace diorama {

// a * b + c, fused where the instruction set has it. Contraction is off in the build, so this is
// the only place where fusing happens.
template <class T>
inline T fmadd(T a, T b, T c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

// Constants of exp: x = n ln 2 + r with |r| <= ln 2 / 2, exp(x) = 2^n exp(r).
template <class T>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  using Bits = uint32_t;
  static constexpr int kMantissaBits = 23, kExponentBias = 127, kDegree = 7;
  static constexpr float kRounder = 0x1.8p23f;  // Adding it rounds to an integer.
  static constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;
  static constexpr float kLowest = -87.3f, kHighest = 88.0f;
};

template <>
struct ExpConstants<double> {
  using Bits = uint64_t;
  static constexpr int kMantissaBits = 52, kExponentBias = 1023, kDegree = 13;
  static constexpr double kRounder = 0x1.8p52;
  static constexpr double kLn2High = 0x1.62e42fefa38p-1, kLn2Low = 0x1.ef35793c7673p-45;
  static constexpr double kLowest = -708.3, kHighest = 709.0;
};

constexpr double inverse_factorial(int k) { return k < 2 ? 1.0 : inverse_factorial(k - 1) / k; }

template <class T>
struct ExpPair {
  T exp, expm1;
};

// exp(x) and exp(x) - 1, each to about one unit in the last place; both are 2^n (1 + r q(r)) with
// Taylor's q, which on |r| <= ln 2 / 2 is exact to the format. Below kLowest exp is 0 (no
// denormals), above kHighest infinite; NaN passes through.
template <class T>
inline ExpPair<T> exp_and_expm1(T x) {
  using K = ExpConstants<T>;
  using Bits = typename K::Bits;
  constexpr T kLog2E = T(1.44269504088896340735992468100189214L);
  const T bounded = x < K::kLowest ? K::kLowest : (x > K::kHighest ? K::kHighest : x);
  const T shifted = fmadd(bounded, kLog2E, K::kRounder);
  const T n = shifted - K::kRounder;
  const T r = fmadd(n, -K::kLn2Low, fmadd(n, -K::kLn2High, bounded));

  T q = T(inverse_factorial(K::kDegree));
  for (int k = K::kDegree - 1; k >= 1; --k) q = fmadd(q, r, T(inverse_factorial(k)));
  const T rq = r * q;

  const Bits exponent = std::bit_cast<Bits>(shifted) + Bits(K::kExponentBias);
  const T scale = std::bit_cast<T>(Bits(exponent << K::kMantissaBits));
  const T exp = fmadd(scale, rq, scale);
  const T expm1 = fmadd(scale, rq, scale - T(1));
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  return {x < K::kLowest ? T(0) : (x > K::kHighest ? kInfinity : exp),
          x > K::kHighest ? kInfinity : expm1};
}

}  // namespace diorama
