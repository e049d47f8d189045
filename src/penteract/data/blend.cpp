#include "penteract/data/blend.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "penteract/base/check.h"

namespace penteract::data {
namespace {

std::vector<int64_t> shares_of(const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int64_t> shares;
  std::vector<std::pair<double, size_t>> remainders;
  int64_t left = BlendSchedule::kPeriod;
  for (size_t s = 0; s < weights.size(); ++s) {
    const double exact = weights[s] / sum * static_cast<double>(BlendSchedule::kPeriod);
    shares.push_back(std::max<int64_t>(1, static_cast<int64_t>(std::floor(exact))));
    remainders.emplace_back(exact - static_cast<double>(shares.back()), s);
    left -= shares.back();
  }
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t i = 0; left > 0; i = (i + 1) % remainders.size(), --left) ++shares[remainders[i].second];
  // Sources lifted to one sample take from the largest.
  for (; left < 0; ++left) --*std::max_element(shares.begin(), shares.end());
  return shares;
}

}  // namespace

BlendSchedule::BlendSchedule(const std::vector<double>& weights) {
  PENT_CHECK(!weights.empty() && weights.size() <= kMaxSources, "{} sources", weights.size());
  for (const double w : weights) PENT_CHECK(std::isfinite(w) && w > 0, "weight {}", w);
  shares_ = shares_of(weights);
  if (shares_.size() == 1) return;
  std::vector<int64_t> counts(shares_.size(), 0);
  for (int64_t i = 0; i < kPeriod; ++i) {
    size_t best = 0;
    int64_t best_lag = INT64_MIN;
    for (size_t s = 0; s < shares_.size(); ++s) {
      const int64_t lag = shares_[s] * (i + 1) - kPeriod * counts[s];
      if (counts[s] < shares_[s] && lag > best_lag) {
        best = s;
        best_lag = lag;
      }
    }
    source_of_.push_back(static_cast<uint16_t>(best));
    index_of_.push_back(static_cast<uint32_t>(counts[best]++));
  }
  PENT_CHECK(counts == shares_, "the period does not meet the shares");
}

BlendSchedule::Draw BlendSchedule::draw(int64_t k) const {
  PENT_CHECK_GE(k, 0);
  if (shares_.size() == 1) return {0, k};
  const auto slot = static_cast<size_t>(k % kPeriod);
  const int64_t source = source_of_[slot];
  return {source, k / kPeriod * shares_[static_cast<size_t>(source)] + index_of_[slot]};
}

int64_t BlendSchedule::count(int64_t source, int64_t k) const {
  PENT_CHECK(k >= 0 && source >= 0 && source < static_cast<int64_t>(shares_.size()));
  if (shares_.size() == 1) return k;
  const auto slots = source_of_.begin();
  return k / kPeriod * shares_[static_cast<size_t>(source)] +
         std::count(slots, slots + static_cast<std::ptrdiff_t>(k % kPeriod), static_cast<uint16_t>(source));
}

}  // namespace penteract::data
