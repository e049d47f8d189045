#include "penteract/spec/recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "penteract/base/check.h"
#include "penteract/base/file.h"
#include "penteract/base/toml.h"

namespace penteract::spec {
namespace {

constexpr int64_t kMaxSteps = int64_t{1} << 40;
constexpr int64_t kMaxSequence = int64_t{1} << 30;

// Reads a key that must be one of `names`; `out` gets the index.
Status get_choice(ConfigTable& table, const std::string& key, const std::vector<std::string>& names, int& out) {
  std::string text = names[out];
  PENT_TRY(table.get(key, text));
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == text) {
      out = static_cast<int>(i);
      return {};
    }
  }
  return table.error(key, ErrorCode::recipe_range, fmt::format("is \"{}\"", text),
                     fmt::format("choose one of {}", fmt::join(names, ", ")));
}

template <class Enum>
Status get_enum(ConfigTable& table, const std::string& key, const std::vector<std::string>& names, Enum& out) {
  int index = static_cast<int>(out);
  PENT_TRY(get_choice(table, key, names, index));
  out = static_cast<Enum>(index);
  return {};
}

// A feature of the interface that this version refuses.
Status refuse(ConfigTable& table, const std::string& key, bool asked_for, const std::string& what) {
  if (!asked_for) return {};
  return table.error(key, ErrorCode::recipe_unsupported, what + " is not supported in this version",
                     "leave the key out");
}

Status read_run(ConfigTable& t, RunSpec& run) {
  PENT_TRY(t.require("dir"));
  PENT_TRY(t.get("dir", run.dir));
  if (run.dir.empty()) return t.error("dir", ErrorCode::recipe_range, "is empty", "name a folder");
  int64_t seed = static_cast<int64_t>(run.seed);
  PENT_TRY(t.get("seed", seed, 0));
  run.seed = static_cast<uint64_t>(seed);
  PENT_TRY(t.get("ranks", run.ranks, 1, 1 << 20));
  return t.get("threads", run.threads, 1, 4096);
}

Status read_layout(ConfigTable& t, RunSpec& run, bool ranks_given, bool ranks_by_set, const LayoutOverride& override) {
  topology::LayoutRequest request;
  if (override.ranks > 0) run.ranks = override.ranks, ranks_given = true;
  constexpr int kMax = 1 << 20;
  PENT_TRY(t.get("tp", request.tp, 1, kMax));
  PENT_TRY(t.get("pp", request.pp, 1, kMax));
  PENT_TRY(t.get("cp", request.cp, 1, kMax));
  PENT_TRY(t.get("dp", request.dp, 1, kMax));
  PENT_TRY(t.get("ep", request.ep, 1, kMax));
  PENT_TRY(t.get("etp", request.etp, 1, kMax));
  PENT_TRY(t.get("vpp", request.vpp, 1, kMax));
  PENT_TRY(t.get("split", request.split));
  PENT_TRY(t.get("schedule", request.schedule));
  for (const auto& [key, text] : {std::pair("split", &request.split), std::pair("schedule", &request.schedule)}) {
    if (t.has(key) && text->empty()) return t.error(key, ErrorCode::recipe_range, "is empty", "leave the key out");
  }
  if (t.has("sp")) {
    bool sp = false;
    PENT_TRY(t.get("sp", sp));
    request.sp = sp ? 1 : 0;
  } else {
    t.find("sp");
  }
  if (!override.layout.empty()) {
    for (const auto& [key, value] : t.values()) {
      if (value.where.starts_with("--set")) {
        return t.error(key, ErrorCode::recipe_key, "would be ignored: --layout replaces the whole of [layout]",
                       "write it into --layout");
      }
    }
    PENT_ASSIGN(request, topology::parse_layout(override.layout));
    // What the command line says of the ranks counts beside --layout, the recipe's number does not.
    ranks_given = override.ranks > 0 || ranks_by_set;
  }
  PENT_ASSIGN(run.layout, topology::complete_layout(request, ranks_given ? run.ranks : 0));
  run.ranks = run.layout.num_ranks();
  return {};
}

