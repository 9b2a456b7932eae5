// SPDX-License-Identifier: Apache-2.0
// Comparisons of vectors as masks: one bit per lane with AVX-512, otherwise a vector of 0 and -1.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "simd.h"

namespace diorama {

template <class T>
using IntVec = Vec<SignedBits<T>>;

#if defined(__AVX512F__)
template <class T>
using Mask = std::conditional_t<sizeof(T) == 4, __mmask16, __mmask8>;

template <class T>
inline Mask<T> is_at_least(Vec<T> a, Vec<T> b) {
  if constexpr (sizeof(T) == 4)
    return _mm512_cmp_ps_mask(std::bit_cast<__m512>(a), std::bit_cast<__m512>(b), _CMP_GE_OQ);
  else
    return _mm512_cmp_pd_mask(std::bit_cast<__m512d>(a), std::bit_cast<__m512d>(b), _CMP_GE_OQ);
}

template <class T>
inline Mask<T> is_less(Vec<T> a, Vec<T> b) {
  if constexpr (sizeof(T) == 4)
    return _mm512_cmp_ps_mask(std::bit_cast<__m512>(a), std::bit_cast<__m512>(b), _CMP_LT_OQ);
  else
    return _mm512_cmp_pd_mask(std::bit_cast<__m512d>(a), std::bit_cast<__m512d>(b), _CMP_LT_OQ);
}

template <class T>
inline Mask<T> is_less(IntVec<T> a, IntVec<T> b) {
  if constexpr (sizeof(T) == 4)
    return _mm512_cmplt_epi32_mask(std::bit_cast<__m512i>(a), std::bit_cast<__m512i>(b));
  else
    return _mm512_cmplt_epi64_mask(std::bit_cast<__m512i>(a), std::bit_cast<__m512i>(b));
}

// Lanes of a where the mask is set, lanes of b elsewhere.
template <class T, class V>
inline V select(Mask<T> mask, V a, V b) {
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<V>(
        _mm512_mask_blend_ps(mask, std::bit_cast<__m512>(b), std::bit_cast<__m512>(a)));
  else
    return std::bit_cast<V>(
        _mm512_mask_blend_pd(mask, std::bit_cast<__m512d>(b), std::bit_cast<__m512d>(a)));
}

template <class T>
inline bool any(Mask<T> mask) {
  return mask != 0;
}

// Lane k as bit k.
template <class T>
inline uint32_t bits_of(Mask<T> mask) {
  return mask;
}
#else
template <class T>
using Mask = IntVec<T>;

template <class T>
inline Mask<T> is_at_least(Vec<T> a, Vec<T> b) {
  return a >= b;
}

template <class T>
inline Mask<T> is_less(Vec<T> a, Vec<T> b) {
  return a < b;
}

template <class T>
inline Mask<T> is_less(IntVec<T> a, IntVec<T> b) {
  return a < b;
}

template <class T, class V>
inline V select(Mask<T> mask, V a, V b) {
  return mask ? a : b;
}

template <class T>
inline uint32_t bits_of(Mask<T> mask) {
#if defined(__AVX__)
  if constexpr (sizeof(T) == 4)
    return static_cast<uint32_t>(_mm256_movemask_ps(std::bit_cast<__m256>(mask)));
  else
    return static_cast<uint32_t>(_mm256_movemask_pd(std::bit_cast<__m256d>(mask)));
#elif defined(__SSE2__)
  if constexpr (sizeof(T) == 4)
    return static_cast<uint32_t>(_mm_movemask_ps(std::bit_cast<__m128>(mask)));
  else
    return static_cast<uint32_t>(_mm_movemask_pd(std::bit_cast<__m128d>(mask)));
#else
  uint32_t bits = 0;
  for (int k = 0; k < kLanes<T>; ++k) bits |= static_cast<uint32_t>(mask[k] & 1) << k;
  return bits;
#endif
}

template <class T>
inline bool any(Mask<T> mask) {
  return bits_of<T>(mask) != 0;
}
#endif

// The lanes k for which is_in(k); a constant.
template <class T, class Condition>
constexpr Mask<T> lanes_where(Condition is_in) {
#if defined(__AVX512F__)
  Mask<T> mask = 0;
  for (int k = 0; k < kLanes<T>; ++k) mask |= static_cast<Mask<T>>(is_in(k) << k);
  return mask;
#else
  return [&]<size_t... K>(std::index_sequence<K...>) {
    return Mask<T>{SignedBits<T>(is_in(int(K)) ? -1 : 0)...};
  }(std::make_index_sequence<kLanes<T>>());
#endif
}

// The second one where a lane is NaN.
template <class T>
inline Vec<T> minimum(Vec<T> a, Vec<T> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<Vec<T>>(
        _mm512_maskz_min_ps(0xffff, std::bit_cast<__m512>(a), std::bit_cast<__m512>(b)));
#endif
  return a < b ? a : b;
}

template <class T>
inline Vec<T> maximum(Vec<T> a, Vec<T> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<Vec<T>>(
        _mm512_maskz_max_ps(0xffff, std::bit_cast<__m512>(a), std::bit_cast<__m512>(b)));
#endif
  return a > b ? a : b;
}

// Adds one to the lanes where the mask is set.
template <class T>
inline IntVec<T> count_up(IntVec<T> counts, Mask<T> mask) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    const auto v = std::bit_cast<__m512i>(counts);
    return std::bit_cast<IntVec<T>>(_mm512_mask_add_epi32(v, mask, v, _mm512_set1_epi32(1)));
  } else {
    return select<T>(mask, counts + SignedBits<T>(1), counts);
  }
#else
  return counts - mask;
#endif
}

template <class T>
inline Vec<T> absolute(Vec<T> v) {
  using Bits = SignedBits<T>;
  return std::bit_cast<Vec<T>>(std::bit_cast<IntVec<T>>(v) & std::numeric_limits<Bits>::max());
}

}  // namespace diorama
