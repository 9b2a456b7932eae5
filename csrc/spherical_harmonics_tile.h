// SPDX-License-Identifier: Apache-2.0
// The polynomials of the spherical harmonics and their derivatives, for a tile of directions at a
// time: coordinates and harmonics are lanes within it, so that whole vectors evaluate them.
#pragma once

#include <type_traits>
#include <utility>

namespace diorama::spherical {

constexpr int kTile = 16;

template <class T>
struct Directions {
  alignas(64) T x[kTile], y[kTile], z[kTile];
};

template <class T, int kCount>
struct Values {
  alignas(64) T at[kCount][kTile];
};

template <class T, int kBands>
void evaluate(const Directions<T>& d, Values<T, kBands * kBands>& out) {
  auto& at = out.at;
#pragma omp simd
  for (int k = 0; k < kTile; ++k) {
    const T x = d.x[k], y = d.y[k], z = d.z[k];
    at[0][k] = T(0.28209479177387814);
    if constexpr (kBands > 1) {
      at[1][k] = T(-0.48860251190291987) * y;
      at[2][k] = T(0.48860251190291987) * z;
      at[3][k] = T(-0.48860251190291987) * x;
    }
    const T xy = x * y, xz = x * z, yz = y * z, xx = x * x, yy = y * y, zz = z * z;
    if constexpr (kBands > 2) {
      at[4][k] = T(1.0925484305920792) * xy;
      at[5][k] = T(-1.0925484305920792) * yz;
      at[6][k] = T(0.94617469575755997) * zz - T(0.31539156525251999);
      at[7][k] = T(-1.0925484305920792) * xz;
      at[8][k] = T(0.54627421529603959) * (xx - yy);
    }
    if constexpr (kBands > 3) {
      at[9][k] = T(0.59004358992664352) * y * (yy - 3 * xx);
      at[10][k] = T(2.8906114426405538) * xy * z;
      at[11][k] = T(0.45704579946446572) * y * (1 - 5 * zz);
      at[12][k] = T(0.3731763325901154) * z * (5 * zz - 3);
      at[13][k] = T(0.45704579946446572) * x * (1 - 5 * zz);
      at[14][k] = T(1.4453057213202769) * z * (xx - yy);
      at[15][k] = T(0.59004358992664352) * x * (3 * yy - xx);
    }
    if constexpr (kBands > 4) {
      at[16][k] = T(2.5033429417967046) * xy * (xx - yy);
      at[17][k] = T(1.7701307697799304) * yz * (yy - 3 * xx);
      at[18][k] = T(0.94617469575756008) * xy * (7 * zz - 1);
      at[19][k] = T(0.66904654355728921) * yz * (3 - 7 * zz);
      at[20][k] = T(0.10578554691520430) * ((35 * zz - 30) * zz + 3);
      at[21][k] = T(0.66904654355728921) * xz * (3 - 7 * zz);
      at[22][k] = T(0.47308734787878004) * (xx - yy) * (7 * zz - 1);
      at[23][k] = T(1.7701307697799304) * xz * (3 * yy - xx);
      at[24][k] = T(0.62583573544917614) * ((xx - 6 * yy) * xx + yy * yy);
    }
  }
}

// grad[3][k] = sum_j g_j d(harmonic j)/d(x, y, z), of the polynomials as they stand above.
template <class T, int kBands>
void differentiate(const Directions<T>& d, const Values<T, kBands * kBands>& in,
                   Values<T, 3>& grad) {
  const auto& g = in.at;
#pragma omp simd
  for (int k = 0; k < kTile; ++k) {
    const T x = d.x[k], y = d.y[k], z = d.z[k];
    const T xy = x * y, xz = x * z, yz = y * z, xx = x * x, yy = y * y, zz = z * z;
    T gx = 0, gy = 0, gz = 0;
    if constexpr (kBands > 1) {
      gx = T(-0.48860251190291987) * g[3][k];
      gy = T(-0.48860251190291987) * g[1][k];
      gz = T(0.48860251190291987) * g[2][k];
    }
    if constexpr (kBands > 2) {
      constexpr T a = T(1.0925484305920792);
      gx += a * (y * g[4][k] - z * g[7][k] + x * g[8][k]);
      gy += a * (x * g[4][k] - z * g[5][k] - y * g[8][k]);
      gz += T(1.8923493915151199) * z * g[6][k] - a * (y * g[5][k] + x * g[7][k]);
    }
    if constexpr (kBands > 3) {
      constexpr T a = T(0.59004358992664352), b = T(2.8906114426405538), c = T(0.45704579946446572),
                  e = T(0.3731763325901154);
      const T square = 3 * (yy - xx), fall = 1 - 5 * zz;
      gx += a * (square * g[15][k] - 6 * xy * g[9][k]) + b * (yz * g[10][k] + xz * g[14][k]) +
            c * fall * g[13][k];
      gy += a * (square * g[9][k] + 6 * xy * g[15][k]) + b * (xz * g[10][k] - yz * g[14][k]) +
            c * fall * g[11][k];
      gz += b * (xy * g[10][k] + T(0.5) * (xx - yy) * g[14][k]) -
            10 * c * (yz * g[11][k] + xz * g[13][k]) + e * (15 * zz - 3) * g[12][k];
    }
    if constexpr (kBands > 4) {
      constexpr T a = T(2.5033429417967046), b = T(1.7701307697799304), c = T(0.94617469575756008),
                  e = T(0.66904654355728921);
      const T square = 3 * (yy - xx), rise = 7 * zz - 1, fall = 3 - 7 * zz;
      gx += a * (y * (3 * xx - yy) * g[16][k] + x * (xx - 3 * yy) * g[24][k]) +
            b * (z * square * g[23][k] - 6 * xy * z * g[17][k]) +
            c * rise * (y * g[18][k] + x * g[22][k]) + e * z * fall * g[21][k];
      gy += a * (x * (xx - 3 * yy) * g[16][k] + y * (yy - 3 * xx) * g[24][k]) +
            b * (z * square * g[17][k] + 6 * xy * z * g[23][k]) +
            c * rise * (x * g[18][k] - y * g[22][k]) + e * z * fall * g[19][k];
      gz += b * (y * (yy - 3 * xx) * g[17][k] + x * (3 * yy - xx) * g[23][k]) +
            c * z * (14 * xy * g[18][k] + 7 * (xx - yy) * g[22][k]) +
            e * (3 - 21 * zz) * (y * g[19][k] + x * g[21][k]) +
            T(0.10578554691520430) * (140 * zz - 60) * z * g[20][k];
    }
    grad.at[0][k] = gx;
    grad.at[1][k] = gy;
    grad.at[2][k] = gz;
  }
}

// Calls work with the number of bands, 1 to kMaxBands, as a compile-time constant.
template <int kMaxBands, class Work>
void with_bands(int num_bands, const Work& work) {
  [&]<int... k>(std::integer_sequence<int, k...>) {
    ((num_bands == k + 1 ? work(std::integral_constant<int, k + 1>()) : void()), ...);
  }(std::make_integer_sequence<int, kMaxBands>());
}

}  // namespace diorama::spherical
