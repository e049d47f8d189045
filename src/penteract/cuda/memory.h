// Which rank holds how much of a device: the caching allocator reports every block and segment with its stream, and the
// stream belongs to a rank. Blocks go to the rank's MemoryAccount by the kind of the allocating thread, in the sizes that
// the allocator counts. Thread-safety: all functions.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>

#include "penteract/base/memory_ledger.h"
#include "penteract/comm/device.h"

namespace penteract::cuda {

struct RankMemory {
  std::shared_ptr<MemoryAccount> account;
  std::atomic<uint64_t> reserved_bytes{0}, peak_reserved_bytes{0};
};

// From now on what is allocated on the stream belongs to the returned rank. Installs the hook, once a process.
std::shared_ptr<RankMemory> own_stream(cudaStream_t stream);
// The stream is about to be destroyed: its number may come again for another one. Blocks still charged stay so.
void disown_stream(cudaStream_t stream);

}  // namespace penteract::cuda
