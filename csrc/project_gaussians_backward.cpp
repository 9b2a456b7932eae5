// SPDX-License-Identifier: Apache-2.0
// Projection, backward: everything is computed again, then walked back from the image to the world.
#include <vector>

#include "parallel.h"
#include "project_gaussians.h"
#include "project_gaussians_ellipse.h"

namespace diorama {
namespace {

using namespace projection;

// Sums over Gaussians are made of sums over pieces of this size, whatever the threads.
constexpr int64_t kGaussiansPerPiece = 1024;
constexpr int kCameraNumbers = 12, kShared = kCameraNumbers + 4;

template <int kChannels, class T>
Channels<T, kChannels> load_or_zero(const T* source, int64_t first, int64_t count) {
  return source ? load_items<kChannels>(source + kChannels * first, count)
                : Channels<T, kChannels>{};
}

// Stores the items whose Gaussian is seen, zeros for the others; a null target is not wanted.
template <int kChannels, class T>
void store_wanted(T* target, Channels<T, kChannels> items, Vec<SignedBits<T>> is_seen,
                  int64_t first, int64_t count) {
  if (!target) return;
  for_constants<kChannels>([&](auto c) { items[c] = is_seen ? items[c] : Vec<T>{}; });
  store_items<kChannels>(target + kChannels * first, items, count);
}

// Through the ellipse, from the gradient G of the conic Q and that of the compensation's logarithm.
//
// The gradient of Sigma2D is -Q G Q, and that of Sigma' through the compensation is half of
// Sigma'^-1 - Q = blur Sigma'^-1 Q. With o_k = Q p_k, i_k = Sigma'^-1 p_k of an axis p_k, all that
// scales and turns the axes is in B_kl = -2 o_k G o_l + blur i_k o_l, and nothing cancels.
template <class T>
struct EllipseGradients {
  Channels<T, 3> log_scales, torque;
  Channels<T, 3> pu, pv;

  EllipseGradients(const Ellipses<T>& seen, T blur, const Channels<T, 3>& grad_conic,
                   Vec<T> grad_log_compensation) {
    const Channels<T, 3> q = seen.conic();
    const Vec<T> ga = T(-2) * grad_conic[0], gb = -grad_conic[1], gc = T(-2) * grad_conic[2];
    // Not wanted where the determinant may be zero: then there is no compensation.
    const Vec<T> pull = grad_log_compensation * blur;
    const Vec<T> inverse = pull == T(0) ? Vec<T>{} : pull / seen.sharp;
    Channels<T, 3> ou, ov, gu, gv;
    for_constants<3>([&](auto k) {
      ou[k] = (blur * seen.pu[k] + seen.adjugate_pu[k]) * seen.inverse_determinant;
      ov[k] = (blur * seen.pv[k] + seen.adjugate_pv[k]) * seen.inverse_determinant;
      gu[k] = ga * ou[k] + gb * ov[k];
      gv[k] = gb * ou[k] + gc * ov[k];
    });
    const auto b = [&](int k, int l) {
      return ou[k] * gu[l] + ov[k] * gv[l] +
             inverse * (seen.adjugate_pu[k] * ou[l] + seen.adjugate_pv[k] * ov[l]);
    };
    const auto& s = seen.variances;
    torque = {{(s[1] - s[2]) * b(1, 2), (s[2] - s[0]) * b(2, 0), (s[0] - s[1]) * b(0, 1)}};
    const Vec<T> sharp_xx = seen.xx - blur, sharp_yy = seen.yy - blur;
    for_constants<3>([&](auto k) {
      log_scales[k] = s[k] * b(k, k);
      pu[k] = s[k] * (q[0] * gu[k] + q[1] * gv[k] + inverse * (sharp_yy * ou[k] - seen.xy * ov[k]));
      pv[k] = s[k] * (q[1] * gu[k] + q[2] * gv[k] + inverse * (sharp_xx * ov[k] - seen.xy * ou[k]));
    });
  }
};

// Gradients of the camera matrix, row by row, and of the intrinsics, summed over Gaussians.
template <class T>
struct SharedSums {
  Channels<T, kShared> at{};

