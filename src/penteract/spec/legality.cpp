#include "penteract/spec/legality.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace penteract::spec {
namespace {

using topology::Layout;

// What is wrong with the layout, or "".
std::string problem_of(const ModelSpec& m, const Layout& l, int64_t global_batch) {
  if (m.num_heads % l.tp != 0)
    return fmt::format("num_attention_heads = {} does not divide by tp = {}", m.num_heads, l.tp);
  if (m.num_kv_heads % l.tp != 0 && l.tp % m.num_kv_heads != 0) {
    return fmt::format("num_key_value_heads = {} neither divides by tp = {} nor divides it", m.num_kv_heads, l.tp);
  }
  if (m.vocab_size > 0 && m.vocab_size < l.tp)
    return fmt::format("vocab_size = {} is below tp = {}", m.vocab_size, l.tp);
  const bool has_dense = std::count(m.moe_layers.begin(), m.moe_layers.end(), false) > 0;
  if (has_dense && m.intermediate_size % l.tp != 0) {
    return fmt::format("intermediate_size = {} does not divide by tp = {}", m.intermediate_size, l.tp);
  }
  if (m.has_experts()) {
    if (m.num_experts % l.ep != 0)
      return fmt::format("num_experts = {} does not divide by ep = {}", m.num_experts, l.ep);
    if (m.moe_intermediate_size % l.etp != 0) {
      return fmt::format("moe_intermediate_size = {} does not divide by etp = {}", m.moe_intermediate_size, l.etp);
    }
    if (l.tp > 1 && !l.sp) return fmt::format("experts with tp = {} need sequence parallelism, but sp is off", l.tp);
  } else if (l.ep > 1 || l.etp > 1) {
    return fmt::format("the model has no experts, but ep = {} and etp = {}", l.ep, l.etp);
  }
  if (l.vpp > 1) return fmt::format("vpp = {}: virtual stages are not supported in this version", l.vpp);
  if (l.schedule != "1f1b") return fmt::format("schedule \"{}\" is not known; 1f1b is", l.schedule);
  if (const auto stages = topology::layers_per_stage(l, m.num_layers); !stages.ok()) return stages.error().what;
  if (global_batch > 0 && global_batch % l.dp != 0) {
    return fmt::format("the global batch of {} sequences does not divide by dp = {}", global_batch, l.dp);
  }
  return "";
}

double distance(const Layout& a, const Layout& b) {
  auto d = [](int x, int y) { return std::fabs(std::log2(static_cast<double>(x) / y)); };
  return d(a.tp, b.tp) + d(a.cp, b.cp) + d(a.dp, b.dp) + d(a.pp, b.pp) + d(a.ep, b.ep) + d(a.etp, b.etp) +
         (a.sp != b.sp) * 0.5;
}

}  // namespace

std::vector<Layout> nearest_layouts(const ModelSpec& m, const Layout& wanted, int64_t global_batch, size_t count) {
  const int n = wanted.num_ranks();
  std::vector<int> divisors;
  for (int d = 1; d <= n; ++d) {
    if (n % d == 0) divisors.push_back(d);
  }
  std::vector<Layout> legal;
  for (int tp : divisors) {
    for (int cp : divisors) {
      for (int pp : divisors) {
        if (n % (int64_t{tp} * cp * pp) != 0) continue;
        if (pp > m.num_layers && pp != wanted.pp) continue;  // legal, but no advice: a stage without layers
        const int plane = n / pp;
        for (int ep : divisors) {
          for (int etp : divisors) {
            if (plane % (int64_t{ep} * etp) != 0) continue;
            if (!m.has_experts() && ep * etp > 1) continue;
            Layout l;
            l.tp = tp, l.cp = cp, l.pp = pp, l.dp = plane / (tp * cp), l.ep = ep, l.etp = etp,
            l.edp = plane / (ep * etp);
            l.sp = tp > 1 && (m.has_experts() || wanted.sp || wanted.tp == 1);
            if (problem_of(m, l, global_batch).empty()) legal.push_back(l);
          }
        }
      }
    }
  }
  std::stable_sort(legal.begin(), legal.end(),
                   [&](const Layout& a, const Layout& b) { return distance(a, wanted) < distance(b, wanted); });
  if (legal.size() > count) legal.resize(count);
  return legal;
}

Status check_layout(const ModelSpec& m, const Layout& layout, int64_t global_batch) {
  const std::string problem = problem_of(m, layout, global_batch);
  if (problem.empty()) return {};
  std::vector<std::string> near;
  for (const Layout& l : nearest_layouts(m, layout, global_batch, 3)) near.push_back(topology::to_string(l));
  return Error{ErrorCode::layout_illegal, problem, fmt::format("layout {}", topology::to_string(layout)),
               near.empty() ? fmt::format("no layout of {} ranks fits this model", layout.num_ranks())
                            : fmt::format("nearest layouts that work: {}", fmt::join(near, "; "))};
}

}  // namespace penteract::spec
