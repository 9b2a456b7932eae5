// SPDX-License-Identifier: Apache-2.0
// Moves items of a few numbers each between memory, where they lie one item after the other, and
// vectors, one for each of an item's numbers.
#pragma once

#include "simd.h"

namespace diorama {

template <class T, int kChannels>
struct Channels {
  Vec<T> at[kChannels];

  Vec<T>& operator[](int c) { return at[c]; }
  const Vec<T>& operator[](int c) const { return at[c]; }
};

// Runs work(integral_constant j) for j = 0 .. kCount - 1.
template <int kCount, class Work>
inline void for_constants(const Work& work) {
  [&]<int... j>(std::integer_sequence<int, j...>) {
    (work(std::integral_constant<int, j>()), ...);
  }(std::make_integer_sequence<int, kCount>());
}

// Which of several vectors' lanes Index takes: number k of the result is number Index{}(k) of all
// the vectors' lanes. Index is a lambda without captures.
template <class T, int kCount, class Index>
struct Taken {
  static constexpr int lanes = kLanes<T>;

  static constexpr int vector(int k) { return Index{}(k) / lanes; }
  static constexpr int lane(int k) { return Index{}(k) % lanes; }
  static constexpr bool any_of(int wanted) {
    for (int k = 0; k < lanes; ++k)
      if (vector(k) == wanted) return true;
    return false;
  }
  static constexpr int next(int from) {
    while (from < kCount && !any_of(from)) ++from;
    return from;
  }
};

// These lanes as one vector. One instruction for each vector that is needed, but for the first.
template <class T, int kCount, class Index>
inline Vec<T> gather_lanes(const Vec<T> (&v)[kCount], Index) {
  using From = Taken<T, kCount, Index>;
  constexpr int kFirst = From::next(0), kSecond = From::next(kFirst + 1);
  Vec<T> taken = v[kFirst];
  if constexpr (kSecond == kCount)
    return permute<T>(taken, taken, [](int k) { return From::lane(k); });
  for_constants<kCount>([&](auto vector) {
    constexpr int kVector = decltype(vector)::value;
    if constexpr (kVector > From::next(0) && From::any_of(kVector))
      taken = permute<T>(taken, v[kVector], [](int k) {
        if (From::vector(k) == kVector) return From::lanes + From::lane(k);
        // What comes from the first vector is put in its place along with the second's.
        const bool is_second = kVector == From::next(From::next(0) + 1);
        return is_second && From::vector(k) == From::next(0) ? From::lane(k) : k;
      });
  });
  return taken;
}

// The first `count` items at `source`, zeros behind them; lane k is item k.
template <int kChannels, class T>
inline Channels<T, kChannels> load_items(const T* source, int64_t count) {
  Channels<T, kChannels> raw, items;
  for_constants<kChannels>(
      [&](auto j) { raw[j] = load(source + j * kLanes<T>, count * kChannels - j * kLanes<T>); });
  for_constants<kChannels>([&](auto c) {
    items[c] = gather_lanes<T>(raw.at, [](int k) { return k * kChannels + decltype(c)::value; });
  });
  return items;
}

template <int kChannels, class T>
inline void store_items(T* target, const Channels<T, kChannels>& items, int64_t count) {
  for_constants<kChannels>([&](auto j) {
    const Vec<T> mixed = gather_lanes<T>(items.at, [](int k) {
      const int place = decltype(j)::value * int(kLanes<T>) + k;
      return place % kChannels * int(kLanes<T>) + place / kChannels;
    });
    store(target + j * kLanes<T>, mixed, count * kChannels - j * kLanes<T>);
  });
}

// Rows of `length` numbers, summed half upon half: where the first of the two summands of number
// `place` stands. The other one stands half a row behind it.
constexpr int first_summand(int place, int length) {
  return place / (length / 2) * length + place % (length / 2);
}

// Sums over items, for as many rays as a vector has lanes. At first each of the groups holds the
// numbers of one ray, one item of kChannels numbers after the other. Two groups at a time become
// one, whose rays have half as many items: the sums of their first and their last ones. In the end
// one group, which is returned, holds one item for each ray. The groups are used up.
template <class T, int kChannels, int kGroups = kLanes<T>>
inline const Channels<T, kChannels>& sum_items(Channels<T, kChannels>* groups) {
  if constexpr (kGroups > 1) {
    for (int i = 0; i < kGroups / 2; ++i) {
      Vec<T> both[2 * kChannels];
      for_constants<kChannels>([&](auto j) {
        both[j] = groups[2 * i][j];
        both[kChannels + j] = groups[2 * i + 1][j];
      });
      for_constants<kChannels>([&](auto j) {
        const auto place = [](int k) { return decltype(j)::value * int(kLanes<T>) + k; };
        using Place = decltype(place);
        groups[i][j] =
            gather_lanes<T>(both,
                            [](int k) { return first_summand(Place{}(k), kChannels * kGroups); }) +
            gather_lanes<T>(both, [](int k) {
              return first_summand(Place{}(k), kChannels * kGroups) + kChannels * kGroups / 2;
            });
      });
    }
    return sum_items<T, kChannels, kGroups / 2>(groups);
  }
  return groups[0];
}

}  // namespace diorama
