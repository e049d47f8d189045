// Which source of a blend a sample comes from: a pure function of its number. Immutable, thread-safe.
//
// The rule: weights become whole shares of a period of 65,536 samples (largest remainder; at least one each). Within
// the period sample i goes to the source that lags most behind its share, share·(i + 1) − 65536·count, lowest index
// on a tie. After the period all shares are met exactly and it starts over. So after any number of samples each source
// has had its share within one sample or two, and the count of each is known without drawing the samples before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penteract::data {

class BlendSchedule {
 public:
  static constexpr int64_t kPeriod = 65536;
  static constexpr size_t kMaxSources = 1024;

  // REQUIRES: 1 to kMaxSources weights, all finite and > 0.
  explicit BlendSchedule(const std::vector<double>& weights);

  struct Draw {
    int64_t source = 0;
    int64_t index = 0;  // how many samples before this one came from the source
  };
  Draw draw(int64_t k) const;

  // Samples of `source` among the first k.
  int64_t count(int64_t source, int64_t k) const;
  const std::vector<int64_t>& shares() const { return shares_; }

 private:
  std::vector<int64_t> shares_;
  std::vector<uint16_t> source_of_;  // a slot of the period; empty with one source
  std::vector<uint32_t> index_of_;   // samples of that source before the slot
};

}  // namespace penteract::data
