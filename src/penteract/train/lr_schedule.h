// The learning rate as a pure function of recipe and step, so that a resume cannot shift it. Thread-safety: pure.
#pragma once

#include <cstdint>

#include "penteract/spec/run_spec.h"

namespace penteract::train {

// The rate of step s = 1, 2, ..., num_steps: lr·s/warmup up to `warmup_steps`, then from lr to min_lr at the last step.
//   constant  lr throughout
//   linear    straight line
//   cosine    min + (lr - min)/2 · (1 + cos(pi·t)), t from 0 at the end of the warm-up to 1 at the last step
//   wsd       lr until the last fifth of the steps, then a straight line (warm-up, stable, decay; Hu et al. 2024)
double learning_rate(const spec::OptimizerSpec& optimizer, int64_t num_steps, int64_t step);

}  // namespace penteract::train
