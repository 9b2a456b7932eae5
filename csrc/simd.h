// SPDX-License-Identifier: Apache-2.0
// Vectors as wide as the target's registers, through the extension that GCC and Clang share.
//
// Lanes hold consecutive samples of one ray, so what a ray gives depends on its own samples only
// and never on how rays were split over threads. A ray's last, partial vector is filled with zeros.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace diorama {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vec = typename VectorOf<T>::type;
template <class T>
constexpr int64_t kLanes = kVectorBytes / sizeof(T);

template <class T>
using SignedBits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// x in all lanes. It costs no arithmetic: x - 0 is x, even for -0 (x + 0 is not).
template <class T>
inline Vec<T> broadcast(T x) {
  return x - Vec<T>{};
}

// 0, 1, 2 ...
template <class T>
inline Vec<T> lane_numbers() {
  return []<size_t... K>(std::index_sequence<K...>) {
    return Vec<T>{static_cast<T>(K)...};
  }(std::make_index_sequence<kLanes<T>>());
}

#if defined(__AVX512F__)
// Rays seldom fill their last vector, so masks pay. Lanes that are left out are not touched.
template <class T>
inline auto first_lanes(int64_t count) {
  using Mask = std::conditional_t<sizeof(T) == 4, __mmask16, __mmask8>;
  return static_cast<Mask>((1u << std::max<int64_t>(count, 0)) - 1u);
}

template <class T>
inline Vec<T> load_partial(const T* source, int64_t count) {
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<Vec<T>>(_mm512_maskz_loadu_ps(first_lanes<T>(count), source));
  else
    return std::bit_cast<Vec<T>>(_mm512_maskz_loadu_pd(first_lanes<T>(count), source));
}

template <class T>
inline void store_partial(T* target, Vec<T> v, int64_t count) {
  if constexpr (sizeof(T) == 4)
    _mm512_mask_storeu_ps(target, first_lanes<T>(count), std::bit_cast<__m512>(v));
  else
    _mm512_mask_storeu_pd(target, first_lanes<T>(count), std::bit_cast<__m512d>(v));
}
#elif defined(__AVX2__)
template <class T>
inline __m256i first_lanes(int64_t count) {
  using Lane = SignedBits<T>;
  return std::bit_cast<__m256i>(lane_numbers<Lane>() < broadcast(static_cast<Lane>(count)));
}

template <class T>
inline Vec<T> load_partial(const T* source, int64_t count) {
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<Vec<T>>(
        _mm256_maskload_ps(reinterpret_cast<const float*>(source), first_lanes<T>(count)));
  else
    return std::bit_cast<Vec<T>>(
        _mm256_maskload_pd(reinterpret_cast<const double*>(source), first_lanes<T>(count)));
}

template <class T>
inline void store_partial(T* target, Vec<T> v, int64_t count) {
  if constexpr (sizeof(T) == 4)
    _mm256_maskstore_ps(reinterpret_cast<float*>(target), first_lanes<T>(count),
                        std::bit_cast<__m256>(v));
  else
    _mm256_maskstore_pd(reinterpret_cast<double*>(target), first_lanes<T>(count),
                        std::bit_cast<__m256d>(v));
}
#else
// Out of line, because indexing a lane by a variable would push the vector of the fast path below
// through memory as well.
template <class T>
[[gnu::noinline]] Vec<T> load_partial(const T* source, int64_t count) {
  std::array<T, kLanes<T>> lanes{};
  for (int64_t k = 0; k < count; ++k) lanes[k] = source[k];
  return std::bit_cast<Vec<T>>(lanes);
}

template <class T>
[[gnu::noinline]] void store_partial(T* target, Vec<T> v, int64_t count) {
  const auto lanes = std::bit_cast<std::array<T, kLanes<T>>>(v);
  for (int64_t k = 0; k < count; ++k) target[k] = lanes[k];
}
#endif

// The first `count` numbers at `source`, zeros behind them; any count is allowed.
template <class T>
inline Vec<T> load(const T* source, int64_t count = kLanes<T>) {
  if (count < kLanes<T>) [[unlikely]]
    return load_partial(source, count);
  Vec<T> v;
  std::memcpy(&v, source, sizeof v);
  return v;
}

template <class T>
inline void store(T* target, Vec<T> v, int64_t count = kLanes<T>) {
  if (count < kLanes<T>) [[unlikely]]
    return store_partial(target, v, count);
  std::memcpy(target, &v, sizeof v);
}

// Lane k becomes lane Index{}(k) of a followed by b; Index is a lambda without captures.
template <class T, class Index>
inline Vec<T> permute(Vec<T> a, Vec<T> b, Index) {
  return [&]<size_t... K>(std::index_sequence<K...>) -> Vec<T> {
#if defined(__clang__)
    return __builtin_shufflevector(a, b, Index{}(int(K))...);
#else
    return __builtin_shuffle(a, b, Vec<SignedBits<T>>{SignedBits<T>(Index{}(int(K)))...});
#endif
  }(std::make_index_sequence<kLanes<T>>());
}

