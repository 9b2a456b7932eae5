// SPDX-License-Identifier: Apache-2.0
// Asks for large pages under a large buffer that is about to be written for the first time.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace diorama {

// Fresh memory arrives page by page at its first write, which for pages of 4 KB can take longer
// than the kernel that writes. Only a hint: where it is refused nothing changes.
inline void advise_huge_pages(void* buffer, size_t num_bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr uintptr_t kPage = uintptr_t(2) << 20;
  const uintptr_t address = reinterpret_cast<uintptr_t>(buffer);
  const uintptr_t begin = (address + kPage - 1) / kPage * kPage;
  const uintptr_t end = (address + num_bytes) / kPage * kPage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
  (void)buffer, (void)num_bytes;
#endif
}

}  // namespace diorama
