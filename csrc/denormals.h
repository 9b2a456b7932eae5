// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__SSE__)
#include <immintrin.h>
#endif

namespace diorama {

// While it lives, what this thread computes becomes zero where it is too small for a normal number.
// Intel's processors take a hundred times longer for such numbers. Others hardly do: nothing is
// changed there.
class WithoutDenormals {
 public:
  WithoutDenormals(const WithoutDenormals&) = delete;
  WithoutDenormals& operator=(const WithoutDenormals&) = delete;
#if defined(__SSE__)
  WithoutDenormals() { _mm_setcsr(before_ | _MM_FLUSH_ZERO_ON); }
  ~WithoutDenormals() { _mm_setcsr(before_); }

 private:
  const unsigned before_ = _mm_getcsr();
#else
  WithoutDenormals() {}
  ~WithoutDenormals() {}
#endif
};

}  // namespace diorama
