#include "penteract/parallel/expert_plan.h"

#include <ATen/ops/empty.h>

#include <numeric>

#include "penteract/base/check.h"

namespace penteract::parallel {
namespace {

// Lists as tensors: parts of one, so that a device gets one copy.
std::vector<at::Tensor> to_tensors(const std::vector<std::vector<int64_t>>& lists, at::Device device) {
  std::vector<int64_t> sizes;
  for (const auto& list : lists) sizes.push_back(static_cast<int64_t>(list.size()));
  const at::Tensor all = at::empty({std::accumulate(sizes.begin(), sizes.end(), int64_t{0})}, at::kLong);
  auto* next = all.data_ptr<int64_t>();
  for (const auto& list : lists) next = std::copy(list.begin(), list.end(), next);
  return all.to(device).split_with_sizes(sizes);
}

}  // namespace

ExpertPlan plan_experts(const at::Tensor& experts, const at::Tensor& valid, int64_t num_experts, const Groups& groups) {
  const int64_t num_tokens = experts.size(0), k = experts.size(1);
  // The choices on the host, -1 for those of pads: one copy a layer.
  const at::Tensor choices = experts.masked_fill(valid.logical_not().unsqueeze(1), -1).cpu();
  const auto* expert = choices.data_ptr<int64_t>();
  ExpertPlan plan;

  std::vector<int64_t> mine(num_experts, 0);
  for (int64_t i = 0; i < num_tokens * k; ++i) {
    if (expert[i] >= 0) ++mine[expert[i]];
  }
  std::vector<int64_t> next(num_experts, 0);
  std::partial_sum(mine.begin(), mine.end() - 1, next.begin() + 1);
  const int64_t num_rows = std::accumulate(mine.begin(), mine.end(), int64_t{0});
  std::vector<int64_t> token_of_row(num_rows), row_of_choice(num_tokens * k, -1);
  for (int64_t i = 0; i < num_tokens * k; ++i) {
    if (expert[i] < 0) continue;
    const int64_t row = next[expert[i]]++;
    token_of_row[row] = i / k;
    row_of_choice[i] = row;
  }

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
  const auto tensors = to_tensors({token_of_row, row_of_choice, to_expert, from_expert}, experts.device());
  plan.token_of_row = tensors[0];
  plan.row_of_choice = tensors[1];
  plan.to_expert = tensors[2];
  plan.from_expert = tensors[3];
  return plan;
}

}  // namespace penteract::parallel
