#include "penteract/checkpoint/save.h"

#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "penteract/base/log.h"
#include "penteract/checkpoint/agree.h"
#include "penteract/checkpoint/retention.h"

namespace penteract::checkpoint {
namespace {

// A part record as numbers: two sizes and the two halves of the checksum.
std::vector<int64_t> pack(const PartRecord& part) {
  std::vector<int64_t> numbers = {static_cast<int64_t>(part.catalog_bytes), static_cast<int64_t>(part.data_bytes)};
  for (const size_t half : {size_t{0}, size_t{16}}) {
    uint64_t bits = 0;
    const char* first = part.catalog_checksum.data() + half;
    std::from_chars(first, first + 16, bits, 16);
    numbers.push_back(static_cast<int64_t>(bits));
  }
  return numbers;
}

PartRecord unpack(int rank, const int64_t* numbers) {
  return {rank, static_cast<uint64_t>(numbers[0]),
          fmt::format("{:016x}{:016x}", static_cast<uint64_t>(numbers[2]), static_cast<uint64_t>(numbers[3])),
          static_cast<uint64_t>(numbers[1])};
}

constexpr size_t kPackedNumbers = 4;

}  // namespace

Status save(const comm::Group& group, const std::string& checkpoints_dir, SharedState state,
            const std::vector<Piece>& mine, int keep) {
  const bool leads = group.index() == 0;
  state.num_ranks = group.size();
  std::optional<StepTransaction> transaction;
  Status status;
  if (leads) {
    auto begun = StepTransaction::begin(checkpoints_dir, state.step);
    if (begun.ok()) {
      transaction = std::move(begun).value();
    } else {
      status = begun.take_error();
    }
  }
  // Every way out below passes the same collectives on all ranks.
  status = agree(group, status);
  if (!status.ok()) return status;

  PartRecord part;
  auto written =
      write_part(temporary_directory(checkpoints_dir, state.step), state.step, group.index(), group.size(), mine);
  if (written.ok()) {
    part = std::move(written).value();
  } else {
    status = written.take_error();
  }
  status = agree(group, status);
  if (status.ok()) {
    const std::vector<int64_t> numbers = group.all_gather_int64(pack(part), {.tag = "checkpoint parts"});
    if (leads) {
      std::vector<PartRecord> parts;
      for (int i = 0; i < group.size(); ++i)
        parts.push_back(unpack(i, &numbers[static_cast<size_t>(i) * kPackedNumbers]));
      const Status committed = transaction->commit(state, std::move(parts));
      if (!transaction->committed()) {
        status = committed;
      } else {
        // The step is whole and found by its name: what goes wrong now concerns other files.
        for (const Status& after : {committed, retain_steps(checkpoints_dir, keep)}) {
          if (!after.ok()) log_warning("step {} is saved, but: {}", state.step, after.error().message());
        }
      }
    }
    status = agree(group, status);
  }
  if (!status.ok() && leads) transaction->abandon();
  return status;
}

}  // namespace penteract::checkpoint
