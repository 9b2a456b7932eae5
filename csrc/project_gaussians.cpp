// SPDX-License-Identifier: Apache-2.0
// Projection, forward: a vector of Gaussians at a time.
#include "project_gaussians.h"

#include <limits>

#include "parallel.h"
#include "project_gaussians_ellipse.h"

namespace diorama {
namespace {

using namespace projection;

constexpr int64_t kGaussiansPerPiece = 2048;

template <class T, int kChannels>
Channels<T, kChannels> where(Vec<SignedBits<T>> mask, Channels<T, kChannels> items) {
  for_constants<kChannels>([&](auto c) { items[c] = mask ? items[c] : Vec<T>{}; });
  return items;
}

template <class T>
void write(const SplatOutputs<T>& out, int64_t first, int64_t count, Vec<SignedBits<T>> is_seen,
           const Landing<T>& landing, const Channels<T, 3>& conic, Vec<T> opacity,
           const Channels<T, 2>& half_extent) {
  store_items<2>(out.centers + 2 * first,
                 where<T, 2>(is_seen, Channels<T, 2>{{landing.u, landing.v}}), count);
  store_items<3>(out.conics + 3 * first, where<T, 3>(is_seen, conic), count);
  store(out.depths + first, is_seen ? landing.depth : Vec<T>{}, count);
  store(out.opacities + first, is_seen ? opacity : Vec<T>{}, count);
  store_items<2>(out.half_extents + 2 * first, where<T, 2>(is_seen, half_extent), count);
}

template <class T, class Lens>
void forward_vector(const Gaussians<T>& gaussians, const SplatView<T>& view,
                    const SplatCamera<T>& camera, const SplatOutputs<T>& out, int64_t first,
                    int64_t count) {
  const auto mean = load_items<3>(gaussians.means + 3 * first, count);
  const Landing<T> landing = Lens(camera.lens, camera.point(mean)).landing;
  Vec<SignedBits<T>> is_seen =
      (landing.depth >= broadcast(view.near)) & (landing.depth <= broadcast(view.far));
  if (!any<T>(is_seen)) return write<T>(out, first, count, is_seen, landing, {}, Vec<T>{}, {});

  const Ellipses<T> seen(gaussians, view, camera, landing, first, count);
  const Vec<T> opacity = seen.sigmoid_opacity * seen.compensation;
  // exp(-reach / 2) times the opacity is 1 / 255.
  const Vec<T> reach =
      T(2) * map_lanes<T>(T(255) * opacity, [](T x) { return x > T(1) ? std::log(x) : T(0); });
  const Channels<T, 2> half_extent{
      {square_root<T>(reach * seen.xx), square_root<T>(reach * seen.yy)}};
  const Channels<T, 3> conic = seen.conic();
  const Vec<T> infinity = broadcast(std::numeric_limits<T>::infinity());
  // Every comparison is such that NaN fails it.
  is_seen &= (seen.inverse_determinant > T(0)) & (seen.inverse_determinant < infinity) &
             (conic[0] < infinity) & (conic[2] < infinity) & (half_extent[0] > T(0)) &
             (half_extent[1] > T(0)) & (half_extent[0] < infinity) & (half_extent[1] < infinity);
  is_seen &= (landing.u + half_extent[0] > T(0)) & (landing.u - half_extent[0] < view.width) &
             (landing.v + half_extent[1] > T(0)) & (landing.v - half_extent[1] < view.height);
  write<T>(out, first, count, is_seen, landing, conic, opacity, half_extent);
}

template <class T, class Lens>
void forward(const Gaussians<T>& gaussians, const SplatView<T>& view, const SplatOutputs<T>& out,
             int num_threads) {
  const SplatCamera<T> camera(view);
  parallel_for(gaussians.count, kGaussiansPerPiece, num_threads, [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += kLanes<T>)
      forward_vector<T, Lens>(gaussians, view, camera, out, first, end - first);
  });
}

}  // namespace

template <class T>
void project_gaussians_forward(const Gaussians<T>& gaussians, const SplatView<T>& view,
                               const SplatOutputs<T>& out, int num_threads) {
  if (view.is_fisheye)
    forward<T, Fisheye<T>>(gaussians, view, out, num_threads);
  else
    forward<T, Pinhole<T>>(gaussians, view, out, num_threads);
}

template void project_gaussians_forward(const Gaussians<float>&, const SplatView<float>&,
                                        const SplatOutputs<float>&, int);
template void project_gaussians_forward(const Gaussians<double>&, const SplatView<double>&,
                                        const SplatOutputs<double>&, int);

}  // namespace diorama
