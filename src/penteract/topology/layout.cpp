#include "penteract/topology/layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "penteract/base/check.h"
#include "penteract/base/text.h"

namespace penteract::topology {
namespace {

constexpr int kMaxAxis = 1 << 20;

Error syntax(const std::string& piece, std::string what, std::string remedy) {
  return {ErrorCode::layout_syntax, std::move(what), fmt::format("layout \"{}\"", piece), std::move(remedy)};
}

Result<int> parse_count(std::string_view text, const std::string& piece, int least) {
  int value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size() || value < least || value > kMaxAxis) {
    return syntax(piece, fmt::format("\"{}\" is no whole number from {} to {}", text, least, kMaxAxis),
                  "write for example tp=2, split=2|1");
  }
  return value;
}

}  // namespace

std::string_view axis_name(Axis axis) {
  static constexpr std::string_view kNames[kNumAxes] = {"tp", "cp", "dp", "pp", "ep", "etp", "edp"};
  return kNames[static_cast<int>(axis)];
}

int Layout::size(Axis axis) const {
  switch (axis) {
    case Axis::tp: return tp;
    case Axis::cp: return cp;
    case Axis::dp: return dp;
    case Axis::pp: return pp;
    case Axis::ep: return ep;
    case Axis::etp: return etp;
    case Axis::edp: return edp;
  }
  PENT_CHECK(false, "axis {}", static_cast<int>(axis));
}

Result<std::vector<int>> parse_split(const std::string& text) {
  std::vector<int> split;
  for (const auto& piece : split_text(text, '|')) {
    PENT_ASSIGN(const int count, parse_count(trim(piece), "split=" + text, 0));
    split.push_back(count);
  }
  return split;
}

Result<LayoutRequest> parse_layout(const std::string& text) {
  LayoutRequest request;
  struct Key {
    const char* name;
    int* value;
  };
  const Key keys[] = {{"tp", &request.tp}, {"pp", &request.pp},   {"cp", &request.cp},   {"dp", &request.dp},
                      {"ep", &request.ep}, {"etp", &request.etp}, {"vpp", &request.vpp}, {"edp", &request.edp}};
  std::vector<std::string> seen;
  for (const auto& piece : split_text(text, ',')) {
    if (trim(text).empty()) return syntax(text, "is empty", "name the axes, for example tp=2,dp=2");
    const size_t equals = piece.find('=');
    if (equals == std::string::npos) return syntax(text, fmt::format("\"{}\" has no '='", piece), "write key=value");
    const std::string key(trim(std::string_view(piece).substr(0, equals)));
    const std::string value(trim(std::string_view(piece).substr(equals + 1)));
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      return syntax(text, fmt::format("\"{}\" stands twice", key), "name each axis once");
    }
    seen.push_back(key);
    bool known = false;
    for (const Key& k : keys) {
      if (key != k.name) continue;
      PENT_ASSIGN(*k.value, parse_count(value, text, 1));
      known = true;
    }
    if (key == "sp") {
      known = true;
      if (value == "on" || value == "true") request.sp = 1;
      else if (value == "off" || value == "false") request.sp = 0;
      else return syntax(text, fmt::format("sp is \"{}\"", value), "sp is on or off");
    } else if (key == "split") {
      known = true;
      if (value.empty()) return syntax(text, "split is empty", "write for example split=14|13");
      request.split = value;
    } else if (key == "schedule") {
      known = true;
      if (value.empty()) return syntax(text, "schedule is empty", "write for example schedule=1f1b");
      request.schedule = value;
    }
    if (!known) {
      const auto near =
          nearest_word(key, {"tp", "pp", "cp", "dp", "ep", "etp", "edp", "vpp", "sp", "split", "schedule"});
      return syntax(
          text, fmt::format("unknown key \"{}\"", key),
          near.empty() ? "keys: tp pp cp dp ep etp sp split vpp schedule" : fmt::format("did you mean \"{}\"?", near));
    }
  }
  return request;
}

