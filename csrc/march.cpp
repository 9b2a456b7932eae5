// SPDX-License-Identifier: Apache-2.0
// Marching: from one region of equal occupancy (cell, brick or block) to the next. How many lattice
// intervals a region holds is computed, so a ray's cost is its number of regions, not of samples.
#include "march.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "parallel.h"

namespace diorama {
namespace {

constexpr int64_t kRaysPerPiece = 16;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kNoLimit = int64_t(1) << 62;  // Exact as a double, and safe to convert back.
// Midpoints this close (in steps) to a region's end are looked up on their own, so that rounding in
// the end never decides to which cell a sample belongs.
constexpr double kMargin = 1e-6;

// Lattice of equal steps: the k-th edge is t0 + k step.
struct UniformLattice {
  double t0, step, far, inverse_step;
  double k = 0.0;

  UniformLattice(double first, double last, const MarchSettings& settings)
      : t0(first), step(settings.step), far(last), inverse_step(1.0 / settings.step) {}

  double position() const { return k; }
  void go_to(double position) { k = position; }
  void skip(double count) { k += count; }
  double start() const { return t0 + k * step; }
  double midpoint() const { return start() + 0.5 * std::min(step, far - start()); }

  // Passes all whole intervals whose midpoints lie in front of `exit`, but at least one interval
  // and at most `limit`; says how many.
  int64_t advance(double exit, int64_t limit) {
    const double in_front = (std::min(exit, far - 0.5 * step) - t0) * inverse_step - 0.5 - kMargin;
    const double count = std::clamp(std::ceil(in_front - k), 1.0, static_cast<double>(limit));
    k += count;
    return static_cast<int64_t>(count);
  }

  template <class T>
  void write(int64_t count, T* t, T* delta) const {
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) {
      const double edge = t0 + (k + static_cast<double>(j)) * step;
      const double length = std::min(step, far - edge);
      t[j] = static_cast<T>(edge + 0.5 * length);
      delta[j] = static_cast<T>(length);
    }
  }
};

// Lattice whose steps grow with distance: the next edge is t + max(step, cone t).
struct ConeLattice {
  double t, step, far, growth;

  ConeLattice(double first, double last, const MarchSettings& settings)
      : t(first), step(settings.step), far(last), growth(1.0 + settings.cone) {}

  double position() const { return t; }
  void go_to(double position) { t = position; }
  double start() const { return t; }
  double after(double edge) const { return std::max(edge + step, edge * growth); }
  double midpoint() const { return 0.5 * (t + std::min(after(t), far)); }
  void skip(double count) {
    for (; count > 0.0; count -= 1.0) t = after(t);
  }

  int64_t advance(double exit, int64_t limit) {
    double next = after(t);
    const double twice_exit = 2.0 * (exit - kMargin * (next - t));
    int64_t count = 0;
    do {
      t = next;
      next = after(t);
      ++count;
    } while (count < limit && next <= far && t + next < twice_exit);
    return count;
  }

  template <class T>
  void write(int64_t count, T* target, T* delta) const {
    double edge = t;
    for (int64_t j = 0; j < count; ++j) {
      const double next = after(edge), end = std::min(next, far);
      target[j] = static_cast<T>(0.5 * (edge + end));
      delta[j] = static_cast<T>(end - edge);
      edge = next;
    }
  }
};

// A stretch of a ray from a point to `exit` with one answer to "is it occupied?".
struct Region {
  bool is_occupied;
  double exit;
};

// A ray in cells of level 0 from the boxes' common centre: x = origin + t slope. In cells of level
// g it is 2^-g times that.
class GridRay {
 public:
  template <class T>
  GridRay(const T* from, const T* direction, const BrickedGrid& grid, const MarchSettings& settings)
      : grid_(grid), half_(0.5 * static_cast<double>(grid.resolution)) {
    bool is_still = true, is_finite = true;
    for (int a = 0; a < 3; ++a) {
      const double low = settings.low[a], high = settings.high[a];
      const double cells = static_cast<double>(grid.resolution) / (high - low);
      origin_[a] = (from[a] - 0.5 * (low + high)) * cells;
      slope_[a] = direction[a] * cells;
      is_up_[a] = slope_[a] > 0.0;
      is_still &= slope_[a] == 0.0;
      is_finite &= std::isfinite(origin_[a]) && std::isfinite(slope_[a]);
      // A ray parallel to an axis's faces reaches them at a time beyond all others.
      const double least = is_up_[a] ? 1e-30 : -1e-30;
      inverse_[a] = 1.0 / (std::abs(slope_[a]) < 1e-30 ? least : slope_[a]);
    }
    double half = half_;
    for (int64_t g = 0; g < grid.num_levels; ++g, half *= 2.0) {
      double enter = -kInfinity, leave = kInfinity;
      for (int a = 0; a < 3; ++a) {
        const double one = (-half - origin_[a]) * inverse_[a];
        const double other = (half - origin_[a]) * inverse_[a];
        enter = std::max(enter, std::min(one, other));
        leave = std::min(leave, std::max(one, other));
      }
      enter_[g] = enter < leave ? enter : kInfinity;
      leave_ = leave;
    }
    // A ray without a direction would have no end.
    if (is_still || !is_finite) leave_ = -kInfinity;
  }