Status read_sources(ConfigTable& t, const std::string& key, std::vector<DataSource>& out) {
  const ConfigValue* value = t.find(key);
  if (!value) return {};
  auto bad = [&](const std::string& what) {
    return t.error(key, ErrorCode::recipe_type, what, "write a list of paths, or of { path = …, weight = … }");
  };
  if (value->kind != ConfigValue::Kind::list) return bad(fmt::format("is {}, expected a list", value->kind_name()));
  for (const auto& item : value->items) {
    DataSource source;
    if (item.kind == ConfigValue::Kind::string) {
      source.path = item.string;
    } else if (item.kind == ConfigValue::Kind::table) {
      for (const auto& [field, v] : item.fields) {
        if (field == "path" && v.kind == ConfigValue::Kind::string) source.path = v.string;
        else if (field == "weight" && v.kind == ConfigValue::Kind::floating) source.weight = v.floating;
        else if (field == "weight" && v.kind == ConfigValue::Kind::integer)
          source.weight = static_cast<double>(v.integer);
        else return bad(fmt::format("has the field \"{}\" that is unknown or of a wrong type", field));
      }
      if (source.weight && (!(*source.weight > 0) || *source.weight > 1e12))
        return bad(fmt::format("has the weight {}", *source.weight));
    } else {
      return bad(fmt::format("holds {}", item.kind_name()));
    }
    if (source.path.empty()) return bad("holds an empty path");
    out.push_back(std::move(source));
  }
  return {};
}

Status read_data(ConfigTable& t, DataSpec& data) {
  PENT_TRY(t.get("task", data.task));
  PENT_TRY(refuse(t, "task", data.task != "pretrain", fmt::format("task \"{}\"", data.task)));
  PENT_TRY(t.require("tokenizer"));
  const ConfigValue* tokenizer = t.find("tokenizer");
  if (tokenizer->kind == ConfigValue::Kind::string) {
    data.tokenizer_path = tokenizer->string;
  } else if (tokenizer->kind == ConfigValue::Kind::table) {
    for (const auto& [field, v] : tokenizer->fields) {
      if (field == "path" && v.kind == ConfigValue::Kind::string) data.tokenizer_path = v.string;
      else if (field == "kind" && v.kind == ConfigValue::Kind::string) data.tokenizer_kind = v.string;
      else
        return t.error("tokenizer", ErrorCode::recipe_key,
                       fmt::format("has the field \"{}\" that is unknown or no text", field), "fields: path, kind");
    }
  } else {
    return t.error("tokenizer", ErrorCode::recipe_type, fmt::format("is {}", tokenizer->kind_name()),
                   "write a path, or { path = …, kind = … }");
  }
  if (data.tokenizer_path.empty())
    return t.error("tokenizer", ErrorCode::recipe_range, "names no path", "write a path, or { path = …, kind = … }");
  PENT_TRY(t.get("eod", data.eod));
  PENT_TRY(t.require("train"));
  PENT_TRY(read_sources(t, "train", data.train));
  if (data.train.empty())
    return t.error("train", ErrorCode::recipe_range, "is an empty list", "name at least one file");
  PENT_TRY(t.get("valid", data.valid));
  PENT_TRY(t.get("test", data.test));
  PENT_TRY(t.require("seq_length"));
  PENT_TRY(t.get("seq_length", data.seq_length, 1, kMaxSequence));
  bool document_mask = false;
  PENT_TRY(t.get("document_mask", document_mask));
  return refuse(t, "document_mask", document_mask, "document_mask = true");
}

Status read_optimizer(ConfigTable& t, int64_t steps, OptimizerSpec& o) {
  PENT_TRY(t.require("lr"));
  PENT_TRY(t.get("lr", o.lr, 0, 1e6));
  PENT_TRY(t.get("min_lr", o.min_lr, 0, 1e6));
  if (o.min_lr > o.lr)
    return t.error("min_lr", ErrorCode::recipe_range, fmt::format("is {}, above lr = {}", o.min_lr, o.lr),
                   "lower it, or raise lr");
  PENT_TRY(t.get("warmup_steps", o.warmup_steps, 0, kMaxSteps));
  if (o.warmup_steps > steps) {
    return t.error("warmup_steps", ErrorCode::recipe_range,
                   fmt::format("is {}, more than train.steps = {}", o.warmup_steps, steps),
                   "shorten the warm-up, or train for more steps");
  }
  PENT_TRY(get_enum(t, "schedule", {"constant", "linear", "cosine", "wsd"}, o.schedule));
  std::vector<double> betas = {o.beta1, o.beta2};
  PENT_TRY(t.get("betas", betas));
  if (betas.size() != 2 || !(betas[0] >= 0 && betas[0] < 1) || !(betas[1] >= 0 && betas[1] < 1)) {
    return t.error("betas", ErrorCode::recipe_range, "must be two numbers from 0 to below 1",
                   "for example [0.9, 0.95]");
  }
  o.beta1 = betas[0], o.beta2 = betas[1];
  PENT_TRY(t.get("eps", o.eps, 1e-30, 1));
  PENT_TRY(t.get("weight_decay", o.weight_decay, 0, 1e6));
  return t.get("clip_grad_norm", o.clip_grad_norm, 0, 1e12);
}

