// SPDX-License-Identifier: Apache-2.0
// What every binding shares: array types, and checks whose messages name the argument.
//
// Every array type fixes dtype, contiguity, device and, where it matters, rank, and every argument
// is .noconvert(): otherwise an output of the wrong dtype or stride would be silently copied, and
// the caller's buffer would stay untouched.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

namespace diorama {

namespace nb = nanobind;
using namespace nb::literals;

template <class T, int kRank>
using Array = nb::ndarray<nb::pytorch, T, nb::ndim<kRank>, nb::c_contig, nb::device::cpu>;
template <class T, int kRank>
using OptionalArray = std::optional<Array<T, kRank>>;

// For what lies in memory one number after the other, whatever the axes: to give a tensor another
// shape before the call takes longer than to hand it over.
template <class T>
using AnyArray = nb::ndarray<nb::pytorch, T, nb::c_contig, nb::device::cpu>;
template <class T>
using OptionalAnyArray = std::optional<AnyArray<T>>;

template <class A>
auto* pointer(const std::optional<A>& array) {
  return array ? array->data() : nullptr;
}

inline void require(bool is_true, const std::string& message) {
  if (!is_true) throw std::invalid_argument(message);
}

template <class A>
void require_size(const A& array, const char* name, int axis, size_t expected) {
  const size_t got = array.shape(axis);
  require(got == expected, std::string(name) + " must have size " + std::to_string(expected) +
                               " on axis " + std::to_string(axis) + ", got " + std::to_string(got));
}

template <class A>
void require_size(const std::optional<A>& array, const char* name, int axis, size_t expected) {
  if (array) require_size(*array, name, axis, expected);
}

inline void require_count(size_t got, const char* name, size_t expected) {
  require(got == expected, std::string(name) + " must be " + std::to_string(expected) +
                               " in number, got " + std::to_string(got));
}

// Kernels index memory with these numbers, so a wrong one must never reach them.
inline void require_offsets(const Array<const int64_t, 1>& offsets, size_t num_samples,
                            const std::string& name = "ray_offsets") {
  const size_t size = offsets.shape(0);
  const int64_t* data = offsets.data();
  require(
      size >= 1 && data[0] == 0 && data[size - 1] == static_cast<int64_t>(num_samples),
      name + " must start at 0 and end at the number of samples, " + std::to_string(num_samples));
  bool is_sorted = true;
  for (size_t i = 1; i < size; ++i) is_sorted &= data[i - 1] <= data[i];
  require(is_sorted, name + " must not decrease");
}

inline void require_indices(const Array<const int32_t, 1>& indices, size_t limit,
                            const std::string& name) {
  const size_t size = indices.shape(0);
  const int32_t* data = indices.data();
  uint32_t largest = 0;  // A negative index is a large one here.
  for (size_t i = 0; i < size; ++i) largest = std::max(largest, static_cast<uint32_t>(data[i]));
  require(size == 0 || largest < limit,
          name + " must lie in 0 .. " + std::to_string(limit) + " - 1");
}

}  // namespace diorama
