// The eight facts that make a run a proof: each false until it was observed. Thread-safety: one thread's (rank 0).
#pragma once

#include <array>
#include <string>

#include "penteract/base/result.h"

namespace penteract::train {

enum class Fact { groups, model, data, forward, backward, finite, checkpoint, validation };
inline constexpr int kNumFacts = 8;

class Evidence {
 public:
  void set(Fact fact, bool ok, std::string details);
  std::string json() const;
  // What json() wrote. Errors: file_malformed, a fact is not there or no fact.
  static Result<Evidence> parse(const std::string& text, const std::string& culprit);
  std::string table() const;  // "fact  ok  details", at most 100 columns

 private:
  struct State {
    bool ok = false;
    std::string details = "not observed";
  };
  std::array<State, kNumFacts> facts_;
};

}  // namespace penteract::train
