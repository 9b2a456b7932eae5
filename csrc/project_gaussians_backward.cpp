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

// The gradient of the ellipse's rows u and v.
template <class T>
struct RowGradients {
  Channels<T, 3> u, v;

  // With the gradient G of the conic Q, that of Sigma2D is -Q G Q. The compensation c has
  // d log c = (d log det Sigma' - d log det Sigma2D) / 2 with d log det Sigma2D = tr(Q dSigma).
  RowGradients(const Ellipses<T>& seen, const Channels<T, 3>& grad_conic,
               Vec<T> grad_log_compensation) {
    const Vec<T> a = seen.conic[0], b = seen.conic[1], c = seen.conic[2];
    const Vec<T> ga = grad_conic[0], gb = T(0.5) * grad_conic[1], gc = grad_conic[2];
    const Vec<T> left_x = ga * a + gb * b, left_y = gb * a + gc * b;
    const Vec<T> right_x = ga * b + gb * c, right_y = gb * b + gc * c;
    // Twice the gradient: it meets u and v twice.
    const Vec<T> xx = T(-2) * (a * left_x + b * left_y) - grad_log_compensation * a;
    const Vec<T> xy = T(-2) * (a * right_x + b * right_y) - grad_log_compensation * b;
    const Vec<T> yy = T(-2) * (b * right_x + c * right_y) - grad_log_compensation * c;
    for_constants<3>([&](auto k) {
      u[k] = xx * seen.u[k] + xy * seen.v[k];
      v[k] = xy * seen.u[k] + yy * seen.v[k];
    });
  }

  // d log det Sigma' / 2 = n . dn / |n|^2 of the normal n = u x v.
  void add_sharp(const Ellipses<T>& seen, Vec<T> grad_log_compensation) {
    const Channels<T, 3> normal = cross(seen.u, seen.v);
    const Channels<T, 3> by_u = cross(seen.v, normal), by_v = cross(normal, seen.u);
    const Vec<T> scale = grad_log_compensation / seen.sharp;
    for_constants<3>([&](auto k) {
      u[k] += scale * by_u[k];
      v[k] += scale * by_v[k];
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
  const Channels<T, 3> point = camera.point(mean);
  const Landing<T> landing = Lens::project(camera.lens, point);
  const Ellipses<T> seen(gaussians, view, camera, landing, first, count);

  const Vec<T> grad_opacity = load_or_zero<1>(in.opacities, first, count)[0];
  const Vec<T> opacity = seen.sigmoid_opacity * seen.compensation;
  const bool with_compensation = view.is_antialiased && is_exact;
  const Vec<T> grad_log_compensation = with_compensation ? grad_opacity * opacity : Vec<T>{};
  RowGradients<T> rows(seen, load_or_zero<3>(in.conics, first, count), grad_log_compensation);
  if (with_compensation) rows.add_sharp(seen, grad_log_compensation);

  Channels<T, 3> grad_log_scales, grad_columns[3], grad_world_du{}, grad_world_dv{};
  for_constants<3>([&](auto k) {
    grad_log_scales[k] = rows.u[k] * seen.u[k] + rows.v[k] * seen.v[k];
    const Vec<T> by_du = rows.u[k] * seen.scales[k], by_dv = rows.v[k] * seen.scales[k];
    for_constants<3>([&](auto i) {
      grad_columns[k][i] = seen.world_du[i] * by_du + seen.world_dv[i] * by_dv;
      grad_world_du[i] += by_du * seen.orientation.columns[k][i];
      grad_world_dv[i] += by_dv * seen.orientation.columns[k][i];
    });
  });
  Channels<T, 4> grad_quaternion = seen.orientation.backward(grad_columns);
  const auto grad_center = load_or_zero<2>(in.centers, first, count);
  Landing<T> grad_landing{
      grad_center[0], grad_center[1], load_or_zero<1>(in.depths, first, count)[0], {}, {}};
  if (is_exact) {
    Vec<T> along{};
    for_constants<4>([&](auto i) { along += grad_quaternion[i] * seen.orientation.unit[i]; });
    for_constants<4>([&](auto i) {
      grad_quaternion[i] =
          (grad_quaternion[i] - along * seen.orientation.unit[i]) * seen.orientation.inverse_length;
    });
    for_constants<3>([&](auto j) {
      const auto& row = camera.rotation[j];
      grad_landing.du[j] =
          row[0] * grad_world_du[0] + row[1] * grad_world_du[1] + row[2] * grad_world_du[2];
      grad_landing.dv[j] =
          row[0] * grad_world_dv[0] + row[1] * grad_world_dv[1] + row[2] * grad_world_dv[2];
    });
  }
  const LensGradients<T> lens = Lens::backward(camera.lens, point, landing, grad_landing);

  store_wanted<3>(out.means, camera.turn_back(lens.point), is_seen, first, count);
  store_wanted<4>(out.quaternions, grad_quaternion, is_seen, first, count);
  store_wanted<3>(out.log_scales, grad_log_scales, is_seen, first, count);
  const Vec<T> grad_logit = grad_opacity * opacity * (T(1) - seen.sigmoid_opacity);
  store_wanted<1>(out.opacity_logits, Channels<T, 1>{{grad_logit}}, is_seen, first, count);
  if (sums) sums->add(is_seen, mean, landing, lens, grad_world_du, grad_world_dv);
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