Result<Layout> complete_layout(const LayoutRequest& request, int num_ranks) {
  Layout l;
  auto or_one = [](int n) { return n == 0 ? 1 : n; };
  l.tp = or_one(request.tp);
  l.cp = or_one(request.cp);
  l.pp = or_one(request.pp);
  l.ep = or_one(request.ep);
  l.etp = or_one(request.etp);
  l.vpp = or_one(request.vpp);
  if (!request.schedule.empty()) l.schedule = request.schedule;
  const int64_t rest = int64_t{l.tp} * l.cp * l.pp;  // at most 2^60
  if (rest > kMaxAxis || int64_t{l.pp} * l.vpp > kMaxAxis || int64_t{l.ep} * l.etp > kMaxAxis) {
    return Error{ErrorCode::layout_ranks,
                 fmt::format("tp·cp·pp = {}·{}·{}, pp·vpp = {}·{} and ep·etp = {}·{} must each be at most {}", l.tp,
                             l.cp, l.pp, l.pp, l.vpp, l.ep, l.etp, kMaxAxis),
                 "layout", "choose smaller axes"};
  }
  const int64_t world = num_ranks > 0 ? num_ranks : rest * or_one(request.dp);
  const int64_t product = rest * (request.dp > 0 ? request.dp : std::max<int64_t>(1, world / rest));
  if (world > kMaxAxis) {
    return Error{ErrorCode::layout_ranks,
                 fmt::format("tp·cp·dp·pp = {}·{}·{}·{} = {}, but a run has at most {} ranks", l.tp, l.cp,
                             or_one(request.dp), l.pp, world, kMaxAxis),
                 "layout", "choose smaller axes"};
  }
  if (product != world) {
    std::string remedy;
    if (world % rest == 0)
      remedy = fmt::format("with tp={} cp={} pp={}, {} ranks need dp={}", l.tp, l.cp, l.pp, world, world / rest);
    else if (world < rest) remedy = fmt::format("use {} ranks, or smaller axes", rest);
    else
      remedy = fmt::format("with tp={} cp={} pp={}, use {} ranks with dp={} or {} ranks with dp={}", l.tp, l.cp, l.pp,
                           rest * (world / rest), world / rest, rest * (world / rest + 1), world / rest + 1);
    return Error{ErrorCode::layout_ranks,
                 fmt::format("tp·cp·dp·pp = {}·{}·{}·{} = {}, but the run has {} ranks", l.tp, l.cp, product / rest,
                             l.pp, product, world),
                 "layout", remedy};
  }
  l.dp = static_cast<int>(world / rest);
  const int plane = l.tp * l.cp * l.dp;
  if (plane % (l.ep * l.etp) != 0) {
    std::vector<int> fits;
    for (int ep = 1; ep * l.etp <= plane; ++ep) {
      if (plane % (ep * l.etp) == 0) fits.push_back(ep);
    }
    return Error{ErrorCode::layout_ranks,
                 fmt::format("etp·ep = {}·{} = {} does not divide tp·cp·dp = {}·{}·{} = {}", l.etp, l.ep, l.etp * l.ep,
                             l.tp, l.cp, l.dp, plane),
                 "layout",
                 fits.empty() ? fmt::format("choose etp that divides {}", plane)
                              : fmt::format("with etp={}, ep can be {}", l.etp, fmt::join(fits, ", "))};
  }
  l.edp = plane / (l.ep * l.etp);
  if (request.edp > 0 && request.edp != l.edp) {
    return Error{ErrorCode::layout_ranks,
                 fmt::format("edp={} does not follow: tp·cp·dp ÷ (etp·ep) = {}·{}·{} ÷ ({}·{}) = {}", request.edp, l.tp,
                             l.cp, l.dp, l.etp, l.ep, l.edp),
                 "layout", "leave edp out: it follows from the others"};
  }
  if (request.sp == 1 && l.tp == 1) {
    return Error{ErrorCode::layout_illegal, "sp is on but tp is 1: there is nothing to split the sequence over",
                 "layout", "leave sp out, or set tp to 2 or more"};
  }
  l.sp = request.sp == -1 ? l.tp > 1 : request.sp == 1;
  if (request.split == "cost") {
    return Error{ErrorCode::recipe_unsupported, "split = \"cost\" is not supported yet", "layout.split",
                 "give the layers of each stage, for example \"14|13\", or leave split out"};
  }
  if (!request.split.empty()) {
    PENT_ASSIGN(l.split, parse_split(request.split));
    if (static_cast<int>(l.split.size()) != l.num_stages()) {
      return Error{ErrorCode::layout_illegal,
                   fmt::format("split \"{}\" names {} stages, but pp·vpp = {}·{} = {}", request.split, l.split.size(),
                               l.pp, l.vpp, l.num_stages()),
                   "layout.split", fmt::format("give {} numbers separated by |", l.num_stages())};
    }
  }
  return l;
}

std::string to_string(const Layout& l) {
  std::string text = fmt::format("tp={},pp={},cp={},dp={},ep={},etp={},edp={},sp={}", l.tp, l.pp, l.cp, l.dp, l.ep,
                                 l.etp, l.edp, l.sp ? "on" : "off");
  if (!l.split.empty()) text += fmt::format(",split={}", fmt::join(l.split, "|"));
  if (l.vpp > 1) text += fmt::format(",vpp={}", l.vpp);
  if (l.schedule != "1f1b") text += fmt::format(",schedule={}", l.schedule);
  return text;
}

Result<std::vector<int>> layers_per_stage(const Layout& layout, int num_layers) {
  const int stages = layout.num_stages();
  if (layout.split.empty()) {
    std::vector<int> counts(stages, num_layers / stages);
    for (int i = 0; i < num_layers % stages; ++i) ++counts[i];
    return counts;
  }
  PENT_CHECK_EQ(static_cast<int>(layout.split.size()), stages);
  const int sum = std::accumulate(layout.split.begin(), layout.split.end(), 0);
  if (sum != num_layers) {
    return Error{
        ErrorCode::layout_illegal,
        fmt::format("split {} adds up to {} layers, the model has {}", fmt::join(layout.split, "|"), sum, num_layers),
        "layout.split", fmt::format("the {} numbers must add up to {}", stages, num_layers)};
  }
  return layout.split;
}

}  // namespace penteract::topology
