#include "penteract/comm/world.h"

#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>
#include <c10/util/Exception.h>
#include <pthread.h>

#include <algorithm>
#include <new>
#include <numeric>
#include <system_error>
#include <thread>

#include "penteract/base/check.h"
#include "penteract/comm/device.h"
#include "penteract/comm/fake_transport.h"
#include "penteract/comm/group_state.h"
#include "penteract/comm/ledger_allocator.h"
#include "penteract/comm/thread_transport.h"
#include "penteract/comm/world_state.h"

namespace penteract::comm {
namespace {

constexpr const char* kMemoryRemedy =
    "lower batch.micro or data.seq_length, cut the model over more ranks, or raise the memory limit";

Group form_group(const std::shared_ptr<World>& world, int rank, const std::vector<int>& ranks,
                 const std::string& name) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    PENT_CHECK(ranks[i] >= 0 && ranks[i] < world->num_ranks() && (i == 0 || ranks[i - 1] < ranks[i]),
               "group {}: member {} is rank {}", name, i, ranks[i]);
  }
  const auto own = std::find(ranks.begin(), ranks.end(), rank);
  PENT_CHECK(own != ranks.end(), "rank {} is no member of group {}", rank, name);
  auto state = std::make_shared<GroupState>();
  state->world = world;
  state->hub = world->hub(ranks);
  state->ranks = ranks;
  state->index = static_cast<int>(own - ranks.begin());
  state->name = &world->keep_name(name);
  if (world->is_fake()) {
    state->transport = std::make_unique<FakeTransport>();
  } else {
    state->transport =
        std::make_unique<ThreadTransport>(ThreadEnd{world, state->hub, ranks, state->index, state->name});
  }
  return Group(std::move(state));
}

// What a rank does with everything that it may throw as an Error.
Status call_rank(const std::function<Status()>& fn) {
  try {
    return fn();
  } catch (const ErrorException& e) {
    return e.error();
  } catch (const c10::OutOfMemoryError& e) {
    return Error{ErrorCode::out_of_memory, e.what_without_backtrace(), "", kMemoryRemedy};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "the machine has no memory left", "", kMemoryRemedy};
  } catch (const c10::Error& e) {
    return Error{ErrorCode::defect, e.what_without_backtrace(), "", ""};
  } catch (const std::exception& e) {
    return Error{ErrorCode::defect, e.what(), "", ""};
  } catch (...) {
    return Error{ErrorCode::defect, "an exception of unknown type", "", ""};
  }
}

// Enters the rank's device, where there is one, and calls its function; an error ends the world.
Status enter_and_call(const std::shared_ptr<World>& world, int rank, MemoryAccount& host_account,
                      const std::function<Status(RankContext&)>& fn) {
  std::unique_ptr<DeviceEnd> end;
  if (world->options().device) end = world->options().device->enter(rank);
  world->set_device_end(rank, end.get());
  std::vector<int> all(world->num_ranks());
  std::iota(all.begin(), all.end(), 0);
  RankContext context{rank,
                      world->num_ranks(),
                      form_group(world, rank, all, "world"),
                      end ? end->memory() : host_account,
                      end ? end->device() : at::Device(at::kCPU),
                      world};
  Status status = call_rank([&] { return fn(context); });
  // Before the device is left, which waits for work that waits for this rank.
  if (!status.ok()) world->abort(rank, status.take_error());
  return {};
}

void run_rank(const std::shared_ptr<World>& world, int rank, int num_threads,
              const std::function<Status(RankContext&)>& fn) {
  pthread_setname_np(pthread_self(), fmt::format("rank {}", rank).c_str());
  set_current_rank(rank);
  const std::shared_ptr<MemoryAccount> account = lease_account();
  account->set_limit_bytes(world->options().memory_limit_bytes);
  set_current_account(account.get());
  at::set_num_threads(num_threads);
  // Backward, and the collectives in it, run in the rank's own thread.
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  Status status = call_rank([&] { return enter_and_call(world, rank, *account, fn); });
  // After another rank's failure this is its echo, and abort ignores it.
  if (!status.ok()) world->abort(rank, status.take_error());
  world->leave(rank);
  set_current_account(nullptr);
  set_current_rank(-1);
}

Status run_world(int num_ranks, int first_rank, int num_local, WorldOptions options,
                 const std::function<Status(RankContext&)>& fn) {
  PENT_CHECK(current_rank() < 0, "a rank thread starts no ranks");
  install_ledger_allocator();
  const int num_cores = static_cast<int>(std::thread::hardware_concurrency());
  const int num_threads = options.intra_op_threads > 0 ? options.intra_op_threads : std::max(1, num_cores / num_local);
  auto world = std::make_shared<World>(num_ranks, first_rank, num_local, std::move(options));
  std::vector<std::thread> threads;
  try {
    for (int i = 0; i < num_local; ++i) {
      threads.emplace_back([&, i] { run_rank(world, first_rank + i, num_threads, fn); });
    }
  } catch (const std::system_error& e) {
    world->abort(
        first_rank + static_cast<int>(threads.size()),
        Error{ErrorCode::comm_failed, fmt::format("cannot start a thread of {} ranks: {}", num_local, e.what()), "",
              "use fewer ranks a process, or raise the limits on threads and memory"});
  }
  for (std::thread& thread : threads) thread.join();
  std::optional<Error> cause = world->first_cause();
  if (!cause) return {};
  if (world->options().on_flight_records) world->options().on_flight_records(world->records_at_abort());
  return std::move(*cause);
}

}  // namespace

Group RankContext::make_group(const std::vector<int>& ranks, std::string name) const {
  return form_group(owner, rank, ranks, name);
}
uint64_t RankContext::peak_reserved_bytes() const {
  const DeviceEnd* end = owner->device_end(rank);
  return end != nullptr ? end->reserved().peak_reserved_bytes : 0;
}
std::vector<Traffic> RankContext::traffic() const { return owner->recorder(rank).traffic(); }
std::string RankContext::flight_records() const { return owner->flight_records(); }

Status run_rank_threads(int num_ranks, WorldOptions options, const std::function<Status(RankContext&)>& fn) {
  PENT_CHECK_GE(num_ranks, 1);
  return run_world(num_ranks, 0, num_ranks, std::move(options), fn);
}

Status run_fake_rank(int rank, int num_ranks, WorldOptions options, const std::function<Status(RankContext&)>& fn) {
  PENT_CHECK(num_ranks >= 1 && rank >= 0 && rank < num_ranks, "rank {} of {}", rank, num_ranks);
  return run_world(num_ranks, rank, 1, std::move(options), fn);
}

}  // namespace penteract::comm
