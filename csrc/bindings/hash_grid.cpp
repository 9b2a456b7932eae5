// SPDX-License-Identifier: Apache-2.0
#include "../hash_grid.h"

#include <nanobind/stl/vector.h>

#include <bit>

#include "arrays.h"
#include "module.h"

namespace diorama {
namespace {

// Indices that the kernels compute are in range for every position if these checks pass.
HashGrid hash_grid(const std::vector<double>& scales, const std::vector<int64_t>& resolutions,
                   const std::vector<int64_t>& offsets, bool is_smooth, int64_t num_active,
                   size_t num_entries, int64_t num_features) {
  const size_t num_levels = scales.size();
  require(resolutions.size() == num_levels && offsets.size() == num_levels + 1,
          "resolutions and offsets must have one and two numbers for one level, one more for each "
          "further one");
  require(
      offsets[0] == 0 && offsets[num_levels] == static_cast<int64_t>(num_entries),
      "offsets must start at 0 and end at the number of entries, " + std::to_string(num_entries));
  require(num_active >= 0 && num_active <= static_cast<int64_t>(num_levels),
          "active_levels must be in 0 .. " + std::to_string(num_levels) + ", got " +
              std::to_string(num_active));
  require(num_features == 1 || num_features == 2 || num_features == 4 || num_features == 8,
          "the number of features must be 1, 2, 4 or 8, got " + std::to_string(num_features));
  HashGrid grid{{}, num_active, num_features, is_smooth};
  for (size_t l = 0; l < num_levels; ++l) {
    const int64_t resolution = resolutions[l], length = offsets[l + 1] - offsets[l];
    const std::string level = "level " + std::to_string(l);
    require(resolution >= 1 && resolution < (int64_t(1) << 20), level + ": bad resolution");
    require(length >= 8 && length <= (int64_t(1) << 30), level + ": bad number of entries");
    const bool is_dense = resolution * resolution * resolution <= length;
    require(is_dense || std::has_single_bit(static_cast<uint64_t>(length)),
            level + ": a hashed level must have a power of two entries");
    grid.levels.push_back({scales[l], resolution, offsets[l], length, is_dense});
  }
  return grid;
}

template <class T>
HashGridPoints<T> points_of(const Array<const T, 2>& positions,
                            const OptionalArray<const T, 2>& directions) {
  require_size(positions, "positions", 1, 3);
  require_size(directions, "directions", 0, positions.shape(0));
  require_size(directions, "directions", 1, 3);
  return {positions.data(), pointer(directions), static_cast<int64_t>(positions.shape(0))};
}

template <class A>
void require_features(const A& features, const char* name, int64_t num_points,
                      const HashGrid& grid) {
  require_size(features, name, 0, num_points);
  require_size(features, name, 1, grid.levels.size() * grid.num_features);
}

template <class T>
void bind_forward(nb::module_& m) {
  m.def(
      "hash_grid_forward",
      [](Array<const T, 2> positions, OptionalArray<const T, 2> directions, Array<const T, 2> table,
         std::vector<double> scales, std::vector<int64_t> resolutions, std::vector<int64_t> offsets,
         bool is_smooth, int64_t active_levels, Array<T, 2> features, int num_threads) {
        const HashGridPoints<T> points = points_of<T>(positions, directions);
        const HashGrid grid = hash_grid(scales, resolutions, offsets, is_smooth, active_levels,
                                        table.shape(0), table.shape(1));
        require_features(features, "features", points.count, grid);
        const nb::gil_scoped_release without_gil;
        hash_grid_forward<T>(grid, points, table.data(), features.data(), num_threads);
      },
      "positions"_a.noconvert(), "directions"_a.noconvert().none(), "table"_a.noconvert(),
      "scales"_a, "resolutions"_a, "offsets"_a, "is_smooth"_a.noconvert(),
      "active_levels"_a.noconvert(), "features"_a.noconvert(), "num_threads"_a.noconvert(),
      "Fill features, or with directions their directional derivative.");
}

template <class T>
void bind_backward_table(nb::module_& m) {
  m.def(
      "hash_grid_backward_table",
      [](Array<const T, 2> positions, OptionalArray<const T, 2> directions,
         Array<const T, 2> grad_features, std::vector<double> scales,
         std::vector<int64_t> resolutions, std::vector<int64_t> offsets, bool is_smooth,
         int64_t active_levels, Array<T, 2> grad_table, int num_threads) {
        const HashGridPoints<T> points = points_of<T>(positions, directions);
        const HashGrid grid = hash_grid(scales, resolutions, offsets, is_smooth, active_levels,
                                        grad_table.shape(0), grad_table.shape(1));
        require_features(grad_features, "grad_features", points.count, grid);
        const nb::gil_scoped_release without_gil;
        hash_grid_backward_table<T>(grid, points, grad_features.data(), grad_table.data(),
                                    num_threads);
      },
      "positions"_a.noconvert(), "directions"_a.noconvert().none(), "grad_features"_a.noconvert(),
      "scales"_a, "resolutions"_a, "offsets"_a, "is_smooth"_a.noconvert(),
      "active_levels"_a.noconvert(), "grad_table"_a.noconvert(), "num_threads"_a.noconvert(),
      "Fill grad_table, the gradient of the features or of their directional derivative.");
}

template <class T>
void bind_backward_positions(nb::module_& m) {
  m.def(
      "hash_grid_backward_positions",
      [](Array<const T, 2> positions, OptionalArray<const T, 2> directions, Array<const T, 2> table,
         Array<const T, 2> grad_features, std::vector<double> scales,
         std::vector<int64_t> resolutions, std::vector<int64_t> offsets, bool is_smooth,
         int64_t active_levels, Array<T, 2> grad_positions, int num_threads) {
        const HashGridPoints<T> points = points_of<T>(positions, directions);
        const HashGrid grid = hash_grid(scales, resolutions, offsets, is_smooth, active_levels,
                                        table.shape(0), table.shape(1));
        require_features(grad_features, "grad_features", points.count, grid);
        require_size(grad_positions, "grad_positions", 0, positions.shape(0));
        require_size(grad_positions, "grad_positions", 1, 3);
        const nb::gil_scoped_release without_gil;
        hash_grid_backward_positions<T>(grid, points, table.data(), grad_features.data(),
                                        grad_positions.data(), num_threads);
      },
      "positions"_a.noconvert(), "directions"_a.noconvert().none(), "table"_a.noconvert(),
      "grad_features"_a.noconvert(), "scales"_a, "resolutions"_a, "offsets"_a,
      "is_smooth"_a.noconvert(), "active_levels"_a.noconvert(), "grad_positions"_a.noconvert(),
      "num_threads"_a.noconvert(),
      "Fill grad_positions, the gradient of the features or of their directional derivative.");
}

}  // namespace

void bind_hash_grid(nb::module_& m) {
  bind_forward<float>(m);
  bind_forward<double>(m);
  bind_backward_table<float>(m);
  bind_backward_table<double>(m);
  bind_backward_positions<float>(m);
  bind_backward_positions<double>(m);
}

}  // namespace diorama