  Region region_at(double t) const {
    if (!(t < leave_)) return {false, kInfinity};
    double x[3];
    for (int a = 0; a < 3; ++a) x[a] = origin_[a] + t * slope_[a];
    int64_t level = 0;
    double cell = 1.0, inverse_cell = 1.0;  // Size of a cell of this level.
    for (; level < grid_.num_levels; ++level, cell *= 2.0, inverse_cell *= 0.5) {
      const double half = half_ * cell;
      if (x[0] >= -half && x[0] < half && x[1] >= -half && x[1] < half && x[2] >= -half &&
          x[2] < half)
        break;
    }
    // Outside of all boxes: on to the coarsest; or by one interval if it is only rounding that
    // separates the two.
    if (level == grid_.num_levels) return {false, t < enter_[level - 1] ? enter_[level - 1] : t};

    int64_t at[3];
    for (int a = 0; a < 3; ++a)
      at[a] = std::min(static_cast<int64_t>(x[a] * inverse_cell + half_), grid_.resolution - 1);
    const Lookup found = look_up(level, at);
    double exit = kInfinity;
    for (int a = 0; a < 3; ++a) {
      const int64_t face = ((at[a] >> found.shift) + is_up_[a]) << found.shift;
      const double bounded = static_cast<double>(std::min(face, grid_.resolution));
      exit = std::min(exit, ((bounded - half_) * cell - origin_[a]) * inverse_[a]);
    }
    // Bricks may reach into the next finer box, where finer cells decide.
    if (level > 0 && t < enter_[level - 1]) exit = std::min(exit, enter_[level - 1]);
    return {found.is_occupied, exit};
  }

 private:
  // What holds for all of the 2^shift cells along each axis around a cell.
  struct Lookup {
    bool is_occupied;
    int shift;
  };

  Lookup look_up(int64_t level, const int64_t (&at)[3]) const {
    const int64_t bricks = grid_.bricks_per_axis();
    const int64_t brick =
        ((level * bricks + (at[0] >> 2)) * bricks + (at[1] >> 2)) * bricks + (at[2] >> 2);
    const uint64_t word = grid_.words[brick];
    if (word == 0) {
      const int64_t blocks = grid_.blocks_per_axis();
      const int64_t block =
          ((level * blocks + (at[0] >> 4)) * blocks + (at[1] >> 4)) * blocks + (at[2] >> 4);
      const uint64_t above = grid_.words[grid_.num_levels * grid_.bricks_per_level() + block];
      return {false, above == 0 ? 4 : 2};
    }
    if (word == ~uint64_t(0)) return {true, 2};
    const int64_t bit = (at[0] & 3) << 4 | (at[1] & 3) << 2 | (at[2] & 3);
    return {(word >> bit & 1) != 0, 0};
  }

