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

  Channels<T, 3> turn(const Channels<T, 3>& v) const {
    Channels<T, 3> turned;
    for_constants<3>([&](auto i) {
      turned[i] = rotation[i][0] * v[0] + rotation[i][1] * v[1] + rotation[i][2] * v[2];
    });
    return turned;
  }

  Channels<T, 3> point(const Channels<T, 3>& mean) const {
    Channels<T, 3> p = turn(mean);
    for_constants<3>([&](auto i) { p[i] += translation[i]; });
    return p;
  }

  // The way back, for directions.
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

  // A torque is the gradient by a small turn about each of the Gaussian's own axes; this is the
  // gradient by the unit quaternion, without any part along it.
  Channels<T, 4> backward(const Channels<T, 3>& torque) const {
    const Vec<T> w = unit[0], x = unit[1], y = unit[2], z = unit[3];
    return {{T(-2) * (x * torque[0] + y * torque[1] + z * torque[2]),
             T(2) * (w * torque[0] + y * torque[2] - z * torque[1]),
             T(2) * (w * torque[1] + z * torque[0] - x * torque[2]),
             T(2) * (w * torque[2] + x * torque[1] - y * torque[0])}};
  }
};

template <class T>
inline Vec<T> sigmoid(Vec<T> x) {
  return T(1) / (T(1) + exp_and_expm1<T>(-x).exp);
}

// How the Gaussians of one vector look. A Gaussian's k-th axis of unit length moves the image by
// (pu[k], pv[k]), so Sigma' = sum_k variances[k] (pu[k], pv[k]) (pu[k], pv[k])^T. Its determinant
// comes from m = pu x pv, never from a difference of products, which of a needle leaves no digit.
template <class T>
struct Ellipses {
  Orientation<T> orientation;
  Channels<T, 3> variances;
  Channels<T, 3> world_du, world_dv;  // d(u, v)/d(world position)
  Channels<T, 3> pu, pv;
  Channels<T, 3> adjugate_pu, adjugate_pv;  // Columns: adj(Sigma') (pu[k], pv[k])
  Vec<T> sharp, inverse_determinant;        // det Sigma' and 1 / det Sigma2D
  Vec<T> xx, xy, yy;                        // Sigma2D
  Vec<T> sigmoid_opacity, compensation;

  Ellipses(const Gaussians<T>& gaussians, const SplatView<T>& view, const SplatCamera<T>& camera,
           const Landing<T>& landing, int64_t first, int64_t count)
      : orientation(load_items<4>(gaussians.quaternions + 4 * first, count)),
        variances(load_items<3>(gaussians.log_scales + 3 * first, count)),
        world_du(camera.turn_back(landing.du)),
        world_dv(camera.turn_back(landing.dv)) {
    const Channels<T, 3> normal = cross(world_du, world_dv);
    Channels<T, 3> m, long_pu, long_pv;
    for_constants<3>([&](auto k) {
      variances[k] = exp_and_expm1<T>(variances[k] + variances[k]).exp;
      pu[k] = dot(world_du, orientation.columns[k]);
      pv[k] = dot(world_dv, orientation.columns[k]);
      m[k] = dot(normal, orientation.columns[k]);
      long_pu[k] = variances[k] * pu[k];
      long_pv[k] = variances[k] * pv[k];
    });
    const auto& s = variances;
    sharp = s[1] * s[2] * m[0] * m[0] + s[2] * s[0] * m[1] * m[1] + s[0] * s[1] * m[2] * m[2];
    adjugate_pu = cross(long_pv, m);
    adjugate_pv = cross(m, long_pu);
    const Vec<T> uu = dot(pu, long_pu), vv = dot(pv, long_pv);
    inverse_determinant = T(1) / (sharp + view.blur * (uu + vv) + view.blur * view.blur);
    xx = uu + view.blur;
    xy = dot(pu, long_pv);
    yy = vv + view.blur;
    sigmoid_opacity = sigmoid<T>(load(gaussians.opacity_logits + first, count));
    compensation =
        view.is_antialiased ? square_root<T>(sharp * inverse_determinant) : broadcast(T(1));
  }

  Channels<T, 3> conic() const {
    return {{yy * inverse_determinant, -xy * inverse_determinant, xx * inverse_determinant}};
  }
};

}  // namespace diorama::projection
