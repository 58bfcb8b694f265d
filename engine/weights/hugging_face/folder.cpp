#include "engine/weights/hugging_face/folder.h"

#include <algorithm>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

#include "engine/weights/hugging_face/expert_tensors.h"
#include "engine/weights/hugging_face/tensor_names.h"
#include "engine/weights/hugging_face/weight_index.h"
#include "engine/weights/in_quotes.h"
#include "engine/weights/json_text.h"
#include "engine/weights/safetensors.h"
#include "engine/weights/tensor_list.h"
#include "runtime/host/read_file.h"

namespace hearth {
namespace {

using hugging_face::Config;

constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr const char* kSingleFile = "model.safetensors";

// The largest tokenizer.json so far has 33 MB; an index of weights is smaller.
constexpr std::uint64_t kMostTextFileBytes = std::uint64_t{256} << 20;

// Empty if there is no such file.
Result<std::optional<std::string>> read_text(const std::filesystem::path& path) {
  auto text = read_file(path, {.most_bytes = kMostTextFileBytes, .regular_only = true});
  if (text.ok()) return std::optional(std::move(text).value());
  if (text.error().kind == ErrorKind::kNotFound) return std::optional<std::string>();
  return std::move(text).error();
}

Result<std::optional<nlohmann::json>> read_json(const std::filesystem::path& path) {
  HEARTH_ASSIGN(const auto text, read_text(path));
  if (!text) return std::optional<nlohmann::json>();
  auto json = parse_json(*text);
  if (!json.ok()) return in_file(path, json.error());
  return std::optional(std::move(json).value());
}

// All files of the folder that end in `ending`, sorted.
std::vector<std::string> files_ending_in(const std::filesystem::path& folder,
                                         std::string_view ending) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error))
    if (at->path().filename().string().ends_with(ending))
      names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Result<std::unique_ptr<HuggingFaceFolder>> HuggingFaceFolder::open(
    const std::filesystem::path& path) {
  std::unique_ptr<HuggingFaceFolder> folder(new HuggingFaceFolder(path));
  HEARTH_TRY(folder->read());
  return folder;
}

Status HuggingFaceFolder::read() {
  HEARTH_TRY(read_texts());
  const auto config_path = path_ / "config.json";
  HEARTH_ASSIGN(const auto root, read_json(config_path));
  if (!root) {
    if (tokenizer_json_) return {};
    return Error{ErrorKind::kNotFound,
                 fmt::format("{}: no model in this folder: it has no config.json", path_.string())};
  }
  auto config = hugging_face::translate_config(*root);
  if (!config.ok()) return in_file(config_path, config.error());

  const auto generation_path = path_ / "generation_config.json";
  HEARTH_ASSIGN(const auto generation, read_json(generation_path));
  if (generation) {
    const Status status = hugging_face::translate_token_ids(*generation, config->metadata);
    if (!status.ok()) return in_file(generation_path, status.error());
    hugging_face::translate_sampling(*generation, config->metadata);
  }
  // Newer folders keep the template in a file of its own; its key in GGUF says the same.
  HEARTH_ASSIGN(const auto chat_template, keep("chat_template.jinja"));
  if (chat_template) config->metadata.set("tokenizer.chat_template", std::string(*chat_template));
  config->metadata.set("general.name", name());
  HEARTH_TRY(read_weights(*config));
  metadata_ = std::move(config->metadata);
  return {};
}

Status HuggingFaceFolder::read_texts() {
  HEARTH_ASSIGN(tokenizer_json_, keep("tokenizer.json"));
  HEARTH_ASSIGN(tokenizer_config_json_, keep("tokenizer_config.json"));
  return {};
}

Result<std::optional<std::string_view>> HuggingFaceFolder::keep(const std::string& file) {
  HEARTH_ASSIGN(auto text, read_text(path_ / file));
  if (!text) return std::optional<std::string_view>();
  return std::optional<std::string_view>(texts_.emplace_back(std::move(*text)));
}

Result<std::vector<std::string>> HuggingFaceFolder::weight_files() const {
  HEARTH_ASSIGN(const auto index, read_text(path_ / kIndexFile));
  if (index) {
    auto files = hugging_face::read_weight_index(*index);
    if (!files.ok()) return in_file(path_ / kIndexFile, files.error());
    return files;
  }
  std::vector<std::string> files = files_ending_in(path_, ".safetensors");
  if (std::find(files.begin(), files.end(), kSingleFile) != files.end())
    return std::vector<std::string>{kSingleFile};
  if (const auto pickled = files_ending_in(path_, ".bin"); files.empty() && !pickled.empty())
    return Error{ErrorKind::kUnsupported,
                 fmt::format("{}: weights in {} are not read, only *.safetensors", path_.string(),
                             in_quotes(pickled.front()))};
  return files;
}

Status HuggingFaceFolder::read_weights(const Config& config) {
  HEARTH_ASSIGN(const auto files, weight_files());
  const bool tied = config.tied.value_or(config.family->tied_by_default);
  const TensorNaming naming = [&](std::string_view name) -> std::optional<std::string> {
    auto known = hugging_face::gguf_tensor_name(name, *config.family);
    // A copy of the embedding, which no model of this kind looks at.
    if (tied && known == "output.weight") known.reset();
    return known;
  };
  for (const std::string& file : files) {
    HEARTH_ASSIGN(auto mapping, MappedFile::open(path_ / file));
    auto tensors = read_safetensors(mapping.bytes(), naming);
    // First: what went missing meanwhile explains every other error.
    HEARTH_TRY(mapping.check());
    if (!tensors.ok()) return in_file(path_ / file, tensors.error());
    if (tensors_.empty())
      tensors_ = std::move(tensors).value();
    else
      tensors_.insert(tensors_.end(), std::make_move_iterator(tensors->begin()),
                      std::make_move_iterator(tensors->end()));
    mappings_.push_back(std::move(mapping));
  }
  if (auto status = hugging_face::arrange_experts(tensors_, strides_); !status.ok())
    return in_file(path_, status.error());
  if (auto status = sort_tensors(tensors_); !status.ok()) return in_file(path_, status.error());
  if (config.tied == false && !tensors_.empty() && find("output.weight") == nullptr)
    return Error{ErrorKind::kInvalid,
                 fmt::format("{}: tensor 'lm_head.weight' is missing, and config.json says that "
                             "the embedding does not stand in for it",
                             path_.string())};
  return {};
}

}  // namespace hearth