  BrickedGrid grid_;
  double half_;
  double origin_[3], slope_[3], inverse_[3];
  bool is_up_[3];
  double enter_[kMaxMarchLevels];  // Infinite where the box is missed.
  double leave_;                   // Of the coarsest box.
};

// Calls on_run(position, count) for stretches of samples until there are `limit` of them. True if
// the ray is finished, false if it stopped for the limit.
template <class Lattice, class OnRun>
bool traverse(const GridRay& ray, Lattice& lattice, int64_t limit, const OnRun& on_run) {
  while (lattice.start() < lattice.far) {
    const Region region = ray.region_at(lattice.midpoint());
    if (!region.is_occupied) {
      if (region.exit == kInfinity) return true;
      lattice.advance(region.exit, kNoLimit);
      continue;
    }
    const double position = lattice.position();
    const int64_t count = lattice.advance(region.exit, limit);
    on_run(position, count);
    limit -= count;
    if (limit == 0) return !(lattice.start() < lattice.far);
  }
  return true;
}

template <class Lattice, class T>
Lattice lattice_of(const MarchRays<T>& rays, const MarchSettings& settings, int64_t ray) {
  const double near = rays.near[ray];
  const double shift = rays.jitter ? rays.jitter[ray] : 0.0;
  return {near + shift * std::max(settings.step, settings.cone * near),
          static_cast<double>(rays.far[ray]), settings};
}

template <class Lattice, class T>
void count_ray(const MarchRays<T>& rays, const BrickedGrid& grid, const MarchSettings& settings,
               int64_t ray, MarchRun* runs, int64_t* total, T* t_next) {
  const GridRay grid_ray(rays.origins + 3 * ray, rays.directions + 3 * ray, grid, settings);
  Lattice lattice = lattice_of<Lattice>(rays, settings, ray);
  MarchRun* run = runs - 1;
  double end = -kInfinity;
  *total = 0;
  const bool is_finished = traverse(grid_ray, lattice, std::min(settings.max_samples, kNoLimit),
                                    [&](double position, int64_t count) {
                                      *total += count;
                                      const bool is_continued = position == end;
                                      end = lattice.position();
                                      if (!is_continued && ++run < runs + kMarchRuns)
                                        *run = {position, 0.0};
                                      if (run < runs + kMarchRuns)
                                        run->length += static_cast<double>(count);
                                    });
  *t_next = is_finished ? rays.far[ray] : static_cast<T>(lattice.start());
}

template <class Lattice, class T>
void write_ray(const MarchRays<T>& rays, const BrickedGrid& grid, const MarchSettings& settings,
               int64_t ray, const MarchRun* runs, int64_t begin, int64_t end,
               const MarchSamples<T>& out) {
  std::fill(out.ray + begin, out.ray + end, ray);
  Lattice lattice = lattice_of<Lattice>(rays, settings, ray);
  int64_t at = begin;
  for (const MarchRun* run = runs; run < runs + kMarchRuns && at < end; ++run) {
    const double left = static_cast<double>(end - at);
    const int64_t count = static_cast<int64_t>(std::clamp(run->length, 0.0, left));
    lattice.go_to(run->start);
    lattice.write(count, out.t + at, out.delta + at);
    at += count;
  }
  if (at == end) return;
  // More runs than were remembered: pass the last of them and march on.
  lattice.skip(runs[kMarchRuns - 1].length);
  const GridRay grid_ray(rays.origins + 3 * ray, rays.directions + 3 * ray, grid, settings);
  traverse(grid_ray, lattice, end - at, [&](double position, int64_t count) {
    Lattice part = lattice;
    part.go_to(position);
    part.write(count, out.t + at, out.delta + at);
    at += count;
  });
}

// Calls work with the kind of lattice as a type.
template <class Work>
void with_lattice(const MarchSettings& settings, const Work& work) {
  if (settings.cone > 0.0) return work.template operator()<ConeLattice>();
  work.template operator()<UniformLattice>();
}

// The bits of the 4 x 4 rows of bricks that start at row (i, j) of bricks.
void pack_bricks(const BrickedGrid& grid, const bool* cells, int64_t i, int64_t j,
                 uint64_t* bricks) {
  const int64_t r = grid.resolution;
  std::fill_n(bricks, grid.bricks_per_axis(), uint64_t(0));
  for (int64_t x = 4 * i; x < std::min(4 * i + 4, r); ++x)
    for (int64_t y = 4 * j; y < std::min(4 * j + 4, r); ++y) {
      const bool* row = cells + (x * r + y) * r;
      const int64_t shift = (x & 3) << 4 | (y & 3) << 2;
      for (int64_t k = 0; k < r / 4; ++k) {
        uint32_t four;
        std::memcpy(&four, row + 4 * k, sizeof four);
        // Gathers the lowest bits of four bytes next to each other.
        const uint64_t bits = (four & 0x01010101u) * 0x01020408u >> 24 & 15u;
        bricks[k] |= bits << shift;
      }
      for (int64_t z = r / 4 * 4; z < r; ++z)
        bricks[z >> 2] |= static_cast<uint64_t>(row[z]) << (shift | (z & 3));
    }
}

}  // namespace

