#include "penteract/parallel/expert_plan.h"

#include <ATen/ops/empty.h>

#include <numeric>

#include "penteract/base/check.h"

namespace penteract::parallel {
namespace {

at::Tensor to_tensor(const std::vector<int64_t>& values) {
  at::Tensor t = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), t.data_ptr<int64_t>());
  return t;
}

}  // namespace

ExpertPlan plan_experts(const at::Tensor& experts, const at::Tensor& valid, int64_t num_experts, const Groups& groups) {
  const int64_t num_tokens = experts.size(0), k = experts.size(1);
  const auto* expert = experts.data_ptr<int64_t>();
  const auto* ok = valid.data_ptr<bool>();
  ExpertPlan plan;

  std::vector<int64_t> mine(num_experts, 0);
  for (int64_t i = 0; i < num_tokens * k; ++i) {
    if (ok[i / k]) ++mine[expert[i]];
  }
  std::vector<int64_t> next(num_experts, 0);
  std::partial_sum(mine.begin(), mine.end() - 1, next.begin() + 1);
  const int64_t num_rows = std::accumulate(mine.begin(), mine.end(), int64_t{0});
  std::vector<int64_t> token_of_row(num_rows), row_of_choice(num_tokens * k, -1);
  for (int64_t i = 0; i < num_tokens * k; ++i) {
    if (!ok[i / k]) continue;
    const int64_t row = next[expert[i]]++;
    token_of_row[row] = i / k;
    row_of_choice[i] = row;
  }
  plan.token_of_row = to_tensor(token_of_row);
  plan.row_of_choice = to_tensor(row_of_choice);

  // counts[m][e] of every member of etp·ep (etp fastest: member = etp + etp_size · ep).
  const std::vector<int64_t> all = groups.etp_ep.all_gather_int64(mine, {.tag = "expert counts"});
  const int etp = groups.etp.size(), ep = groups.ep.size();
  const int64_t local = num_experts / ep;
  const int64_t first = groups.ep.index() * local;
  auto count = [&](int etp_index, int ep_index, int64_t e) {
    return all[(etp_index + int64_t{etp} * ep_index) * num_experts + e];
  };
  auto sum = [&](int etp_index, int ep_index, int64_t from) {
    int64_t n = 0;
    for (int64_t e = from; e < from + local; ++e) n += count(etp_index, ep_index, e);
    return n;
  };
  const int self = groups.etp.index();
  for (int peer = 0; peer < ep; ++peer) {
    plan.send_rows.push_back(sum(self, groups.ep.index(), peer * local));
    plan.recv_rows.push_back(sum(self, peer, first));
  }
  for (int t = 0; t < etp; ++t) {
    int64_t n = 0;
    for (int peer = 0; peer < ep; ++peer) n += sum(t, peer, first);
    plan.etp_rows.push_back(n);
  }

  // Rows arrive ordered by (etp member, ep member, expert); the products want (expert, etp member, ep member).
  plan.counts.assign(local, 0);
  for (int t = 0; t < etp; ++t) {
    for (int peer = 0; peer < ep; ++peer) {
      for (int64_t e = 0; e < local; ++e) plan.counts[e] += count(t, peer, first + e);
    }
  }
  std::vector<int64_t> place(local, 0);
  std::partial_sum(plan.counts.begin(), plan.counts.end() - 1, place.begin() + 1);
  const int64_t total = std::accumulate(plan.counts.begin(), plan.counts.end(), int64_t{0});
  std::vector<int64_t> to_expert(total), from_expert(total);
  int64_t arrived = 0;
  for (int t = 0; t < etp; ++t) {
    for (int peer = 0; peer < ep; ++peer) {
      for (int64_t e = 0; e < local; ++e) {
        for (int64_t i = count(t, peer, first + e); i > 0; --i) {
          from_expert[arrived] = place[e];
          to_expert[place[e]++] = arrived++;
        }
      }
    }
  }
  PENT_CHECK_EQ(arrived, total);
  plan.to_expert = to_tensor(to_expert);
  plan.from_expert = to_tensor(from_expert);
  return plan;
}

}  // namespace penteract::parallel
