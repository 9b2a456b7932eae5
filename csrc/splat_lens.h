// SPDX-License-Identifier: Apache-2.0
// Lenses for splats: where a vector of points lands on the image, the Jacobian there, and the way
// back through both. diorama/ops/splat_lens.py is their specification.
#pragma once

#include <cmath>

#include "interleave.h"
#include "lane_functions.h"

namespace diorama::projection {

template <class T>
struct LensNumbers {
  T fx, fy, cx, cy, width, height;
};

// The place, the depth, and the rows of d(u, v)/d(point); or the gradients of all these.
template <class T>
struct Landing {
  Vec<T> u, v, depth;
  Channels<T, 3> du, dv;
};

template <class T>
struct LensGradients {
  Channels<T, 3> point;
  Channels<T, 4> intrinsics;
};

template <class T>
struct Pinhole {
  LensNumbers<T> lens;
  Vec<T> x, y, inverse;  // On the plane at depth 1, and 1 / z.
  Landing<T> landing;

  // Of a coordinate that the Jacobian's limit, 15 % of the image beyond its edge, leaves alone.
  static auto is_inside(Vec<T> place, T size) {
    return (place >= broadcast(T(-0.15) * size)) & (place <= broadcast(T(1.15) * size));
  }

  static Vec<T> limited(Vec<T> place, T size) {
    const Vec<T> low = broadcast(T(-0.15) * size), high = broadcast(T(1.15) * size);
    return place < low ? low : (place > high ? high : place);
  }

  Pinhole(const LensNumbers<T>& numbers, const Channels<T, 3>& p) : lens(numbers) {
    inverse = T(1) / p[2];
    x = p[0] * inverse;
    y = p[1] * inverse;
    const Vec<T> u = lens.fx * x + lens.cx, v = lens.fy * y + lens.cy;
    const Vec<T> right = limited(u, lens.width) - lens.cx, down = limited(v, lens.height) - lens.cy;
    landing = {u,
               v,
               p[2],
               {{lens.fx * inverse, Vec<T>{}, -right * inverse}},
               {{Vec<T>{}, lens.fy * inverse, -down * inverse}}};
  }

  LensGradients<T> backward(const Landing<T>& grad) const {
    // A place at the limit moves with the principal point alone.
    const Vec<T> right = -grad.du[2] * inverse, down = -grad.dv[2] * inverse;
    const auto is_x_free = is_inside(landing.u, lens.width);
    const auto is_y_free = is_inside(landing.v, lens.height);
    const Vec<T> grad_u = grad.u + (is_x_free ? right : Vec<T>{});
    const Vec<T> grad_v = grad.v + (is_y_free ? down : Vec<T>{});
    const Vec<T> grad_cx = grad.u - (is_x_free ? Vec<T>{} : right);
    const Vec<T> grad_cy = grad.v - (is_y_free ? Vec<T>{} : down);
    // All that shrinks with depth, each proportional to 1 / z.
    const Vec<T> grad_log_z = grad.du[0] * landing.du[0] + grad.dv[1] * landing.dv[1] +
                              grad.du[2] * landing.du[2] + grad.dv[2] * landing.dv[2] +
                              grad_u * lens.fx * x + grad_v * lens.fy * y;
    return {
        {{grad_u * lens.fx * inverse, grad_v * lens.fy * inverse,
          grad.depth - grad_log_z * inverse}},
        {{grad.du[0] * inverse + grad_u * x, grad.dv[1] * inverse + grad_v * y, grad_cx, grad_cy}}};
  }
};

// Functions of the angle theta that are smooth on the axis, where sin^2 = 0:
// F = theta / sin,  G = (cos - F) / sin^2,  H = (-2 cos - 3 G) / sin^2.
// Close to it the differences cancel, and power series in sin^2 take over.
template <class T>
struct AngleFunctions {
  static constexpr T kSeriesUpTo = T(0.25);
  static constexpr int kTerms = sizeof(T) == 4 ? 12 : 26;
  struct Series {
    T f[kTerms], g[kTerms], h[kTerms];
  };
  static constexpr Series kSeries = [] {
    Series series{};
    double binomial = 1.0;  // (2k choose k) / 4^k
    for (int k = 0; k < kTerms; ++k) {
      const double next = binomial * (2 * k + 1) / (2 * k + 2);
      const double after = next * (2 * k + 3) / (2 * k + 4);
      series.f[k] = T(binomial / (2 * k + 1));
      series.g[k] = T(-next * 4 * (k + 1) / ((2 * k + 1) * (2 * k + 3)));
      series.h[k] = T(2 * next / (2 * k + 1) + after * 12 * (k + 2) / ((2 * k + 3) * (2 * k + 5)));
      binomial = next;
    }
    return series;
  }();