void march_pack(const BrickedGrid& grid, const bool* is_occupied, uint64_t* words,
                int num_threads) {
  const int64_t r = grid.resolution, n = grid.bricks_per_axis(), m = grid.blocks_per_axis();
  uint64_t* blocks = words + grid.num_levels * grid.bricks_per_level();
  // One slab of blocks (16 cells thick) after the other: no two threads meet in a word.
  parallel_for(grid.num_levels * m, 1, num_threads, [&](int64_t begin, int64_t end) {
    for (int64_t slab = begin; slab < end; ++slab) {
      const int64_t level = slab / m, first = slab % m * 4;
      uint64_t* slab_blocks = blocks + slab * m * m;
      std::fill_n(slab_blocks, m * m, uint64_t(0));
      for (int64_t i = first; i < std::min(first + 4, n); ++i)
        for (int64_t j = 0; j < n; ++j) {
          uint64_t* bricks = words + ((level * n + i) * n + j) * n;
          pack_bricks(grid, is_occupied + level * r * r * r, i, j, bricks);
          for (int64_t k = 0; k < n; ++k)
            slab_blocks[(j >> 2) * m + (k >> 2)] |= uint64_t(bricks[k] != 0)
                                                    << ((i & 3) << 4 | (j & 3) << 2 | (k & 3));
        }
    }
  });
}

template <class T>
void march_count(const MarchRays<T>& rays, const BrickedGrid& grid, const MarchSettings& settings,
                 MarchRun* runs, int64_t* ray_offsets, T* t_next, int num_threads) {
  with_lattice(settings, [&]<class Lattice>() {
    parallel_for(rays.num_rays, kRaysPerPiece, num_threads, [&](int64_t begin, int64_t end) {
      for (int64_t ray = begin; ray < end; ++ray)
        count_ray<Lattice>(rays, grid, settings, ray, runs + ray * kMarchRuns,
                           ray_offsets + ray + 1, t_next + ray);
    });
  });
  ray_offsets[0] = 0;
  for (int64_t ray = 0; ray < rays.num_rays; ++ray) ray_offsets[ray + 1] += ray_offsets[ray];
}

template <class T>
void march_write(const MarchRays<T>& rays, const BrickedGrid& grid, const MarchSettings& settings,
                 const MarchRun* runs, const int64_t* ray_offsets, const MarchSamples<T>& out,
                 int num_threads) {
  with_lattice(settings, [&]<class Lattice>() {
    parallel_for(rays.num_rays, kRaysPerPiece, num_threads, [&](int64_t begin, int64_t end) {
      for (int64_t ray = begin; ray < end; ++ray)
        write_ray<Lattice>(rays, grid, settings, ray, runs + ray * kMarchRuns, ray_offsets[ray],
                           ray_offsets[ray + 1], out);
    });
  });
}

template void march_count(const MarchRays<float>&, const BrickedGrid&, const MarchSettings&,
                          MarchRun*, int64_t*, float*, int);
template void march_count(const MarchRays<double>&, const BrickedGrid&, const MarchSettings&,
                          MarchRun*, int64_t*, double*, int);
template void march_write(const MarchRays<float>&, const BrickedGrid&, const MarchSettings&,
                          const MarchRun*, const int64_t*, const MarchSamples<float>&, int);
template void march_write(const MarchRays<double>&, const BrickedGrid&, const MarchSettings&,
                          const MarchRun*, const int64_t*, const MarchSamples<double>&, int);

}  // namespace diorama
