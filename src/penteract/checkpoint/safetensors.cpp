#include "penteract/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "penteract/base/check.h"
#include "penteract/base/hash.h"
#include "penteract/base/json.h"
#include "penteract/checkpoint/slice_io.h"

namespace penteract::checkpoint {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kHeaderAlignment = 64;
constexpr const char* kRemedy = "the file is damaged or is no safetensors file: copy or make it again";

uint64_t load_length(const char* bytes) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

class HeaderParser {
 public:
  HeaderParser(uint64_t header_bytes, uint64_t data_bytes, const std::string& culprit)
      : header_bytes_(header_bytes), data_bytes_(data_bytes), culprit_(culprit) {}

  Error error(const std::string& what) const { return {ErrorCode::file_malformed, what, culprit_, kRemedy}; }
  Error error(const std::string& tensor, const std::string& what) const {
    return {ErrorCode::file_malformed, what, fmt::format("{}, tensor {}", culprit_, tensor), kRemedy};
  }

  Status metadata(const Json& value, std::map<std::string, std::string>& out) const {
    if (!value.is_object()) return error("__metadata__ is not an object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) return error(fmt::format("__metadata__ key {} is not a string", key));
      out[key] = text.get<std::string>();
    }
    return {};
  }

  Result<TensorEntry> tensor(const std::string& name, const Json& value) const {
    if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
        !value.contains("data_offsets")) {
      return error(name, "is not an object of exactly dtype, shape and data_offsets");
    }
    const Json& dtype_text = value["dtype"];
    const auto dtype =
        dtype_text.is_string() ? dtype_from_name(dtype_text.get_ref<const std::string&>()) : std::nullopt;
    if (!dtype) return error(name, fmt::format("has a dtype that is none of {}", dtype_names()));
    TensorEntry entry{name, *dtype, {}, 0, 0};
    const Json& shape = value["shape"];
    if (!shape.is_array()) return error(name, "has a shape that is not a list");
    for (const Json& dim : shape) {
      if (!dim.is_number_unsigned() || dim.get<uint64_t>() > uint64_t{INT64_MAX}) {
        return error(name, "has a dim that is not a whole number from 0 to 2^63 - 1");
      }
      entry.shape.push_back(dim.get<int64_t>());
    }
    const auto bytes = tensor_bytes(entry.shape, *dtype);
    if (!bytes) return error(name, "has too many dims, or a shape whose product is beyond any file");
    const Json& offsets = value["data_offsets"];
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned()) {
      return error(name, "has data_offsets that are not two whole numbers");
    }
    const auto begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
    if (begin > end || end > data_bytes_) {
      return error(name,
                   fmt::format("has data_offsets {} to {}, the file has {} bytes of data", begin, end, data_bytes_));
    }
    if (end - begin != *bytes) {
      return error(name, fmt::format("has {} bytes by its offsets, {} by its shape {} of {}", end - begin, *bytes,
                                     shape_text(entry.shape), dtype_name(*dtype)));
    }
    entry.offset_bytes = begin;  // made absolute once the gaps are checked
    entry.size_bytes = *bytes;
    return entry;
  }

  // Orders the tensors by their bytes and checks that they fill the data exactly.
  Status place(std::vector<TensorEntry>& tensors) const {
    std::ranges::stable_sort(tensors, [](const TensorEntry& a, const TensorEntry& b) {
      return std::pair(a.offset_bytes, a.size_bytes) < std::pair(b.offset_bytes, b.size_bytes);
    });
    uint64_t at = 0;
    for (TensorEntry& t : tensors) {
      if (t.offset_bytes != at) {
        return error(t.name, fmt::format("begins at byte {} of the data, the one before ends at {}: {}", t.offset_bytes,
                                         at, t.offset_bytes < at ? "they overlap" : "a hole"));
      }
      at += t.size_bytes;
      t.offset_bytes += header_bytes_;
    }
    if (at != data_bytes_) return error(fmt::format("has {} bytes of data, its tensors fill {}", data_bytes_, at));
    return {};
  }

 private:
  uint64_t header_bytes_;
  uint64_t data_bytes_;
  const std::string& culprit_;
};

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, uint64_t header_bytes, uint64_t data_bytes,
                                                   const std::string& culprit) {
  const HeaderParser parser(header_bytes, data_bytes, culprit);
  if (json.empty() || json[0] != '{') return parser.error("the header does not begin with {");
  PENT_ASSIGN(const Json document, parse_json(json, culprit));
  if (!document.is_object()) return parser.error("the header is not an object");
  SafetensorsHeader header;
  for (const auto& [name, value] : document.items()) {
    if (name == "__metadata__") {
      PENT_TRY(parser.metadata(value, header.metadata));
    } else {
      PENT_ASSIGN(TensorEntry entry, parser.tensor(name, value));
      header.tensors.push_back(std::move(entry));
    }
  }
  PENT_TRY(parser.place(header.tensors));
  return header;
}

