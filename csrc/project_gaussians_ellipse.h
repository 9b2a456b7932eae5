// SPDX-License-Identifier: Apache-2.0
// The ellipses of a vector of Gaussians: what the two passes of project_gaussians share.
#pragma once

#include "project_gaussians.h"
#include "splat_lens.h"

namespace diorama::projection {

template <class T>
struct SplatCamera {
  T rotation[3][3], translation[3];
  LensNumbers<T> lens;

  explicit SplatCamera(const SplatView<T>& view)
      : lens{view.intrinsics[0], view.intrinsics[1], view.intrinsics[2],
             view.intrinsics[3], view.width,         view.height} {
    for (int i = 0; i < 3; ++i) {
      std::copy_n(view.camera_from_world + 4 * i, 3, rotation[i]);
      translation[i] = view.camera_from_world[4 * i + 3];
    }
  }

  Channels<T, 3> point(const Channels<T, 3>& mean) const {
    Channels<T, 3> p;
    for_constants<3>([&](auto i) {
      p[i] = rotation[i][0] * mean[0] + rotation[i][1] * mean[1] + rotation[i][2] * mean[2] +
             translation[i];
    });
    return p;
  }

  // The transposed rotation times a vector.
  Channels<T, 3> turn_back(const Channels<T, 3>& v) const {
    Channels<T, 3> turned;
    for_constants<3>([&](auto i) {
      turned[i] = rotation[0][i] * v[0] + rotation[1][i] * v[1] + rotation[2][i] * v[2];
    });
    return turned;
  }
};

template <class T>
inline Vec<T> dot(const Channels<T, 3>& a, const Channels<T, 3>& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

template <class T>
inline Channels<T, 3> cross(const Channels<T, 3>& a, const Channels<T, 3>& b) {
  return {{a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]}};
}

// The rotation of a quaternion: columns[k] is the k-th axis of the Gaussian.
template <class T>
struct Orientation {
  Channels<T, 4> unit;
  Vec<T> inverse_length;
  Channels<T, 3> columns[3];

  explicit Orientation(const Channels<T, 4>& q) {
    inverse_length = T(1) / square_root<T>(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    for_constants<4>([&](auto i) { unit[i] = q[i] * inverse_length; });
    const Vec<T> w = unit[0], x = unit[1], y = unit[2], z = unit[3];
    columns[0] = {{T(1) - T(2) * (y * y + z * z), T(2) * (x * y + w * z), T(2) * (x * z - w * y)}};
    columns[1] = {{T(2) * (x * y - w * z), T(1) - T(2) * (x * x + z * z), T(2) * (y * z + w * x)}};
    columns[2] = {{T(2) * (x * z + w * y), T(2) * (y * z - w * x), T(1) - T(2) * (x * x + y * y)}};
  }

  // From the gradient of the columns to that of the unit quaternion.
  Channels<T, 4> backward(const Channels<T, 3> (&grad)[3]) const {
    const Vec<T> w = unit[0], x = unit[1], y = unit[2], z = unit[3];
    // Row i of the rotation, column j: grad[j][i].
    const Vec<T> g00 = grad[0][0], g11 = grad[1][1], g22 = grad[2][2];
    const Vec<T> sum_xy = grad[1][0] + grad[0][1], turn_z = grad[0][1] - grad[1][0];
    const Vec<T> sum_xz = grad[2][0] + grad[0][2], turn_y = grad[2][0] - grad[0][2];
    const Vec<T> sum_yz = grad[2][1] + grad[1][2], turn_x = grad[1][2] - grad[2][1];
    return {{T(2) * (x * turn_x + y * turn_y + z * turn_z),
             T(2) * (y * sum_xy + z * sum_xz + w * turn_x - T(2) * x * (g11 + g22)),
             T(2) * (x * sum_xy + z * sum_yz + w * turn_y - T(2) * y * (g00 + g22)),
             T(2) * (x * sum_xz + y * sum_yz + w * turn_z - T(2) * z * (g00 + g11))}};
  }
};

template <class T>
inline Vec<T> sigmoid(Vec<T> x) {
  return T(1) / (T(1) + exp_and_expm1<T>(-x).exp);
}

// How the Gaussians of one vector look. Rows u and v span the ellipse: Sigma' = (u; v) (u; v)^T.
template <class T>
struct Ellipses {
  Orientation<T> orientation;
  Channels<T, 3> scales;
  Channels<T, 3> world_du, world_dv;  // d(u, v)/d(world position)
  Channels<T, 3> u, v;
  Vec<T> sharp, determinant;  // of Sigma' and of Sigma2D
  Vec<T> xx, xy, yy;          // Sigma2D
  Channels<T, 3> conic;
  Vec<T> sigmoid_opacity, compensation;

  Ellipses(const Gaussians<T>& gaussians, const SplatView<T>& view, const SplatCamera<T>& camera,
           const Landing<T>& landing, int64_t first, int64_t count)
      : orientation(load_items<4>(gaussians.quaternions + 4 * first, count)),
        scales(load_items<3>(gaussians.log_scales + 3 * first, count)),
        world_du(camera.turn_back(landing.du)),
        world_dv(camera.turn_back(landing.dv)) {
    for_constants<3>([&](auto k) {
      scales[k] = exp_and_expm1<T>(scales[k]).exp;
      u[k] = dot(world_du, orientation.columns[k]) * scales[k];
      v[k] = dot(world_dv, orientation.columns[k]) * scales[k];
    });
    const Channels<T, 3> normal = cross(u, v);
    sharp = dot(normal, normal);
    const Vec<T> uu = dot(u, u), vv = dot(v, v);
    determinant = sharp + view.blur * (uu + vv) + view.blur * view.blur;
    xx = uu + view.blur;
    xy = dot(u, v);
    yy = vv + view.blur;
    const Vec<T> inverse = T(1) / determinant;
    conic = {{yy * inverse, -xy * inverse, xx * inverse}};
    sigmoid_opacity = sigmoid<T>(load(gaussians.opacity_logits + first, count));
    compensation = view.is_antialiased ? square_root<T>(sharp * inverse) : splat(T(1));
  }
};

}  // namespace diorama::projection
