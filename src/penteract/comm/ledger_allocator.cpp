#include "penteract/comm/ledger_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "penteract/base/check.h"
#include "penteract/base/text.h"
#include "penteract/comm/block_cache.h"

namespace penteract::comm {
namespace {

constexpr size_t kHeaderBytes = 64;
constexpr size_t kLargeBytes = size_t{1} << 20;
constexpr uint64_t kMagic = 0x70656e746c656467;

struct Header {
  MemoryAccount* account;
  size_t charged_bytes;
  size_t class_bytes;  // 0: a small block of malloc
  uint64_t magic;
  MemoryKind kind;
};
static_assert(sizeof(Header) <= kHeaderBytes);

uint64_t default_cached_bytes() {
  const uint64_t machine_bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  return std::min<uint64_t>(machine_bytes / 8, uint64_t{4} << 30);
}

// What the process has one of: storages may be freed while it exits, so it is never destroyed.
struct Ledger {
  BlockCache cache{default_cached_bytes()};
  std::mutex mutex;
  std::vector<std::unique_ptr<MemoryAccount>> idle_accounts;  // guarded by mutex
};
Ledger& ledger() {
  static Ledger* const instance = new Ledger;
  return *instance;
}

[[noreturn]] void out_of_memory(const MemoryAccount* account, MemoryKind kind, size_t size_bytes) {
  std::string text = fmt::format("cannot allocate {} of {}", format_bytes(size_bytes), memory_kind_name(kind));
  if (account != nullptr) {
    const uint64_t limit_bytes = account->limit_bytes();
    text += fmt::format(": {} allocated, limit {}, peak {} (", format_bytes(account->current_bytes()),
                        limit_bytes == 0 ? "none" : format_bytes(limit_bytes), format_bytes(account->peak_bytes()));
    for (int i = 0; i < kNumMemoryKinds; ++i) {
      const auto each = static_cast<MemoryKind>(i);
      text += fmt::format("{}{} {}", i == 0 ? "" : ", ", memory_kind_name(each),
                          format_bytes(account->current_bytes(each)));
    }
    text += ")";
  }
  text += fmt::format("; free blocks kept by the process: {}, the largest {}",
                      format_bytes(ledger().cache.cached_bytes()), format_bytes(ledger().cache.largest_cached_bytes()));
  C10_THROW_ERROR(OutOfMemoryError, text);
}

void free_block(void* data) {
  if (data == nullptr) return;
  std::byte* block = static_cast<std::byte*>(data) - kHeaderBytes;
  Header* header = reinterpret_cast<Header*>(block);
  if (header->magic != kMagic) std::abort();  // written before its start, or not ours: nothing is safe any more
  header->magic = 0;
  if (header->account != nullptr) header->account->credit(header->kind, header->charged_bytes);
  if (header->class_bytes == 0) {
    std::free(block);
  } else {
    ledger().cache.give(block, header->class_bytes);
  }
}

class LedgerAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t size_bytes) override {
    const c10::Device device(c10::DeviceType::CPU);
    if (size_bytes == 0) return {nullptr, nullptr, &free_block, device};
    MemoryAccount* account = current_account();
    const MemoryKind kind = current_memory_kind();
    if (size_bytes > (SIZE_MAX >> 2)) out_of_memory(account, kind, size_bytes);
    const size_t total_bytes = size_bytes + kHeaderBytes;
    // The header stands beyond the class: sizes that are powers of two are common and waste nothing.
    const size_t class_bytes = size_bytes >= kLargeBytes ? BlockCache::size_class(size_bytes) + kHeaderBytes : 0;
    if (account != nullptr && !account->charge(kind, size_bytes)) out_of_memory(account, kind, size_bytes);
    void* block = nullptr;
    if (class_bytes != 0) {
      block = ledger().cache.take(class_bytes);
    } else if (posix_memalign(&block, kHeaderBytes, total_bytes) != 0) {
      block = nullptr;
    }
    if (block == nullptr) {
      if (account != nullptr) account->credit(kind, size_bytes);
      out_of_memory(account, kind, size_bytes);
    }
    new (block) Header{account, size_bytes, class_bytes, kMagic, kind};
    void* data = static_cast<std::byte*>(block) + kHeaderBytes;
    return {data, data, &free_block, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, size_t size_bytes) const override {
    default_copy_data(to, from, size_bytes);
  }
};

}  // namespace

void install_ledger_allocator() {
  static const bool installed = [] {
    c10::SetAllocator(c10::DeviceType::CPU, new LedgerAllocator, UINT8_MAX);
    return true;
  }();
  (void)installed;
}

uint64_t cached_block_bytes() { return ledger().cache.cached_bytes(); }
void set_max_cached_block_bytes(uint64_t bytes) { ledger().cache.set_max_cached_bytes(bytes); }

std::shared_ptr<MemoryAccount> lease_account() {
  std::unique_ptr<MemoryAccount> account;
  {
    // An account that blocks are still charged to waits until they are freed.
    std::lock_guard lock(ledger().mutex);
    auto& idle = ledger().idle_accounts;
    const auto unused =
        std::find_if(idle.begin(), idle.end(), [](const auto& each) { return each->current_bytes() == 0; });
    if (unused != idle.end()) {
      account = std::move(*unused);
      idle.erase(unused);
    }
  }
  if (!account) account = std::make_unique<MemoryAccount>();
  account->set_limit_bytes(0);
  account->fail_charge_in(0);
  account->reset_peak();
  return {account.release(), [](MemoryAccount* done) {
            std::lock_guard lock(ledger().mutex);
            ledger().idle_accounts.emplace_back(done);
          }};
}

}  // namespace penteract::comm
