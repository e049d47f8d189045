#include "penteract/comm/world_state.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <thread>

#include "penteract/base/check.h"
#include "penteract/comm/device.h"
#include "penteract/comm/hub.h"

namespace penteract::comm {
namespace {

// Between sleeps a rank looks at abort and deadline: an abort reaches everybody within this time.
constexpr std::chrono::milliseconds kSleepSlice{50};
constexpr int kNumSpins = 2000;
constexpr size_t kMaxRanksShown = 32;

int spins_for(int num_local) {
  return num_local <= static_cast<int>(std::thread::hardware_concurrency()) ? kNumSpins : 0;
}

std::string list_ranks(const std::vector<int>& ranks) {
  if (ranks.size() <= kMaxRanksShown) return fmt::format("{}", fmt::join(ranks, ", "));
  return fmt::format("{}, ... ({} ranks)", fmt::join(ranks.begin(), ranks.begin() + kMaxRanksShown, ", "),
                     ranks.size());
}

}  // namespace

World::World(int num_ranks, int first_rank, int num_local, WorldOptions options)
    : num_ranks_(num_ranks),
      first_rank_(first_rank),
      num_local_(num_local),
      options_(std::move(options)),
      num_spins_(spins_for(num_local)),
      left_(num_local),
      device_ends_(num_local, nullptr) {
  for (int i = 0; i < num_local; ++i) recorders_.push_back(std::make_unique<FlightRecorder>());
}

World::~World() = default;

const std::string& World::keep_name(const std::string& name) {
  std::lock_guard lock(mutex_);
  return *names_.insert(name).first;
}

std::shared_ptr<Hub> World::hub(const std::vector<int>& ranks) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Hub>& hub = hubs_[ranks];
  if (!hub) hub = std::make_shared<Hub>(ranks.size());
  return hub;
}

void World::abort(int rank, Error cause) {
  std::lock_guard lock(mutex_);
  if (first_cause_) return;
  if (options_.device) options_.device->abort();
  // An error that all ranks agreed on names its rank already.
  if (cause.culprit.empty()) {
    cause.culprit = fmt::format("rank {}", rank);
  } else if (!cause.culprit.starts_with("rank ")) {
    cause.culprit = fmt::format("rank {}, {}", rank, cause.culprit);
  }
  first_cause_ = std::move(cause);
  records_at_abort_ = flight_records();
  aborted_.store(true, std::memory_order_release);
}

void World::fail(int rank, Error cause) {
  abort(rank, cause);
  throw CommError(std::move(cause));
}

std::optional<Error> World::first_cause() const {
  std::lock_guard lock(mutex_);
  return first_cause_;
}

std::string World::records_at_abort() const {
  std::lock_guard lock(mutex_);
  return records_at_abort_;
}

void World::throw_aborted() const {
  const Error cause = first_cause().value();
  throw CommError(Error{ErrorCode::comm_failed, "the run was ended by another rank's failure: " + cause.what,
                        cause.culprit, cause.remedy});
}

bool World::has_left(int rank) const {
  const int local = rank - first_rank_;
  return local >= 0 && local < num_local_ && left_[local].load(std::memory_order_acquire);
}

void World::give_up(const Wait& wait, ErrorCode code, const std::string& why) {
  const std::vector<int> missing = wait.missing();
  std::string what = fmt::format("#{} of group {} (ranks {}), {}: {}; missing: {} {}", wait.call.sequence, wait.group,
                                 list_ranks(wait.ranks), describe(wait.call), why,
                                 missing.size() == 1 ? "rank" : "ranks", list_ranks(missing));
  // The missing ones first: where they are is the answer.
  std::vector<int> shown = missing;
  for (int rank : wait.ranks) {
    if (std::find(missing.begin(), missing.end(), rank) == missing.end()) shown.push_back(rank);
  }
  if (shown.size() > kMaxRanksShown) shown.resize(kMaxRanksShown);
  for (int rank : shown) {
    what += fmt::format("\n    rank {} {}{}", rank, recorder(rank).summary(), has_left(rank) ? "; it has ended" : "");
  }
  fail(wait.rank,
       Error{code, std::move(what), "",
             "all ranks of a group make the same calls in the same order: look at where the missing ranks are; "
             "if they are only slow, raise comm.deadline"});
}

void World::wait(Counter& counter, const Wait& wait) {
  if (wait.ready()) return;
  for (int i = 0; i < num_spins_; ++i) {
    cpu_pause();
    if (wait.ready()) return;
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  while (true) {
    const uint32_t seen = counter.value();
    if (wait.ready()) return;
    check_alive();
    const Clock::duration waited = Clock::now() - start;
    const Clock::duration left = wait.call.deadline - waited;
    if (left <= Clock::duration::zero()) {
      give_up(wait, ErrorCode::comm_deadline,
              fmt::format("waited {:.1f} s, the deadline", std::chrono::duration<double>(waited).count()));
    }
    if (waited >= kSleepSlice) {
      const std::vector<int> missing = wait.missing();
      const bool in_vain = std::any_of(missing.begin(), missing.end(), [&](int rank) { return has_left(rank); });
      // What a rank did before it left may have come between the two looks.
      if (in_vain && !wait.ready()) give_up(wait, ErrorCode::comm_failed, "a rank ended without making this call");
    }
    counter.sleep(seen, std::min<Clock::duration>(left, kSleepSlice));
  }
}

std::string World::flight_records() const {
  std::string text;
  for (int i = 0; i < num_local_; ++i) {
    text += fmt::format("rank {} {}\n{}", first_rank_ + i, recorders_[i]->summary(), recorders_[i]->dump());
  }
  return text;
}

}  // namespace penteract::comm
