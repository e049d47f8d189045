// Collectives on device tensors give the bits of the same collectives on the host, on ranks that share a device and on one
// rank a device; producers may write right after a call, and readers see what was published.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <numeric>

#include "penteract/base/check.h"
#include "penteract/base/rng.h"
#include "penteract/comm/world.h"
#include "penteract/cuda/open.h"

namespace penteract::comm {
namespace {

int num_ranks() { return cuda::num_devices() >= 2 ? 2 : 4; }

at::Tensor values(int rank, std::vector<int64_t> shape, at::ScalarType dtype) {
  at::Tensor t = at::empty(shape, at::kDouble);
  normal_range(philox_key(11, "rank " + std::to_string(rank)), 0, t.numel(), t.data_ptr<double>());
  return dtype == at::kLong ? (t * 1000).to(dtype) : t.to(dtype);
}

// Runs `fn` on host tensors and on device tensors; both must give equal tensors on every rank.
void compare(const std::function<std::vector<at::Tensor>(RankContext&, at::Device)>& fn) {
  WorldOptions options;
  options.deadline = std::chrono::seconds(60);
  options.device = or_throw(cuda::open_devices(num_ranks()));
  const Status status = run_rank_threads(num_ranks(), options, [&](RankContext& context) -> Status {
    const auto host = fn(context, at::kCPU), device = fn(context, context.device);
    PENT_CHECK_EQ(host.size(), device.size());
    for (size_t i = 0; i < host.size(); ++i) {
      PENT_CHECK(device[i].device() == context.device, "output {} is on {}", i, device[i].device().str());
      EXPECT_TRUE(device[i].cpu().equal(host[i])) << "output " << i << " of rank " << context.rank;
    }
    return {};
  });
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message());
}

TEST(CudaComm, ReductionsHaveTheBitsOfTheHost) {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong}) {
    for (const int64_t rows : {1, 3, 5000}) {
      compare([&](RankContext& c, at::Device device) {
        const int n = c.num_ranks;
        std::vector<at::Tensor> out;
        for (const bool maximum : {false, true}) {
          at::Tensor t = values(c.rank, {rows, 7}, dtype).to(device);
          maximum ? c.world.all_reduce_max(t) : c.world.all_reduce_sum(t);
          out.push_back(t);
        }
        const at::Tensor whole = values(c.rank, {rows * n, 3}, dtype).to(device);
        out.push_back(c.world.reduce_scatter_sum(whole));
        std::vector<int64_t> uneven(n, 1);
        uneven[n - 1] = rows * n - (n - 1);
        out.push_back(c.world.reduce_scatter_v(whole, uneven));
        return out;
      });
    }
  }
}

TEST(CudaComm, CopiesArriveWhole) {
  for (const int64_t rows : {0, 2, 4000}) {
    compare([&](RankContext& c, at::Device device) {
      const int n = c.num_ranks;
      std::vector<at::Tensor> out;
      const at::Tensor mine = values(c.rank, {rows, 5}, at::kBFloat16).to(device);
      out.push_back(c.world.all_gather(mine));
      std::vector<int64_t> sent(n), received(n);
      for (int i = 0; i < n; ++i) sent[i] = rows * (c.rank + i), received[i] = rows * (i + c.rank);
      const int64_t total = std::accumulate(sent.begin(), sent.end(), int64_t{0});
      out.push_back(c.world.all_to_all_v(values(c.rank, {total, 2}, at::kFloat).to(device), sent, received));
      at::Tensor root = values(c.rank, {rows + 1, 2}, at::kFloat).to(device);
      c.world.broadcast(root, n - 1);
      out.push_back(root);
      return out;
    });
  }
}

// The tensor is overwritten as soon as the call returned, many times in a row: nobody may see the next value.
TEST(CudaComm, WritersMayGoOnAfterTheCall) {
  compare([](RankContext& c, at::Device device) {
    at::Tensor t = at::full({200'000}, 0.0, at::TensorOptions().dtype(at::kFloat).device(device));
    at::Tensor sum = at::zeros_like(t);
    for (int i = 0; i < 50; ++i) {
      t.fill_(c.rank + 10 * i);
      sum.add_(c.world.all_gather(t).view({c.num_ranks, -1}).sum(0));
      t.fill_(-1e9);
    }
    return std::vector<at::Tensor>{sum};
  });
}

TEST(CudaComm, MessagesBothWaysAtOnce) {
  compare([](RankContext& c, at::Device device) {
    const int peer = c.rank ^ 1;
    std::vector<Handle> sends;
    std::vector<at::Tensor> out, sent;
    for (int i = 0; i < 20; ++i) {
      sent.push_back(values(100 * i + c.rank, {i == 0 ? 1 : 3000, 11}, at::kFloat).to(device));
      sends.push_back(c.world.send(sent.back(), peer, 1));
    }
    for (int i = 0; i < 20; ++i) {
      at::Tensor t = at::empty({i == 0 ? 1 : 3000, 11}, at::TensorOptions().dtype(at::kFloat).device(device));
      c.world.recv_into(t, peer, 1).wait();
      out.push_back(t);
    }
    for (auto& handle : sends) handle.wait();
    return out;
  });
}

}  // namespace
}  // namespace penteract::comm
