// SPDX-License-Identifier: Apache-2.0
// Says which x86-64 level the CPU can run; compiled for the oldest one, so it always loads.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace {

// The feature lists are those of the x86-64 psABI, checked one by one because compilers before
// GCC 12 and Clang 18 do not know the levels by name. The system's support for the wide registers
// is part of what __builtin_cpu_supports reports.
int x86_64_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool has_v2 = __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") &&
                      __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  if (!has_v2) return 1;
  const bool has_v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (!has_v3) return 2;
  const bool has_v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  return has_v4 ? 4 : 3;
#else
  return 0;
#endif
}

}  // namespace

NB_MODULE(probe, m) {
  m.def("x86_64_level", &x86_64_level, "1 to 4 for the levels of the x86-64 psABI, 0 elsewhere.");
}