std::string make_safetensors_header(const std::vector<TensorSpec>& tensors,
                                    const std::map<std::string, std::string>& metadata) {
  std::string json = "{";
  if (!metadata.empty()) json += "\"__metadata__\":" + Json(metadata).dump();
  std::set<std::string_view> names;
  uint64_t at = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorSpec& t = tensors[i];
    PENT_CHECK(names.insert(t.name).second && t.name != "__metadata__", "tensor {} is named twice", t.name);
    PENT_CHECK(i == 0 || dtype_bytes(t.dtype) <= dtype_bytes(tensors[i - 1].dtype), "tensor {} would be misaligned",
               t.name);
    const auto bytes = tensor_bytes(t.shape, t.dtype);
    PENT_CHECK(bytes.has_value(), "tensor {} of shape {}", t.name, shape_text(t.shape));
    std::string shape = shape_text(t.shape);
    std::erase(shape, ' ');
    json += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}", json.size() > 1 ? "," : "",
                        Json(t.name).dump(), dtype_name(t.dtype), shape, at, at + *bytes);
    at += *bytes;
  }
  json += "}";
  const uint64_t total = (kLengthBytes + json.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment;
  json.resize(total - kLengthBytes, ' ');
  PENT_CHECK_LE(json.size(), kMaxSafetensorsHeaderBytes);
  std::string header;
  for (uint64_t i = 0; i < kLengthBytes; ++i) header += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return header + json;
}

SafetensorsFile::SafetensorsFile(FileReader file, SafetensorsHeader header, uint64_t header_bytes)
    : file_(std::move(file)), header_(std::move(header)), header_bytes_(header_bytes) {
  for (size_t i = 0; i < header_.tensors.size(); ++i) index_[header_.tensors[i].name] = i;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  PENT_ASSIGN(FileReader file, FileReader::open(path));
  const uint64_t size = file.size_bytes();
  if (size < kLengthBytes) {
    return Error{ErrorCode::file_malformed, fmt::format("has {} bytes, too few for a safetensors file", size), path,
                 kRemedy};
  }
  char length[kLengthBytes];
  PENT_TRY(file.read_at(0, length, kLengthBytes));
  const uint64_t json_bytes = load_length(length);
  if (json_bytes > kMaxSafetensorsHeaderBytes || json_bytes > size - kLengthBytes) {
    return Error{ErrorCode::file_malformed,
                 fmt::format("claims a header of {} bytes; the file has {} and the limit is {}", json_bytes, size,
                             kMaxSafetensorsHeaderBytes),
                 path, kRemedy};
  }
  std::string json(json_bytes, '\0');
  PENT_TRY(file.read_at(kLengthBytes, json.data(), json.size()));
  const uint64_t header_bytes = kLengthBytes + json_bytes;
  PENT_ASSIGN(SafetensorsHeader header, parse_safetensors_header(json, header_bytes, size - header_bytes, path));
  return SafetensorsFile(std::move(file), std::move(header), header_bytes);
}

const TensorEntry* SafetensorsFile::find(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &header_.tensors[it->second];
}

Result<at::Tensor> SafetensorsFile::read(const TensorEntry& entry) const {
  at::Tensor out = at::empty(entry.shape, at::TensorOptions(scalar_type(entry.dtype)));
  PENT_TRY(read(entry, topology::Slice::whole(entry.shape), out));
  return out;
}

Status SafetensorsFile::read(const TensorEntry& entry, const topology::Slice& slice, const at::Tensor& out) const {
  const StoredBox box{entry.dtype, topology::Slice::whole(entry.shape), entry.offset_bytes};
  return read_box(file_, box, slice, slice, out);
}

SafetensorsWriter::SafetensorsWriter(FileWriter file, std::vector<TensorSpec> tensors, const std::string& header)
    : file_(std::move(file)),
      tensors_(std::move(tensors)),
      header_bytes_(header.size()),
      header_checksum_(hash128_hex(header.data(), header.size())) {}

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path, std::vector<TensorSpec> tensors,
                                                    const std::map<std::string, std::string>& metadata) {
  const std::string header = make_safetensors_header(tensors, metadata);
  PENT_ASSIGN(FileWriter file, FileWriter::create(path));
  PENT_TRY(file.write(header.data(), header.size()));
  return SafetensorsWriter(std::move(file), std::move(tensors), header);
}

Status SafetensorsWriter::append(const at::Tensor& tensor) {
  PENT_CHECK(tensor.is_contiguous() && tensor.device().is_cpu());
  PENT_CHECK(next_ < tensors_.size() && scalar_type(tensors_[next_].dtype) == tensor.scalar_type());
  return append(tensor.const_data_ptr(), tensor.nbytes());
}

Status SafetensorsWriter::append(const void* data, size_t size_bytes) {
  PENT_CHECK_LT(next_, tensors_.size());
  const TensorSpec& spec = tensors_[next_];
  PENT_CHECK(tensor_bytes(spec.shape, spec.dtype) == size_bytes, "tensor {}: {} bytes", spec.name, size_bytes);
  ++next_;
  return file_.write(data, size_bytes);
}

Status SafetensorsWriter::close() {
  PENT_CHECK_EQ(next_, tensors_.size());
  return file_.sync();
}

}  // namespace penteract::checkpoint