Status read_deadline(ConfigTable& t, double& seconds) {
  std::string text;
  PENT_TRY(t.get("deadline", text));
  if (!t.has("deadline")) return {};
  const char* kForExample = "write for example \"10m\", \"90s\" or \"1h30m\"";
  if (text.empty()) return t.error("deadline", ErrorCode::recipe_range, "is empty", kForExample);
  // A sum of numbers with units: "10m", "1h30m", "2.5s".
  double total = 0;
  size_t at = 0;
  while (at < text.size()) {
    size_t used = 0;
    double number = -1;
    const std::string rest = text.substr(at);
    if (rest[0] >= '0' && rest[0] <= '9') {
      const size_t end = rest.find_first_not_of("0123456789.");
      if (end != std::string::npos && end < 12) number = std::atof(rest.substr(0, end).c_str()), used = end;
    }
    const char unit = number >= 0 ? rest[used] : '?';
    const double scale = unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3600 : 0;
    if (scale == 0) return t.error("deadline", ErrorCode::recipe_range, fmt::format("is \"{}\"", text), kForExample);
    total += number * scale;
    at += used + 1;
  }
  if (!(total >= 1) || total > 1e7)
    return t.error("deadline", ErrorCode::recipe_range, fmt::format("is {} s, expected 1 s to 2777h", total),
                   kForExample);
  seconds = total;
  return {};
}

Status read_checkpoint(ConfigTable& t, CheckpointSpec& c) {
  PENT_TRY(t.get("every", c.every, 0, kMaxSteps));
  PENT_TRY(t.get("keep", c.keep, 0, 1 << 20));
  bool async = false;
  PENT_TRY(t.get("async", async));
  PENT_TRY(refuse(t, "async", async, "async = true"));
  PENT_TRY(t.get("on_error", c.on_error));
  if (c.on_error != "continue" && c.on_error != "stop") {
    return t.error("on_error", ErrorCode::recipe_range, fmt::format("is \"{}\"", c.on_error),
                   "choose continue or stop");
  }
  std::string node_dir, busy = "wait";
  int replicas = 0;
  PENT_TRY(t.get("node_dir", node_dir));
  PENT_TRY(refuse(t, "node_dir", !node_dir.empty(), "checkpoint.node_dir"));
  PENT_TRY(t.get("replicas", replicas, 0, 1 << 10));
  PENT_TRY(refuse(t, "replicas", replicas != 0, "checkpoint.replicas"));
  PENT_TRY(t.get("busy", busy));
  return refuse(t, "busy", busy != "wait", fmt::format("checkpoint.busy = \"{}\"", busy));
}

}  // namespace

std::string recipe_name(Recipe recipe) {
  return recipe == Recipe::fp64 ? "fp64" : recipe == Recipe::fp32 ? "fp32" : "bf16";
}
std::string balance_name(Balance balance) {
  switch (balance) {
    case Balance::none: return "none";
    case Balance::sequence: return "sequence";
    case Balance::bias: return "bias";
  }
  PENT_CHECK(false, "balance {}", static_cast<int>(balance));
}
std::string lr_schedule_name(LrSchedule s) {
  static const char* const kNames[] = {"constant", "linear", "cosine", "wsd"};
  return kNames[static_cast<int>(s)];
}

