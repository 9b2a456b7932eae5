// SPDX-License-Identifier: Apache-2.0
// Projection of Gaussians to the image; diorama/ops/project_gaussians.py is its specification.
#pragma once

#include <cstdint>

namespace diorama {

// Three, four, three and one numbers for each Gaussian.
template <class T>
struct Gaussians {
  const T* means;
  const T* quaternions;
  const T* log_scales;
  const T* opacity_logits;
  int64_t count;
};

template <class T>
struct SplatView {
  const T* camera_from_world;  // 3 x 4
  const T* intrinsics;         // fx, fy, cx, cy
  T width, height, near, far, blur;
  bool is_fisheye, is_antialiased;
};

// Two, three, one, one and two numbers for each Gaussian; zeros for those that are not seen.
template <class T>
struct SplatOutputs {
  T* centers;
  T* conics;
  T* depths;
  T* opacities;
  T* half_extents;
};

// The half extents of the forward pass, and the gradients of its other outputs; null is zero.
template <class T>
struct SplatCotangents {
  const T* half_extents;
  const T* centers;
  const T* conics;
  const T* depths;
  const T* opacities;
};

// Gradients of the inputs; null means not wanted.
template <class T>
struct GaussianGradients {
  T* means;
  T* quaternions;
  T* log_scales;
  T* opacity_logits;
  T* camera_from_world;
  T* intrinsics;
};

template <class T>
void project_gaussians_forward(const Gaussians<T>& gaussians, const SplatView<T>& view,
                               const SplatOutputs<T>& out, int num_threads);

// Without is_exact the Jacobian and the compensation are constants and quaternions are taken to be
// of unit length.
template <class T>
void project_gaussians_backward(const Gaussians<T>& gaussians, const SplatView<T>& view,
                                bool is_exact, const SplatCotangents<T>& in,
                                const GaussianGradients<T>& out, int num_threads);

}  // namespace diorama
