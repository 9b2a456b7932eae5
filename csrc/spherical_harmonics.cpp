// SPDX-License-Identifier: Apache-2.0
// Spherical harmonics: tiles of directions, where only the way in and out is a transposition.
#include "spherical_harmonics.h"

#include "parallel.h"
#include "spherical_harmonics_tile.h"

namespace diorama {
namespace {

using namespace spherical;

constexpr int64_t kTilesPerPiece = 64;

template <class T>
Directions<T> read_directions(const T* source, int count) {
  Directions<T> d;
  for (int k = 0; k < kTile; ++k) {
    const int from = k < count ? k : 0;
    d.x[k] = source[3 * from];
    d.y[k] = source[3 * from + 1];
    d.z[k] = source[3 * from + 2];
  }
  return d;
}

// Calls work(begin, count) for each tile.
template <class Work>
void for_tiles(int64_t count, int num_threads, const Work& work) {
  const int64_t num_tiles = (count + kTile - 1) / kTile;
  parallel_for(num_tiles, kTilesPerPiece, num_threads, [&](int64_t first, int64_t last) {
    for (int64_t tile = first; tile < last; ++tile)
      work(tile * kTile, static_cast<int>(std::min<int64_t>(kTile, count - tile * kTile)));
  });
}

template <class T, int kCount>
void write(const Values<T, kCount>& values, int count, T* target) {
  for (int k = 0; k < count; ++k)
    for (int j = 0; j < kCount; ++j) target[k * kCount + j] = values.at[j][k];
}

template <class T, int kCount>
void read(const T* source, int count, Values<T, kCount>& values) {
  for (int k = 0; k < kTile; ++k)
    for (int j = 0; j < kCount; ++j) values.at[j][k] = k < count ? source[k * kCount + j] : T(0);
}

}  // namespace

template <class T>
void spherical_harmonics_forward(const T* directions, int64_t count, int num_bands, T* values,
                                 int num_threads) {
  with_bands<kMaxSphericalBands>(num_bands, [&](auto bands) {
    constexpr int kCount = bands * bands;
    for_tiles(count, num_threads, [&](int64_t begin, int size) {
      Values<T, kCount> tile;
      evaluate<T, bands>(read_directions(directions + 3 * begin, size), tile);
      write(tile, size, values + begin * kCount);
    });
  });
}

template <class T>
void spherical_harmonics_backward(const T* directions, const T* grad_values, int64_t count,
                                  int num_bands, T* grad_directions, int num_threads) {
  with_bands<kMaxSphericalBands>(num_bands, [&](auto bands) {
    constexpr int kCount = bands * bands;
    for_tiles(count, num_threads, [&](int64_t begin, int size) {
      Values<T, kCount> grad_tile;
      read(grad_values + begin * kCount, size, grad_tile);
      Values<T, 3> grad;
      differentiate<T, bands>(read_directions(directions + 3 * begin, size), grad_tile, grad);
      write(grad, size, grad_directions + 3 * begin);
    });
  });
}

template void spherical_harmonics_forward(const float*, int64_t, int, float*, int);
template void spherical_harmonics_forward(const double*, int64_t, int, double*, int);
template void spherical_harmonics_backward(const float*, const float*, int64_t, int, float*, int);
template void spherical_harmonics_backward(const double*, const double*, int64_t, int, double*,
                                           int);

}  // namespace diorama