Result<RunSpec> read_recipe(ConfigDocument doc, const ModelReader& read_model, const LayoutOverride& override) {
  RunSpec run;
  const ConfigValue* ranks = doc.section("run").find("ranks");
  const bool ranks_by_set = ranks != nullptr && ranks->where.starts_with("--set");
  if (ranks_by_set && override.ranks > 0) {
    return doc.section("run").error("ranks", ErrorCode::recipe_key, "would be ignored: --ranks replaces it",
                                    "leave one of them out");
  }
  PENT_TRY(read_run(doc.section("run"), run));
  PENT_TRY(read_model(doc.section("model"), run));
  PENT_TRY(read_layout(doc.section("layout"), run, ranks != nullptr, ranks_by_set, override));

  ConfigTable& train = doc.section("train");
  PENT_TRY(train.require("steps"));
  PENT_TRY(train.get("steps", run.steps, 1, kMaxSteps));
  PENT_TRY(train.get("max_skipped_steps", run.max_skipped_steps, 0, kMaxSteps));
  PENT_TRY(train.get("deterministic", run.deterministic));
  PENT_TRY(refuse(train, "deterministic", !run.deterministic, "deterministic = false on CPU"));
  std::string time_limit;
  PENT_TRY(train.get("time_limit", time_limit));
  PENT_TRY(refuse(train, "time_limit", !time_limit.empty(), "train.time_limit"));

  ConfigTable& batch = doc.section("batch");
  PENT_TRY(batch.require("global"));
  PENT_TRY(batch.get("global", run.global_batch, 1, 1 << 30));
  PENT_TRY(batch.get("micro", run.micro_batch, 1, 1 << 20));
  const int64_t unit = run.micro_batch * run.layout.dp;
  if (run.global_batch % unit != 0) {
    return batch.error("global", ErrorCode::layout_illegal,
                       fmt::format("is {}, which micro·dp = {}·{} = {} does not divide", run.global_batch,
                                   run.micro_batch, run.layout.dp, unit),
                       run.global_batch < unit
                           ? fmt::format("use {}, or a smaller micro or dp", unit)
                           : fmt::format("use {} or {}, or another micro or dp", run.global_batch / unit * unit,
                                         (run.global_batch / unit + 1) * unit));
  }

  PENT_TRY(read_data(doc.section("data"), run.data));
  if (run.data.seq_length > run.model.max_position_embeddings) {
    return doc.section("data").error("seq_length", ErrorCode::recipe_range,
                                     fmt::format("is {}, more than model.max_position_embeddings = {}",
                                                 run.data.seq_length, run.model.max_position_embeddings),
                                     "shorten it, or give the model more positions");
  }
  PENT_TRY(read_optimizer(doc.section("optimizer"), run.steps, run.optimizer));

  if (run.model.has_experts()) {
    ConfigTable& router = doc.section("router");
    run.router.balance = run.model.router_bias ? Balance::bias : Balance::sequence;
    std::string balance;
    PENT_TRY(router.get("balance", balance));
    PENT_TRY(refuse(router, "balance", balance == "micro_batch", "balance = \"micro_batch\""));
    if (balance == "bias" && !run.model.router_bias) {
      return router.error("balance", ErrorCode::recipe_range,
                          fmt::format("is \"bias\", but family {} has no bias tensor", run.family),
                          "choose sequence or none");
    }
    PENT_TRY(get_enum(router, "balance", {"none", "sequence", "bias"}, run.router.balance));
    // A coefficient of a rule that is not on stays unread, which is an error that names the key.
    if (run.router.balance == Balance::sequence) PENT_TRY(router.get("coef", run.router.coef, 0, 1e6));
    if (run.router.balance == Balance::bias) PENT_TRY(router.get("bias_rate", run.router.bias_rate, 0, 1e6));
    PENT_TRY(router.get("z_coef", run.router.z_coef, 0, 1e6));
  }

  ConfigTable& precision = doc.section("precision");
  std::string recipe = recipe_name(run.precision);
  PENT_TRY(precision.get("recipe", recipe));
  for (const char* later : {"fp8_delayed", "fp8_current", "fp8_blockwise", "mxfp8"}) {
    PENT_TRY(refuse(precision, "recipe", recipe == later, fmt::format("recipe \"{}\"", later)));
  }
  PENT_TRY(get_enum(precision, "recipe", {"fp64", "fp32", "bf16"}, run.precision));

  PENT_TRY(read_deadline(doc.section("comm"), run.comm_deadline_s));
  PENT_TRY(doc.section("eval").get("every", run.eval_every, 0, kMaxSteps));
  PENT_TRY(doc.section("eval").get("steps", run.eval_steps, 0, kMaxSteps));
  PENT_TRY(read_checkpoint(doc.section("checkpoint"), run.checkpoint));
  PENT_TRY(doc.finish());
  return run;
}

