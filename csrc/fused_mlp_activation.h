// SPDX-License-Identifier: Apache-2.0
// Activations of a vector, and their derivatives written in the activation's own value.
#pragma once

#include "fused_mlp.h"
#include "simd.h"

namespace diorama {

// log(1 + u) for 0 <= u <= 1: 2 artanh(s), s = u / (2 + u) <= 1/3, by its series, which keeps the
// digits of a small u.
template <class T>
inline Vec<T> log1p_of_unit(Vec<T> u) {
  constexpr int kTerms = sizeof(T) == 4 ? 8 : 17;
  const Vec<T> s = u / (u + T(2)), square = s * s;
  Vec<T> series = broadcast(T(1) / T(2 * kTerms - 1));
#pragma GCC unroll 17
  for (int k = kTerms - 2; k >= 0; --k) series = series * square + T(1) / T(2 * k + 1);
  return T(2) * s * series;
}

template <class T>
inline Vec<T> relu(Vec<T> z) {
  return z < Vec<T>{} ? Vec<T>{} : z;  // NaN passes through.
}

// log(1 + exp(beta z)) / beta, and z itself where beta z > 20.
template <class T>
inline Vec<T> softplus(Vec<T> z, T beta) {
  const Vec<T> t = z * beta;
  const Vec<T> minus_size = t < Vec<T>{} ? t : -t;
  const Vec<T> curved = relu<T>(t) + log1p_of_unit<T>(exp_and_expm1<T>(minus_size).exp);
  return t > broadcast(T(20)) ? z : curved * (T(1) / beta);
}

template <class T>
inline Vec<T> activate(Activation kind, Vec<T> z, T beta) {
  switch (kind) {
    case Activation::kRelu:
      return relu<T>(z);
    case Activation::kSoftplus:
      return softplus<T>(z, beta);
    case Activation::kSigmoid:
      return T(1) / (exp_and_expm1<T>(-z).exp + T(1));
    case Activation::kExp:
      return exp_and_expm1<T>(z).exp;
    case Activation::kNone:
      break;
  }
  return z;
}

// The derivative where the activation's value is y; exp's is cut at exp(15).
template <class T>
inline Vec<T> activation_slope(Activation kind, Vec<T> y, T beta) {
  const Vec<T> one = broadcast(T(1)), most = broadcast(T(3269017.3724721107));
  switch (kind) {
    case Activation::kRelu:
      return y <= Vec<T>{} ? Vec<T>{} : one;
    case Activation::kSoftplus:
      // 1 / (1 + exp(-beta z)) = 1 - exp(-beta y).
      return y * beta > broadcast(T(20)) ? one : -exp_and_expm1<T>(-beta * y).expm1;
    case Activation::kSigmoid:
      return y * (T(1) - y);
    case Activation::kExp:
      return y > most ? most : y;
    case Activation::kNone:
      break;
  }
  return one;
}

}  // namespace diorama
