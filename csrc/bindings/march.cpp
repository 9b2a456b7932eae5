// SPDX-License-Identifier: Apache-2.0
#include "../march.h"

#include <nanobind/stl/array.h>

#include "arrays.h"
#include "module.h"

namespace diorama {
namespace {

using Corner = std::array<double, 3>;

template <class T>
MarchRays<T> march_rays(const Array<const T, 2>& origins, const Array<const T, 2>& directions,
                        const Array<const T, 1>& near, const Array<const T, 1>& far,
                        const OptionalArray<const T, 1>& jitter) {
  const size_t num_rays = origins.shape(0);
  require_size(origins, "origins", 1, 3);
  require_size(directions, "directions", 0, num_rays);
  require_size(directions, "directions", 1, 3);
  require_size(near, "near", 0, num_rays);
  require_size(far, "far", 0, num_rays);
  require_size(jitter, "jitter", 0, num_rays);
  return {origins.data(), directions.data(), near.data(),
          far.data(),     pointer(jitter),   static_cast<int64_t>(num_rays)};
}

BrickedGrid bricked_grid(const Array<int64_t, 1>& words, int64_t num_levels, int64_t resolution) {
  require(num_levels >= 1 && num_levels <= kMaxMarchLevels,
          "num_levels must lie in 1 .. " + std::to_string(kMaxMarchLevels));
  require(resolution >= 1, "resolution must be positive");
  const BrickedGrid grid{reinterpret_cast<const uint64_t*>(words.data()), num_levels, resolution};
  require_size(words, "words", 0, static_cast<size_t>(grid.num_words()));
  return grid;
}

MarchSettings march_settings(const Corner& low, const Corner& high, double step, double cone,
                             int64_t max_samples) {
  require(step > 0.0, "step must be positive");
  require(cone >= 0.0, "cone must not be negative");
  require(max_samples > 0, "max_samples must be positive");
  return {{low[0], low[1], low[2]}, {high[0], high[1], high[2]}, step, cone, max_samples};
}

template <class T>
void require_runs(const Array<T, 3>& runs, size_t num_rays) {
  require_size(runs, "runs", 0, num_rays);
  require_size(runs, "runs", 1, kMarchRuns);
  require_size(runs, "runs", 2, 2);
}

void bind_march_pack(nb::module_& m) {
  m.attr("MARCH_RUNS") = kMarchRuns;
  m.def(
      "march_num_words",
      [](int64_t num_levels, int64_t resolution) {
        return BrickedGrid{nullptr, num_levels, resolution}.num_words();
      },
      "num_levels"_a.noconvert(), "resolution"_a.noconvert(),
      "Size of the array that march_pack fills.");
  m.def(
      "march_pack",
      [](Array<const bool, 4> is_occupied, Array<int64_t, 1> words, int num_threads) {
        const size_t resolution = is_occupied.shape(1);
        const BrickedGrid grid = bricked_grid(words, static_cast<int64_t>(is_occupied.shape(0)),
                                              static_cast<int64_t>(resolution));
        require_size(is_occupied, "is_occupied", 2, resolution);
        require_size(is_occupied, "is_occupied", 3, resolution);
        const nb::gil_scoped_release without_gil;
        march_pack(grid, is_occupied.data(), reinterpret_cast<uint64_t*>(words.data()),
                   num_threads);
      },
      "is_occupied"_a.noconvert(), "words"_a.noconvert(), "num_threads"_a.noconvert(),
      "Fill words with the bits of the cells, as the two passes below want them.");
}

template <class T>
void bind_march_passes(nb::module_& m) {
  m.def(
      "march_count",
      [](Array<const T, 2> origins, Array<const T, 2> directions, Array<const T, 1> near,
         Array<const T, 1> far, OptionalArray<const T, 1> jitter, Array<int64_t, 1> words,
         int64_t num_levels, int64_t resolution, Corner low, Corner high, double step, double cone,
         int64_t max_samples, Array<double, 3> runs, Array<int64_t, 1> ray_offsets,
         Array<T, 1> t_next, int num_threads) {
        const MarchRays<T> rays = march_rays<T>(origins, directions, near, far, jitter);
        const BrickedGrid grid = bricked_grid(words, num_levels, resolution);
        const MarchSettings settings = march_settings(low, high, step, cone, max_samples);
        require_runs(runs, origins.shape(0));
        require_size(ray_offsets, "ray_offsets", 0, origins.shape(0) + 1);
        require_size(t_next, "t_next", 0, origins.shape(0));
        const nb::gil_scoped_release without_gil;
        march_count<T>(rays, grid, settings, reinterpret_cast<MarchRun*>(runs.data()),
                       ray_offsets.data(), t_next.data(), num_threads);
      },
      "origins"_a.noconvert(), "directions"_a.noconvert(), "near"_a.noconvert(),
      "far"_a.noconvert(), "jitter"_a.noconvert().none(), "words"_a.noconvert(),
      "num_levels"_a.noconvert(), "resolution"_a.noconvert(), "low"_a.noconvert(),
      "high"_a.noconvert(), "step"_a.noconvert(), "cone"_a.noconvert(), "max_samples"_a.noconvert(),
      "runs"_a.noconvert(), "ray_offsets"_a.noconvert(), "t_next"_a.noconvert(),
      "num_threads"_a.noconvert(), "First pass: fill runs, ray_offsets and t_next.");
  m.def(
      "march_write",
      [](Array<const T, 2> origins, Array<const T, 2> directions, Array<const T, 1> near,
         Array<const T, 1> far, OptionalArray<const T, 1> jitter, Array<int64_t, 1> words,
         int64_t num_levels, int64_t resolution, Corner low, Corner high, double step, double cone,
         Array<double, 3> runs, Array<const int64_t, 1> ray_offsets, Array<T, 1> t,
         Array<T, 1> delta, Array<int64_t, 1> ray, int num_threads) {
        const MarchRays<T> rays = march_rays<T>(origins, directions, near, far, jitter);
        const BrickedGrid grid = bricked_grid(words, num_levels, resolution);
        const MarchSettings settings = march_settings(low, high, step, cone, 1);
        require_runs(runs, origins.shape(0));
        require_size(ray_offsets, "ray_offsets", 0, origins.shape(0) + 1);
        require_offsets(ray_offsets, t.shape(0));
        require_size(delta, "delta", 0, t.shape(0));
        require_size(ray, "ray", 0, t.shape(0));
        const nb::gil_scoped_release without_gil;
        march_write<T>(rays, grid, settings, reinterpret_cast<const MarchRun*>(runs.data()),
                       ray_offsets.data(), {t.data(), delta.data(), ray.data()}, num_threads);
      },
      "origins"_a.noconvert(), "directions"_a.noconvert(), "near"_a.noconvert(),
      "far"_a.noconvert(), "jitter"_a.noconvert().none(), "words"_a.noconvert(),
      "num_levels"_a.noconvert(), "resolution"_a.noconvert(), "low"_a.noconvert(),
      "high"_a.noconvert(), "step"_a.noconvert(), "cone"_a.noconvert(), "runs"_a.noconvert(),
      "ray_offsets"_a.noconvert(), "t"_a.noconvert(), "delta"_a.noconvert(), "ray"_a.noconvert(),
      "num_threads"_a.noconvert(), "Second pass: fill t, delta and ray from the first one's runs.");
}

}  // namespace

void bind_march(nb::module_& m) {
  bind_march_pack(m);
  bind_march_passes<float>(m);
  bind_march_passes<double>(m);
}

}  // namespace diorama