Result<RunSpec> load_recipe(const std::string& path, const std::vector<std::string>& sets,
                            const ModelReader& read_model, const LayoutOverride& override) {
  PENT_ASSIGN(ConfigDocument document, read_toml(path, sets));
  return read_recipe(std::move(document), read_model, override);
}

std::string to_toml(const RunSpec& run, const std::string& model_keys) {
  auto list = [](const std::vector<std::string>& paths) {
    std::vector<std::string> quoted;
    for (const auto& p : paths) quoted.push_back(toml_quote(p));
    return fmt::format("[{}]", fmt::join(quoted, ", "));
  };
  std::vector<std::string> train;
  for (const auto& s : run.data.train) {
    train.push_back(!s.weight ? toml_quote(s.path)
                              : fmt::format("{{ path = {}, weight = {} }}", toml_quote(s.path), *s.weight));
  }
  const auto& l = run.layout;
  std::string t;
  t += fmt::format("[run]\ndir = {}\nseed = {}\nranks = {}\n", toml_quote(run.dir), run.seed, run.ranks);
  if (run.threads > 0) t += fmt::format("threads = {}\n", run.threads);
  t += fmt::format("\n[model]\n{}", model_keys);
  t += fmt::format("\n[layout]\ntp = {}\npp = {}\ncp = {}\ndp = {}\nep = {}\netp = {}\n", l.tp, l.pp, l.cp, l.dp, l.ep,
                   l.etp);
  if (l.tp > 1) t += fmt::format("sp = {}\n", l.sp);
  if (!l.split.empty()) t += fmt::format("split = \"{}\"\n", fmt::join(l.split, "|"));
  t += fmt::format("vpp = {}\nschedule = {}\n", l.vpp, toml_quote(l.schedule));
  if (run.model.has_experts()) {
    t += fmt::format("\n[router]\nbalance = \"{}\"\n", balance_name(run.router.balance));
    if (run.router.balance == Balance::sequence) t += fmt::format("coef = {}\n", run.router.coef);
    if (run.router.balance == Balance::bias) t += fmt::format("bias_rate = {}\n", run.router.bias_rate);
    t += fmt::format("z_coef = {}\n", run.router.z_coef);
  }
  t += fmt::format("\n[precision]\nrecipe = \"{}\"\n", recipe_name(run.precision));
  t += fmt::format(
      "\n[data]\ntask = \"{}\"\ntokenizer = {}\neod = {}\ntrain = [{}]\nvalid = {}\ntest = {}\nseq_length = {}\n",
      run.data.task,
      run.data.tokenizer_kind.empty() ? toml_quote(run.data.tokenizer_path)
                                      : fmt::format("{{ path = {}, kind = {} }}", toml_quote(run.data.tokenizer_path),
                                                    toml_quote(run.data.tokenizer_kind)),
      toml_quote(run.data.eod), fmt::join(train, ", "), list(run.data.valid), list(run.data.test), run.data.seq_length);
  t += fmt::format("\n[batch]\nglobal = {}\nmicro = {}\n", run.global_batch, run.micro_batch);
  const auto& o = run.optimizer;
  t += fmt::format(
      "\n[optimizer]\nlr = {}\nmin_lr = {}\nwarmup_steps = {}\nschedule = \"{}\"\nbetas = [{}, {}]\neps = "
      "{}\nweight_decay = {}\nclip_grad_norm = {}\n",
      o.lr, o.min_lr, o.warmup_steps, lr_schedule_name(o.schedule), o.beta1, o.beta2, o.eps, o.weight_decay,
      o.clip_grad_norm);
  t += fmt::format("\n[train]\nsteps = {}\nmax_skipped_steps = {}\ndeterministic = {}\n", run.steps,
                   run.max_skipped_steps, run.deterministic);
  t += fmt::format("\n[comm]\ndeadline = \"{}s\"\n", run.comm_deadline_s);
  t += fmt::format("\n[eval]\nevery = {}\nsteps = {}\n", run.eval_every, run.eval_steps);
  t += fmt::format("\n[checkpoint]\nevery = {}\nkeep = {}\non_error = \"{}\"\n", run.checkpoint.every,
                   run.checkpoint.keep, run.checkpoint.on_error);
  return t;
}

