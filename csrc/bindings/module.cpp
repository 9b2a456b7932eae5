// SPDX-License-Identifier: Apache-2.0
// The Python module. Only this folder knows Python: bindings check sizes, release the GIL and pass
// raw pointers on.
#include "module.h"

NB_MODULE(DIORAMA_MODULE, m) {
  m.doc() = "Diorama's native kernels: Python allocates, these functions fill.";
  diorama::bind_composite(m);
  diorama::bind_fused_mlp(m);
  diorama::bind_hash_grid(m);
  diorama::bind_cull(m);
  diorama::bind_distortion(m);
  diorama::bind_march(m);
  diorama::bind_project_gaussians(m);
  diorama::bind_adam(m);
  diorama::bind_adam_rows(m);
  diorama::bind_sample_pdf(m);
  diorama::bind_sh_colors(m);
  diorama::bind_spherical_harmonics(m);
  diorama::bind_ssim(m);
  diorama::bind_tile_lists(m);
  diorama::bind_rasterize(m);
}
