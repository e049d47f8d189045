// Recipes with their [model] section read by the families: what loads, and one message with file, line, key and remedy
// for what does not (userlog F1).
#include "penteract/spec/recipe.h"

#include <gtest/gtest.h>

#include "penteract/base/toml.h"
#include "penteract/families/registry.h"
#include "spec/recipe_text.h"

namespace penteract::spec {
namespace {

Result<RunSpec> load(const std::string& text, const std::vector<std::string>& sets = {},
                     const LayoutOverride& override = {}) {
  PENT_ASSIGN(auto document, parse_toml(text, "r.toml", sets));
  return read_recipe(std::move(document), families::read_model, override);
}

TEST(Recipe, DefaultsAndDerivedAxes) {
  const auto run = load(kRecipe);
  ASSERT_TRUE(run.ok()) << run.error().message();
  EXPECT_EQ(topology::to_string(run->layout), "tp=2,pp=1,cp=1,dp=2,ep=2,etp=1,edp=2,sp=on");
  EXPECT_EQ(run->precision, Recipe::bf16);
  EXPECT_EQ(run->model.head_dim, 8);
  EXPECT_TRUE(run->model.norm_topk_prob);
  EXPECT_TRUE(run->model.qk_norm);
  EXPECT_FALSE(run->model.tie_embeddings);
  EXPECT_EQ(run->model.rope_theta, 1e6);
  EXPECT_EQ(run->optimizer.min_lr, 0);
  EXPECT_EQ(run->eval_every, 0);
  EXPECT_EQ(run->checkpoint.keep, 2);
}

TEST(Recipe, ResolvedRecipeReadsBackToTheSame) {
  const auto run =
      load(kRecipe, {"layout.cp=1", "optimizer.schedule=wsd", "data.valid=[\"v.txt\"]", "comm.deadline=\"1h30m\""});
  ASSERT_TRUE(run.ok()) << run.error().message();
  const std::string text = to_toml(*run, families::write_model(run->model));
  const auto again = load(text);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->model, run->model);
  EXPECT_EQ(again->layout, run->layout);
  EXPECT_EQ(again->comm_deadline_s, 5400);
  EXPECT_EQ(to_toml(*again, families::write_model(again->model)), text);
}

TEST(Recipe, APastedConfigIsRead) {
  const auto run = load(recipe_with(
      "vocab_size = 300\n",
      "vocab_size = 300\nhidden_act = \"silu\"\nattention_bias = false\ndecoder_sparse_step = 2\nmlp_only_layers = "
      "[1]\n"
      "intermediate_size = 24\nmodel_type = \"qwen3_moe\"\nuse_sliding_window = false\nrms_norm_eps = 1e-5\n"));
  ASSERT_TRUE(run.ok()) << run.error().message();
  EXPECT_EQ(run->model.moe_layers, (std::vector<bool>{false, false, false, true}));
  EXPECT_EQ(run->model.norm_eps, 1e-5);
}

// Dense families: their own defaults, and a resolved recipe that reads back.
TEST(Recipe, DenseFamilies) {
  const std::string sizes =
      "vocab_size = 300\nnum_hidden_layers = 2\nhidden_size = 32\nintermediate_size = 24\nnum_attention_heads = 4\n"
      "num_key_value_heads = 2\n";
  const std::string rest =
      "[run]\ndir = \"r\"\n[data]\ntokenizer = \"t.json\"\ntrain = [\"a.txt\"]\nseq_length = 16\n[batch]\nglobal = 2\n"
      "[optimizer]\nlr = 1e-3\n[train]\nsteps = 2\n";
  const auto load_model = [&](const std::string& keys) { return load(rest + "[model]\n" + keys + sizes); };
  const auto qwen = load_model("family = \"qwen3\"\n");
  ASSERT_TRUE(qwen.ok()) << qwen.error().message();
  EXPECT_TRUE(qwen->model.qk_norm);
  EXPECT_EQ(qwen->model.norm_eps, 1e-6);
  const auto llama = load_model(
      "family = \"llama\"\ntie_word_embeddings = true\nrope_scaling = { rope_type = \"llama3\", factor = 32.0, "
      "low_freq_factor = 1.0, high_freq_factor = 4.0, original_max_position_embeddings = 8192 }\n");
  ASSERT_TRUE(llama.ok()) << llama.error().message();
  EXPECT_FALSE(llama->model.qk_norm);
  EXPECT_EQ(llama->model.norm_eps, 1e-5);
  EXPECT_EQ(llama->model.rope_theta, 5e5);
  EXPECT_EQ(llama->model.llama3_rope.factor, 32);
  for (const auto* run : {&*qwen, &*llama}) {
    const auto again = load(to_toml(*run, families::write_model(run->model)));
    ASSERT_TRUE(again.ok()) << again.error().message();
    EXPECT_EQ(again->model, run->model);
  }
  // Without experts there is nothing to route.
  const auto router = load(rest + "[model]\nfamily = \"llama\"\n" + sizes + "[router]\nbalance = \"none\"\n");
  ASSERT_FALSE(router.ok());
  EXPECT_EQ(router.error().code, ErrorCode::recipe_key);
}

TEST(Recipe, RouterKeys) {
  const auto z = load(kRecipe, {"router.z_coef=0.01", "router.balance=none"});
  ASSERT_TRUE(z.ok()) << z.error().message();
  EXPECT_EQ(z->router.z_coef, 0.01);
  EXPECT_EQ(z->router.balance, Balance::none);
  // A key of a rule that is not on would be ignored; a rule without its tensor cannot be on.
  for (const char* set : {"router.bias_rate=0.1", "router.balance=bias", "router.balance=micro_batch",
                          "router.balance=other", "router.z_coef=-1.0"}) {
    EXPECT_FALSE(load(kRecipe, {set}).ok()) << set;
  }
  EXPECT_FALSE(load(kRecipe, {"router.balance=none", "router.coef=0.1"}).ok());
}

struct Bad {
  const char* from;
  const char* to;
  ErrorCode code;
  const char* culprit;  // part of it
  const char* hint;     // part of what or remedy
};

class BadRecipe : public testing::TestWithParam<Bad> {};

TEST_P(BadRecipe, IsOneMessageWithPlaceAndRemedy) {
  const Bad& bad = GetParam();
  const std::string text = recipe_with(bad.from, bad.to);
  ASSERT_FALSE(text.empty()) << bad.from;
  const auto run = load(text);
  ASSERT_FALSE(run.ok()) << bad.to;
  EXPECT_EQ(error_name(run.error().code), std::string(error_name(bad.code))) << run.error().message();
  EXPECT_NE(run.error().culprit.find(bad.culprit), std::string::npos) << run.error().message();
  EXPECT_NE((run.error().what + run.error().remedy).find(bad.hint), std::string::npos) << run.error().message();
}

INSTANTIATE_TEST_SUITE_P(
    Typos, BadRecipe,
    testing::Values(
        Bad{"seq_length = 16", "seq_lenght = 16", ErrorCode::recipe_missing, "data.seq_length", "add seq_length"},
        Bad{"steps = 3", "steps = 3\nmax_skiped_steps = 1", ErrorCode::recipe_key, "r.toml:33", "max_skipped_steps"},
        Bad{"steps = 3", "steps = 3\nweight_decay = 0.1", ErrorCode::recipe_key, "train.weight_decay", "[optimizer]"},
        Bad{"[batch]", "[bacth]", ErrorCode::recipe_missing, "batch.global", "add global"},
        Bad{"[train]", "[evl]\nevery = 3\n[train]", ErrorCode::recipe_key, "evl.every", "[eval]"},
        Bad{"lr = 1e-3", "lr = \"1e-3\"", ErrorCode::recipe_type, "r.toml:29: optimizer.lr", "a number"},
        Bad{"lr = 1e-3", "lr = -1.0", ErrorCode::recipe_range, "optimizer.lr", "expected 0"},
        Bad{"seq_length = 16", "seq_length = 50000", ErrorCode::recipe_range, "data.seq_length",
            "max_position_embeddings"},
        Bad{"steps = 3", "steps = 3.5", ErrorCode::recipe_type, "train.steps", "whole number"},
        Bad{"steps = 3", "steps = 0", ErrorCode::recipe_range, "train.steps", "at least 1"},
        Bad{"train = [\"a.txt\"]", "train = \"a.txt\"", ErrorCode::recipe_type, "data.train", "list"},
        Bad{"train = [\"a.txt\"]", "train = []", ErrorCode::recipe_range, "data.train", "at least one"},
        Bad{"train = [\"a.txt\"]", "train = [{ path = \"a\", wieght = 1 }]", ErrorCode::recipe_type, "data.train",
            "wieght"},
        Bad{"lr = 1e-3", "lr = 1e-3\nschedule = \"cosin\"", ErrorCode::recipe_range, "optimizer.schedule", "cosine"},
        Bad{"lr = 1e-3", "lr = 1e-3\nwarmup_steps = 9", ErrorCode::recipe_range, "optimizer.warmup_steps",
            "train.steps"},
        Bad{"global = 4", "global = 5", ErrorCode::layout_illegal, "batch.global", "4 or 6"},
        Bad{"global = 4", "global = 1", ErrorCode::layout_illegal, "batch.global", "use 2, or"},
        Bad{"lr = 1e-3", "lr = 1e400", ErrorCode::recipe_syntax, "r.toml:29", "no number between"},
        Bad{"dir = \"runs/x\"", "dir = \"runs\\u0000x\"", ErrorCode::recipe_range, "r.toml:2", "NUL"},
        Bad{"steps = 3", "steps = 3\n[comm]\ndeadline = \"\"", ErrorCode::recipe_range, "comm.deadline", "10m"},
        Bad{"tp = 2", "tp = 2\nsplit = \"\"", ErrorCode::recipe_range, "layout.split", "leave the key out"},
        Bad{"[run]", "[run", ErrorCode::recipe_syntax, "r.toml:1", ""},
        Bad{"[run]", "dir = 1\n[run]", ErrorCode::recipe_key, "r.toml:1", "outside any section"}));

INSTANTIATE_TEST_SUITE_P(
    Models, BadRecipe,
    testing::Values(
        Bad{"\"qwen3_moe\"", "\"qwen3_mo\"", ErrorCode::family_unknown, "model.family", "qwen3_moe"},
        Bad{"hidden_size = 32", "hiden_size = 32", ErrorCode::recipe_missing, "model.hidden_size", "add hidden_size"},
        Bad{"num_key_value_heads = 2", "num_key_value_heads = 3", ErrorCode::model_key, "model.num_key_value_heads",
            "does not divide"},
        Bad{"num_experts_per_tok = 2", "num_experts_per_tok = 9", ErrorCode::model_key, "num_experts_per_tok",
            "more than"},
        Bad{"vocab_size = 300", "vocab_size = 300\nhidden_act = \"gelu\"", ErrorCode::model_key, "hidden_act", "silu"},
        Bad{"vocab_size = 300", "vocab_size = 300\nattention_dropout = 0.1", ErrorCode::model_key, "attention_dropout",
            "only 0"},
        Bad{"vocab_size = 300", "vocab_size = 300\nhead_dim = 7", ErrorCode::model_key, "head_dim", "even"},
        Bad{"vocab_size = 300", "vocab_size = 300\nfrom = \"x\"", ErrorCode::recipe_unsupported, "model.from",
            "not supported"}));

INSTANTIATE_TEST_SUITE_P(NotBuiltYet, BadRecipe,
                         testing::Values(Bad{"steps = 3", "steps = 3\n[precision]\nrecipe = \"mxfp8\"",
                                             ErrorCode::recipe_unsupported, "precision.recipe", "mxfp8"},
                                         Bad{"steps = 3", "steps = 3\n[precision]\nrecipe = \"bf17\"",
                                             ErrorCode::recipe_range, "precision.recipe", "bf16"},
                                         Bad{"steps = 3", "steps = 3\n[router]\nbalance = \"micro_batch\"",
                                             ErrorCode::recipe_unsupported, "router.balance", ""},
                                         Bad{"steps = 3", "steps = 3\n[router]\nbalance = \"bias\"",
                                             ErrorCode::recipe_range, "router.balance", "no bias"},
                                         Bad{"steps = 3", "steps = 3\n[router]\nbalance = \"none\"\ncoef = 0.1",
                                             ErrorCode::recipe_key, "router.coef", ""},
                                         Bad{"steps = 3", "steps = 3\n[checkpoint]\nasync = true",
                                             ErrorCode::recipe_unsupported, "checkpoint.async", ""},
                                         Bad{"steps = 3", "steps = 3\n[comm]\ndeadline = \"soon\"",
                                             ErrorCode::recipe_range, "comm.deadline", "10m"},
                                         Bad{"seq_length = 16", "seq_length = 16\ntask = \"sft\"",
                                             ErrorCode::recipe_unsupported, "data.task", "sft"},
                                         Bad{"tp = 2", "tp = 3", ErrorCode::layout_ranks, "layout", "4 ranks"},
                                         Bad{"ep = 2", "ep = 3", ErrorCode::layout_ranks, "layout", "ep can be"}));

TEST(Recipe, CommandLineWins) {
  EXPECT_EQ(load(kRecipe, {"train.steps=7"})->steps, 7);
  EXPECT_EQ(load(kRecipe, {"run.dir=elsewhere"})->dir, "elsewhere");  // a bare word is a text
  EXPECT_EQ(load(kRecipe, {"train.stepz=7"}).error().culprit, "--set train.stepz");
  EXPECT_EQ(load(kRecipe, {"nodot"}).error().code, ErrorCode::recipe_syntax);
  EXPECT_EQ(load(kRecipe, {}, {"pp=2,dp=2,ep=2", 0})->layout.pp, 2);
  EXPECT_EQ(load(kRecipe, {}, {"pp=2", 8})->layout.dp, 4);
  EXPECT_EQ(load(kRecipe, {"layout.cp=2"}, {"pp=2", 8}).error().code, ErrorCode::recipe_key);  // it would be ignored
  EXPECT_EQ(load(kRecipe, {"run.ranks=2"}, {"", 4}).error().code, ErrorCode::recipe_key);
  EXPECT_EQ(load(kRecipe, {"run.ranks=8"}, {"pp=2", 0})->layout.dp, 4);
}

TEST(CompareRecipes, ListsWhatMayChangeAndRefusesWhatMayNot) {
  auto text = [&](const std::vector<std::string>& sets) {
    const auto run = load(kRecipe, sets);
    return to_toml(*run, families::write_model(run->model));
  };
  const auto compare = [](const std::string& before, const std::string& now) {
    return compare_recipes(before, now, families::read_model);
  };
  const auto changes = compare(text({}), text({"optimizer.lr=0.5", "train.steps=9"}));
  ASSERT_TRUE(changes.ok());
  ASSERT_EQ(changes->size(), 2u);
  EXPECT_EQ((*changes)[0].key, "optimizer.lr");
  EXPECT_TRUE(compare(text({}), text({"data.train=[\"a.txt\", \"b.txt\"]"})).ok());
  for (const std::string set :
       {"run.seed=2", "model.hidden_size=64", "model.rope_theta=5", "data.seq_length=8", "data.train=[\"b.txt\"]"}) {
    const auto refused = compare(text({}), text({set}));
    ASSERT_FALSE(refused.ok()) << set;
    EXPECT_EQ(refused.error().code, ErrorCode::recipe_changed);
    if (set.starts_with("model.rope")) {
      EXPECT_EQ(refused.error().culprit, "model.rope_theta");
    }
  }
  // Content decides about these, and the caller knows it.
  const auto moved = compare(text({}), text({"data.tokenizer=other", "data.eod=x"}));
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(moved->size(), 2u);
}

// A family gets a key: the recipes in the checkpoints of before do not have it.
TEST(CompareRecipes, ModelsAreComparedAndNotTheirText) {
  const auto run = load(kRecipe);
  const std::string now = to_toml(*run, families::write_model(run->model));
  const auto without = [&](const std::string& key) {
    std::string text = now;
    const size_t at = text.find("\n" + key + " = ") + 1;
    return text.erase(at, text.find('\n', at) - at + 1);
  };
  const auto same = compare_recipes(without("rope_theta"), now, families::read_model);
  ASSERT_TRUE(same.ok()) << same.error().message();
  EXPECT_TRUE(same->empty());
  const auto dense = load(kRecipe, {"model.mlp_only_layers=[1]", "model.intermediate_size=24"});
  ASSERT_TRUE(dense.ok()) << dense.error().message();
  const auto other = compare_recipes(without("mlp_only_layers"), to_toml(*dense, families::write_model(dense->model)),
                                     families::read_model);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::recipe_changed);
  std::string unknown = now;
  unknown.insert(unknown.find("\n[layout]"), "of_the_future = 1\n");
  EXPECT_EQ(compare_recipes(unknown, now, families::read_model).error().code, ErrorCode::recipe_key);
}

}  // namespace
}  // namespace penteract::spec