namespace {
std::string value_text(const ConfigValue& v) {
  switch (v.kind) {
    case ConfigValue::Kind::boolean: return v.boolean ? "true" : "false";
    case ConfigValue::Kind::integer: return std::to_string(v.integer);
    case ConfigValue::Kind::floating: return fmt::format("{}", v.floating);
    case ConfigValue::Kind::string: return toml_quote(v.string);
    case ConfigValue::Kind::list: {
      std::vector<std::string> items;
      for (const auto& i : v.items) items.push_back(value_text(i));
      return fmt::format("[{}]", fmt::join(items, ", "));
    }
    case ConfigValue::Kind::table: {
      std::vector<std::string> items;
      for (const auto& [k, i] : v.fields) items.push_back(k + " = " + value_text(i));
      return fmt::format("{{ {} }}", fmt::join(items, ", "));
    }
  }
  return "";
}
}  // namespace

Result<std::map<std::string, std::string>> flatten_recipe(const std::string& toml_text) {
  PENT_ASSIGN(const ConfigDocument doc, parse_toml(toml_text, "recipe of the checkpoint"));
  return doc.flatten([](const ConfigValue& v) { return value_text(v); });
}

namespace {

Result<ModelSpec> model_of(const std::string& toml_text, const std::string& origin, const ModelReader& read_model) {
  PENT_ASSIGN(ConfigDocument doc, parse_toml(toml_text, origin));
  ConfigTable& table = doc.section("model");
  RunSpec run;
  PENT_TRY(read_model(table, run));
  for (const auto& key : table.unread()) {
    return table.error(key, ErrorCode::recipe_key, "is a key that this version does not know",
                       "resume with the penteract that wrote the checkpoint");
  }
  return run.model;
}

}  // namespace

Result<std::vector<RecipeChange>> compare_recipes(const std::string& before_toml, const std::string& now_toml,
                                                  const ModelReader& read_model) {
  PENT_ASSIGN(const ModelSpec model_before, model_of(before_toml, "recipe of the checkpoint", read_model));
  PENT_ASSIGN(const ModelSpec model_now, model_of(now_toml, "resolved recipe", read_model));
  const bool same_model = model_before == model_now;
  PENT_ASSIGN(const auto before, flatten_recipe(before_toml));
  PENT_ASSIGN(const auto now, flatten_recipe(now_toml));
  std::vector<RecipeChange> changes;
  auto value_of = [](const std::map<std::string, std::string>& m, const std::string& key) {
    const auto it = m.find(key);
    return it == m.end() ? std::string("(unset)") : it->second;
  };
  std::map<std::string, int> keys;
  for (const auto& [k, v] : before) keys[k];
  for (const auto& [k, v] : now) keys[k];
  // A key that only one of them writes out is named where no other one tells the models apart.
  const bool told_apart = std::any_of(before.begin(), before.end(), [&](const auto& entry) {
    const auto it = now.find(entry.first);
    return entry.first.starts_with("model.") && it != now.end() && it->second != entry.second;
  });
  for (const auto& [key, unused] : keys) {
    const bool of_model = key.starts_with("model.");
    if (of_model && (same_model || (told_apart && (!before.count(key) || !now.count(key))))) continue;
    RecipeChange change{key, value_of(before, key), value_of(now, key)};
    if (change.before == change.now) continue;
    const bool fixed = of_model || key == "run.seed" || key == "data.task" || key == "data.seq_length";
    const bool appended =
        key == "data.train" && change.now.rfind(change.before.substr(0, change.before.size() - 1), 0) == 0;
    if (fixed || (key == "data.train" && !appended)) {
      return Error{
          ErrorCode::recipe_changed,
          fmt::format("is {}, but the checkpoint's run has {}: a resume may not change it", change.now, change.before),
          key,
          key == "data.train" ? "append files at the end, or start another run.dir"
                              : "set it back, or start another run.dir"};
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace penteract::spec
