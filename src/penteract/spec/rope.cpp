#include "penteract/spec/rope.h"

#include <cmath>
#include <numbers>

namespace penteract::spec {

std::vector<double> rope_frequencies(const ModelSpec& m) {
  const Llama3Rope& scaling = m.llama3_rope;
  const auto original = static_cast<double>(scaling.original_max_position_embeddings);
  std::vector<double> frequencies;
  for (int64_t i = 0; i < m.head_dim / 2; ++i) {
    const double plain = std::pow(m.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(m.head_dim));
    const double wavelength = 2 * std::numbers::pi / plain;
    if (scaling.factor == 1 || wavelength < original / scaling.high_freq_factor) {
      frequencies.push_back(plain);
    } else if (wavelength > original / scaling.low_freq_factor) {
      frequencies.push_back(plain / scaling.factor);
    } else {
      const double smooth =
          (original / wavelength - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
      frequencies.push_back((1 - smooth) * plain / scaling.factor + smooth * plain);
    }
  }
  return frequencies;
}

}  // namespace penteract::spec