// Lane k becomes the sum of lanes k .. last.
template <class T, int kStep = 1>
inline Vec<T> suffix_sum(Vec<T> v) {
  if constexpr (kStep >= kLanes<T>) {
    return v;
  } else {
    const auto down = [](int k) { return k + kStep; };  // Past the end lie the zeros.
    return suffix_sum<T, 2 * kStep>(v + permute<T>(v, Vec<T>{}, down));
  }
}

template <class T>
inline T sum(Vec<T> v) {
  return suffix_sum<T>(v)[0];
}

// Constants of exp: x = n ln 2 + r with |r| <= ln 2 / 2, exp(x) = 2^n exp(r).
template <class T>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  static constexpr int kMantissaBits = 23, kExponentBias = 127, kDegree = 7;
  static constexpr float kRounder = 0x1.8p23f;  // Adding it rounds to an integer.
  static constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;
  static constexpr float kLowest = -87.3f, kHighest = 88.0f;
};

template <>
struct ExpConstants<double> {
  static constexpr int kMantissaBits = 52, kExponentBias = 1023, kDegree = 13;
  static constexpr double kRounder = 0x1.8p52;
  static constexpr double kLn2High = 0x1.62e42fefa38p-1, kLn2Low = 0x1.ef35793c7673p-45;
  static constexpr double kLowest = -708.3, kHighest = 709.0;
};

// 1 / k! for k up to the degree.
template <class T>
constexpr auto kInverseFactorials = [] {
  std::array<T, ExpConstants<T>::kDegree + 1> table{};
  double factorial = 1.0;
  for (size_t k = 0; k < table.size(); factorial *= static_cast<double>(++k))
    table[k] = static_cast<T>(1.0 / factorial);
  return table;
}();

template <class T>
struct ExpPair {
  Vec<T> exp, expm1;
};

// exp(x) and exp(x) - 1, each to about one unit in the last place; both are 2^n (1 + r q(r)) with
// Taylor's q, which on |r| <= ln 2 / 2 is exact to the format. Below kLowest exp is 0 (no
// denormals), above kHighest infinite; NaN passes through.
template <class T>
inline ExpPair<T> exp_and_expm1(Vec<T> x) {
  using K = ExpConstants<T>;
  using Bits = Vec<SignedBits<T>>;
  const auto is_low = x<broadcast(K::kLowest), is_high = x> broadcast(K::kHighest);
  const Vec<T> bounded = is_low ? broadcast(K::kLowest) : (is_high ? broadcast(K::kHighest) : x);
  const Vec<T> shifted = bounded * T(1.4426950408889634) + K::kRounder;
  const Vec<T> n = shifted - K::kRounder;
  const Vec<T> r = (bounded - n * K::kLn2High) - n * K::kLn2Low;

  Vec<T> q = broadcast(kInverseFactorials<T>[K::kDegree]);
#pragma GCC unroll 16
  for (int k = K::kDegree - 1; k >= 1; --k) q = q * r + kInverseFactorials<T>[k];
  const Vec<T> rq = r * q;

  const Bits exponent = std::bit_cast<Bits>(shifted) + SignedBits<T>(K::kExponentBias);
  const Vec<T> scale = std::bit_cast<Vec<T>>(exponent << K::kMantissaBits);
  const Vec<T> infinity = broadcast(std::numeric_limits<T>::infinity());
  const Vec<T> exp = scale * rq + scale, expm1 = scale * rq + (scale - T(1));
  return {is_low ? Vec<T>{} : (is_high ? infinity : exp), is_high ? infinity : expm1};
}

// Lane k becomes the sum of lanes 0 .. k.
template <class T, int kStep = 1>
inline Vec<T> prefix_sum(Vec<T> v) {
  if constexpr (kStep >= kLanes<T>) {
    return v;
  } else {
    constexpr int kCount = kLanes<T>;
    const auto up = [](int k) { return k < kStep ? kCount : k - kStep; };
    return prefix_sum<T, 2 * kStep>(v + permute<T>(v, Vec<T>{}, up));
  }
}

// Lane k becomes lane k - 1, lane 0 becomes `first`.
template <class T>
inline Vec<T> shift_up(Vec<T> v, T first) {
  return permute<T>(v, broadcast(first), [](int k) { return k == 0 ? int(kLanes<T>) : k - 1; });
}

// Lane k becomes lane k + 1, the last lane becomes `last`.
template <class T>
inline Vec<T> shift_down(Vec<T> v, T last) {
  return permute<T>(v, broadcast(last), [](int k) { return k + 1; });
}

}  // namespace diorama
