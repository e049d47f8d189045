// The c10 CPU allocator that charges the allocating rank: a 64-byte header before the data names the account and kind,
// so a block freed in any thread credits its owner. Large blocks are kept and reused: a fresh mapping costs its page
// faults each time. A charge that fails (limit, injected failure) throws c10::OutOfMemoryError with the account's state.
// Thread-safety: all functions; install before the threads that allocate.
#pragma once

#include <cstdint>
#include <memory>

#include "penteract/base/memory_ledger.h"

namespace penteract::comm {

// Takes over ATen's CPU storage, once a process; later calls do nothing.
void install_ledger_allocator();

// Free blocks kept for reuse, of the whole process; by default at most 4 GiB and an eighth of the machine's memory.
uint64_t cached_block_bytes();
void set_max_cached_block_bytes(uint64_t bytes);

// An account that outlives every block charged to it, also after the last shared_ptr is gone.
std::shared_ptr<MemoryAccount> lease_account();

}  // namespace penteract::comm