  Vec<T> f, g, h;

  AngleFunctions(Vec<T> sine_squared, Vec<T> cosine) {
    const Vec<T> sine = square_root<T>(sine_squared);
    Vec<T> theta;
    for (int64_t k = 0; k < kLanes<T>; ++k) theta[k] = std::atan2(sine[k], cosine[k]);
    f = theta / sine;
    g = (cosine - f) / sine_squared;
    h = (T(-2) * cosine - T(3) * g) / sine_squared;
    Vec<T> near_f{}, near_g{}, near_h{};
    for (int k = kTerms - 1; k >= 0; --k) {
      near_f = near_f * sine_squared + kSeries.f[k];
      near_g = near_g * sine_squared + kSeries.g[k];
      near_h = near_h * sine_squared + kSeries.h[k];
    }
    const auto is_near = (sine_squared < broadcast(kSeriesUpTo)) & (cosine > broadcast(T(0)));
    f = is_near ? near_f : f;
    g = is_near ? near_g : g;
    h = is_near ? near_h : h;
  }
};

// Equidistant. With a = F / d, b = G / d^3, c = H / d^5 and e = 1 / d^2, d the distance:
// (u, v) = a (fx x, fy y),  da = b (x dx + y dy) - e dz,  db = c (x dx + y dy) + 2 e^2 dz.
template <class T>
struct Fisheye {
  LensNumbers<T> lens;
  Vec<T> x, y, z, a, b, c, e;
  Landing<T> landing;

  Fisheye(const LensNumbers<T>& numbers, const Channels<T, 3>& p)
      : lens(numbers), x(p[0]), y(p[1]), z(p[2]) {
    const Vec<T> across = x * x + y * y, squared = across + z * z;
    const Vec<T> distance = square_root<T>(squared), inverse = T(1) / distance;
    e = T(1) / squared;
    const Vec<T> sine_squared = across * e, cosine = z * inverse;
    const AngleFunctions<T> angle(sine_squared, cosine);
    a = angle.f * inverse;
    b = angle.g * e * inverse;
    c = angle.h * e * e * inverse;
    const Vec<T> xyb = x * y * b;
    // Straight behind there is no direction to go; depth 0 is not seen.
    const auto is_behind = (sine_squared < broadcast(T(1e-6))) & (cosine < T(0));
    landing = {lens.fx * x * a + lens.cx,
               lens.fy * y * a + lens.cy,
               is_behind ? Vec<T>{} : distance,
               {{lens.fx * (a + x * x * b), lens.fx * xyb, -lens.fx * x * e}},
               {{lens.fy * xyb, lens.fy * (a + y * y * b), -lens.fy * y * e}}};
  }

  LensGradients<T> backward(const Landing<T>& grad) const {
    const Vec<T> grad_u = lens.fx * grad.u, grad_v = lens.fy * grad.v;
    const Vec<T> grad_xx = lens.fx * grad.du[0], grad_yy = lens.fy * grad.dv[1];
    const Vec<T> grad_xy = lens.fx * grad.du[1] + lens.fy * grad.dv[0];
    const Vec<T> grad_xz = lens.fx * grad.du[2], grad_yz = lens.fy * grad.dv[2];
    const Vec<T> grad_a = grad_u * x + grad_v * y + grad_xx + grad_yy;
    const Vec<T> grad_b = grad_xx * x * x + grad_xy * x * y + grad_yy * y * y;
    const Vec<T> grad_e = -(grad_xz * x + grad_yz * y);
    const Vec<T> ee = T(2) * e * e, grad_distance = grad.depth / landing.depth;
    const Vec<T> radial = b * grad_a + c * grad_b - ee * grad_e + grad_distance;
    const Vec<T> along_u =
        grad.du[0] * landing.du[0] + grad.du[1] * landing.du[1] + grad.du[2] * landing.du[2];
    const Vec<T> along_v =
        grad.dv[0] * landing.dv[0] + grad.dv[1] * landing.dv[1] + grad.dv[2] * landing.dv[2];
    return {
        {{grad_u * a + b * (T(2) * x * grad_xx + y * grad_xy) - e * grad_xz + x * radial,
          grad_v * a + b * (T(2) * y * grad_yy + x * grad_xy) - e * grad_yz + y * radial,
          ee * (grad_b - z * grad_e) - e * grad_a + z * grad_distance}},
        {{grad.u * x * a + along_u / lens.fx, grad.v * y * a + along_v / lens.fy, grad.u, grad.v}}};
  }
};

}  // namespace diorama::projection
