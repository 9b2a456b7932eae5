// SPDX-License-Identifier: Apache-2.0
// One function per kernel file: it defines that kernel's Python functions.
#pragma once

#include <nanobind/nanobind.h>

namespace diorama {

void bind_composite(nanobind::module_& m);
void bind_fused_mlp(nanobind::module_& m);
void bind_hash_grid(nanobind::module_& m);
void bind_cull(nanobind::module_& m);
void bind_distortion(nanobind::module_& m);
void bind_march(nanobind::module_& m);
void bind_project_gaussians(nanobind::module_& m);
void bind_adam(nanobind::module_& m);
void bind_adam_rows(nanobind::module_& m);
void bind_sample_pdf(nanobind::module_& m);
void bind_sh_colors(nanobind::module_& m);
void bind_spherical_harmonics(nanobind::module_& m);
void bind_ssim(nanobind::module_& m);
void bind_tile_lists(nanobind::module_& m);
void bind_rasterize(nanobind::module_& m);

}  // namespace diorama