  void add(Vec<SignedBits<T>> is_seen, const Channels<T, 3>& mean, const Landing<T>& landing,
           const LensGradients<T>& lens, const Channels<T, 3>& grad_world_du,
           const Channels<T, 3>& grad_world_dv) {
    const auto include = [&](int j, Vec<T> value) { at[j] += is_seen ? value : Vec<T>{}; };
    for_constants<3>([&](auto j) {
      for_constants<3>([&](auto i) {
        include(4 * j + i, landing.du[j] * grad_world_du[i] + landing.dv[j] * grad_world_dv[i] +
                               lens.point[j] * mean[i]);
      });
      include(4 * j + 3, lens.point[j]);
    });
    for_constants<4>([&](auto i) { include(kCameraNumbers + i, lens.intrinsics[i]); });
  }
};

template <class T, class Lens>
void backward_vector(const Gaussians<T>& gaussians, const SplatView<T>& view,
                     const SplatCamera<T>& camera, bool is_exact, const SplatCotangents<T>& in,
                     const GaussianGradients<T>& out, int64_t first, int64_t count,
                     SharedSums<T>* sums) {
  const auto half_extent = load_items<2>(in.half_extents + 2 * first, count);
  const Vec<SignedBits<T>> is_seen = half_extent[0] > T(0);
  if (!any<T>(is_seen)) {
    store_wanted<3>(out.means, Channels<T, 3>{}, is_seen, first, count);
    store_wanted<4>(out.quaternions, Channels<T, 4>{}, is_seen, first, count);
    store_wanted<3>(out.log_scales, Channels<T, 3>{}, is_seen, first, count);
    store_wanted<1>(out.opacity_logits, Channels<T, 1>{}, is_seen, first, count);
    return;
  }
  const auto mean = load_items<3>(gaussians.means + 3 * first, count);
  const Lens lens(camera.lens, camera.point(mean));
  const Ellipses<T> seen(gaussians, view, camera, lens.landing, first, count);

  const Vec<T> grad_opacity = load_or_zero<1>(in.opacities, first, count)[0];
  const Vec<T> opacity = seen.sigmoid_opacity * seen.compensation;
  const bool with_compensation = view.is_antialiased && is_exact;
  const Vec<T> grad_log_compensation = with_compensation ? grad_opacity * opacity : Vec<T>{};
  const EllipseGradients<T> ellipse(seen, view.blur, load_or_zero<3>(in.conics, first, count),
                                    grad_log_compensation);

  Channels<T, 3> grad_world_du{}, grad_world_dv{};
  for_constants<3>([&](auto k) {
    for_constants<3>([&](auto i) {
      grad_world_du[i] += ellipse.pu[k] * seen.orientation.columns[k][i];
      grad_world_dv[i] += ellipse.pv[k] * seen.orientation.columns[k][i];
    });
  });
  Channels<T, 4> grad_quaternion = seen.orientation.backward(ellipse.torque);
  const auto grad_center = load_or_zero<2>(in.centers, first, count);
  Landing<T> grad_landing{
      grad_center[0], grad_center[1], load_or_zero<1>(in.depths, first, count)[0], {}, {}};
  if (is_exact) {
    for_constants<4>([&](auto i) { grad_quaternion[i] *= seen.orientation.inverse_length; });
    grad_landing.du = camera.turn(grad_world_du);
    grad_landing.dv = camera.turn(grad_world_dv);
  } else {
    // R(q) - I is of second degree in q, and so grows with a quaternion's length.
    Vec<T> along{};
    for_constants<3>([&](auto k) {
      along += ellipse.log_scales[k] - seen.world_du[k] * ellipse.pu[k] -
               seen.world_dv[k] * ellipse.pv[k];
    });
    for_constants<4>(
        [&](auto i) { grad_quaternion[i] += T(2) * along * seen.orientation.unit[i]; });
  }
  const LensGradients<T> grad_lens = lens.backward(grad_landing);

  store_wanted<3>(out.means, camera.turn_back(grad_lens.point), is_seen, first, count);
  store_wanted<4>(out.quaternions, grad_quaternion, is_seen, first, count);
  store_wanted<3>(out.log_scales, ellipse.log_scales, is_seen, first, count);
  const Vec<T> grad_logit = grad_opacity * opacity * (T(1) - seen.sigmoid_opacity);
  store_wanted<1>(out.opacity_logits, Channels<T, 1>{{grad_logit}}, is_seen, first, count);
  if (sums) sums->add(is_seen, mean, lens.landing, grad_lens, grad_world_du, grad_world_dv);
}

template <class T, class Lens>
void backward(const Gaussians<T>& gaussians, const SplatView<T>& view, bool is_exact,
              const SplatCotangents<T>& in, const GaussianGradients<T>& out, int num_threads) {
  const SplatCamera<T> camera(view);
  const bool with_sums = out.camera_from_world || out.intrinsics;
  const int64_t num_pieces =
      with_sums ? (gaussians.count + kGaussiansPerPiece - 1) / kGaussiansPerPiece : 0;
  std::vector<double> piece_sums(num_pieces * kShared);
  parallel_for(gaussians.count, kGaussiansPerPiece, num_threads, [&](int64_t begin, int64_t end) {
    SharedSums<T> sums;
    for (int64_t first = begin; first < end; first += kLanes<T>)
      backward_vector<T, Lens>(gaussians, view, camera, is_exact, in, out, first, end - first,
                               with_sums ? &sums : nullptr);
    if (!with_sums) return;
    double* target = piece_sums.data() + begin / kGaussiansPerPiece * kShared;
    for (int j = 0; j < kShared; ++j) target[j] = sum<T>(sums.at[j]);
  });
  double total[kShared] = {};
  for (int64_t piece = 0; piece < num_pieces; ++piece)
    for (int j = 0; j < kShared; ++j) total[j] += piece_sums[piece * kShared + j];
  if (out.camera_from_world) std::copy_n(total, kCameraNumbers, out.camera_from_world);
  if (out.intrinsics) std::copy_n(total + kCameraNumbers, 4, out.intrinsics);
}

}  // namespace

template <class T>
void project_gaussians_backward(const Gaussians<T>& gaussians, const SplatView<T>& view,
                                bool is_exact, const SplatCotangents<T>& in,
                                const GaussianGradients<T>& out, int num_threads) {
  if (view.is_fisheye)
    backward<T, Fisheye<T>>(gaussians, view, is_exact, in, out, num_threads);
  else
    backward<T, Pinhole<T>>(gaussians, view, is_exact, in, out, num_threads);
}

template void project_gaussians_backward(const Gaussians<float>&, const SplatView<float>&, bool,
                                         const SplatCotangents<float>&,
                                         const GaussianGradients<float>&, int);
template void project_gaussians_backward(const Gaussians<double>&, const SplatView<double>&, bool,
                                         const SplatCotangents<double>&,
                                         const GaussianGradients<double>&, int);

}  // namespace diorama
