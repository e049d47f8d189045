#include "penteract/infer/probe_files.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "penteract/base/file.h"
#include "penteract/checkpoint/safetensors.h"

namespace penteract::infer {
namespace {

using checkpoint::SafetensorsFile;

Error wrong(const std::string& path, const std::string& tensor, std::string what, std::string remedy = "") {
  return {ErrorCode::probe_input, std::move(what), fmt::format("{}: {}", path, tensor), std::move(remedy)};
}

// A whole tensor of integers as int64.
Result<at::Tensor> read_integers(const SafetensorsFile& file, const checkpoint::TensorEntry& entry) {
  if (checkpoint::is_floating(entry.dtype)) {
    return wrong(file.file().path(), entry.name,
                 fmt::format("is {}, expected whole numbers", checkpoint::dtype_name(entry.dtype)));
  }
  PENT_ASSIGN(const at::Tensor tensor, file.read(entry));
  return tensor.to(at::kLong).contiguous();
}

std::string route_name(int layer) { return fmt::format("routes.{}", layer); }

// One layer's experts: in range, different for each token.
Status check_routes(const std::string& path, const std::string& name, const at::Tensor& routes, int64_t num_experts) {
  const auto* e = routes.data_ptr<int64_t>();
  const int64_t k = routes.size(2), seq = routes.size(1);
  for (int64_t token = 0; token < routes.size(0) * seq; ++token, e += k) {
    for (int64_t i = 0; i < k; ++i) {
      const bool twice = std::find(e, e + i, e[i]) != e + i;
      if (e[i] >= 0 && e[i] < num_experts && !twice) continue;
      return wrong(path, name,
                   twice ? fmt::format("names expert {} twice at row {}, position {}", e[i], token / seq, token % seq)
                         : fmt::format("names expert {} at row {}, position {}, the model has {}", e[i], token / seq,
                                       token % seq, num_experts),
                   "record the routes with this model");
    }
  }
  return {};
}

// Writes aside, syncs, renames. The tensors by falling element size, as the format wants them.
Status write_tensors(const std::string& path, std::vector<std::pair<std::string, at::Tensor>> tensors) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto& a, const auto& b) { return a.second.element_size() > b.second.element_size(); });
  std::vector<checkpoint::TensorSpec> specs;
  for (const auto& [name, tensor] : tensors)
    specs.push_back({name, *checkpoint::dtype_of(tensor.scalar_type()), tensor.sizes().vec()});
  const std::string aside = fmt::format("{}.tmp-{}", path, ::getpid());
  const auto write = [&]() -> Status {
    PENT_ASSIGN(auto writer, checkpoint::SafetensorsWriter::create(aside, std::move(specs), {}));
    for (const auto& [name, tensor] : tensors) PENT_TRY(writer.append(tensor));
    PENT_TRY(writer.close());
    if (std::rename(aside.c_str(), path.c_str()) != 0) return errno_error(ErrorCode::storage_write, path, "rename");
    const size_t slash = path.rfind('/');
    return sync_directory(slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash));
  };
  const Status written = write();
  if (!written.ok()) std::remove(aside.c_str());
  return written;
}

}  // namespace

Result<ProbeInput> read_probe_input(const std::string& path, int64_t vocab_size) {
  PENT_ASSIGN(const auto file, SafetensorsFile::open(path));
  for (const auto& entry : file.tensors()) {
    if (entry.name != "ids" && entry.name != "loss_mask")
      return wrong(path, entry.name, "is not known", "give ids and, if wanted, loss_mask");
  }
  const auto* ids = file.find("ids");
  if (ids == nullptr) return wrong(path, "ids", "is missing", "give ids [batch, seq]");
  if (ids->shape.size() != 2 || ids->shape[0] < 1 || ids->shape[1] < 1)
    return wrong(path, "ids", fmt::format("is {}, expected [batch, seq]", checkpoint::shape_text(ids->shape)));
  ProbeInput input;
  PENT_ASSIGN(input.ids, read_integers(file, *ids));
  const int64_t seq = input.ids.size(1);
  const auto* values = input.ids.data_ptr<int64_t>();
  for (int64_t i = 0; i < input.ids.numel(); ++i) {
    if (values[i] >= 0 && values[i] < vocab_size) continue;
    return wrong(path, "ids",
                 fmt::format("{} at row {}, position {} is outside of the vocabulary of {}", values[i], i / seq,
                             i % seq, vocab_size),
                 "use the tokenizer of the model");
  }
  input.is_target = at::ones(input.ids.sizes(), at::kBool);
  if (const auto* mask = file.find("loss_mask")) {
    if (mask->shape != ids->shape) {
      return wrong(path, "loss_mask",
                   fmt::format("is {}, expected {} as ids", checkpoint::shape_text(mask->shape),
                               checkpoint::shape_text(ids->shape)));
    }
    PENT_ASSIGN(const at::Tensor given, read_integers(file, *mask));
    if (!given.eq(0).logical_or(given.eq(1)).all().item<bool>())
      return wrong(path, "loss_mask", "holds values other than 0 and 1");
    input.is_target = given.eq(1);
  }
  input.is_target.select(1, 0).fill_(false);
  return input;
}

Result<RouteTable> read_routes(const std::string& path, const spec::ModelSpec& model, int64_t batch, int64_t seq) {
  PENT_ASSIGN(const auto file, SafetensorsFile::open(path));
  RouteTable routes;
  std::set<std::string> known;
  for (int layer = 0; layer < model.num_layers; ++layer) {
    if (!model.moe_layers[layer]) continue;
    const std::string name = route_name(layer);
    known.insert(name);
    const auto* entry = file.find(name);
    if (entry == nullptr) return wrong(path, name, "is missing", "record the routes with this model");
    const std::vector<int64_t> shape = {batch, seq, model.num_experts_per_tok};
    if (entry->shape != shape) {
      return wrong(path, name,
                   fmt::format("is {}, expected {}: [batch, seq, experts a token]",
                               checkpoint::shape_text(entry->shape), checkpoint::shape_text(shape)),
                   "record the routes with these ids");
    }
    PENT_ASSIGN(routes[layer], read_integers(file, *entry));
    PENT_TRY(check_routes(path, name, routes[layer], model.num_experts));
  }
  for (const auto& entry : file.tensors()) {
    if (!known.count(entry.name))
      return wrong(path, entry.name, "names no mixture-of-experts layer of the model", "record the routes with it");
  }
  if (routes.empty()) return wrong(path, "routes", "the model has no experts", "leave --replay-routes out");
  return routes;
}

Status write_probe_output(const std::string& path, const ProbeOutput& output, bool fp64) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  tensors.emplace_back("loss", at::full({}, output.loss, fp64 ? at::kDouble : at::kFloat));
  tensors.emplace_back("logits", output.logits);
  for (const auto& [name, grad] : output.grads) tensors.emplace_back("grad." + name, grad);
  return write_tensors(path, std::move(tensors));
}

Status write_routes(const std::string& path, const RouteTable& routes) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto& [layer, experts] : routes) tensors.emplace_back(route_name(layer), experts);
  return write_tensors(path, std::move(tensors));
}

}  // namespace penteract::infer
