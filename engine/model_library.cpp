#include "engine/model_library.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/near_words.h"
#include "engine/weights/in_quotes.h"
#include "engine/weights/model_name.h"
#include "models/default_model.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

constexpr int kLevelsBelow = 2;
constexpr size_t kMostNamed = 8;  // in one message

bool has_extension(const fs::path& path, std::string_view extension) {
  return lower_case(path.extension().string()) == extension;
}

LibraryModel built_in_model() {
  return {.name = std::string(default_model_name()),
          .path = {},
          .format = "built in",
          .bytes = default_model().size()};
}

// All entries of a folder; those that cannot be read are left out.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    entries.push_back(at->path());
  std::ranges::sort(entries);
  return entries;
}

// People also keep a config.json next to .gguf files; such a folder holds GGUF models.
bool is_hugging_face(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder / "config.json", ignored) &&
      !fs::exists(folder / "tokenizer.json", ignored))
    return false;
  const std::vector<fs::path> entries = entries_of(folder);
  const bool has_safetensors = std::ranges::any_of(entries, [](const fs::path& entry) {
    return has_extension(entry, ".safetensors") ||
           entry.filename().string().ends_with(".safetensors.index.json");
  });
  return has_safetensors || std::ranges::none_of(entries, [](const fs::path& entry) {
           return has_extension(entry, ".gguf");
         });
}

uint64_t bytes_of(const fs::path& file) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(file, error);
  return error ? 0 : bytes;
}

void add_folder(const fs::path& folder, std::vector<LibraryModel>& models) {
  LibraryModel model{
      .name = model_name(folder), .path = folder, .format = "safetensors", .bytes = 0};
  for (const fs::path& entry : entries_of(folder))
    if (has_extension(entry, ".safetensors")) model.bytes += bytes_of(entry);
  models.push_back(std::move(model));
}

void add_gguf(const fs::path& file, std::vector<LibraryModel>& models) {
  const std::string name = model_name(file);
  // The parts of a split set follow each other and have one name; other files with the same name
  // are in other folders.
  if (!models.empty() && models.back().name == name && file.stem() != name &&
      models.back().path.parent_path() == file.parent_path())
    models.back().bytes += bytes_of(file);
  else
    models.push_back({.name = name, .path = file, .format = "GGUF", .bytes = bytes_of(file)});
}

void add_models(const fs::path& folder, int levels_below, std::vector<LibraryModel>& models) {
  for (const fs::path& entry : entries_of(folder)) {
    std::error_code ignored;
    if (entry.filename().string().starts_with('.')) continue;
    if (!fs::is_directory(entry, ignored)) {
      if (has_extension(entry, ".gguf") && fs::is_regular_file(entry, ignored))
        add_gguf(entry, models);
    } else if (is_hugging_face(entry)) {
      add_folder(entry, models);
    } else if (levels_below > 0) {
      add_models(entry, levels_below - 1, models);
    }
  }
}

std::vector<std::string> names_of(const std::vector<LibraryModel>& models) {
  std::vector<std::string> names;
  for (const LibraryModel& model : models) names.push_back(model.name);
  return names;
}

// "a, b, c and 5 more".
std::string listed(std::vector<std::string> names) {
  const size_t more = names.size() - std::min(names.size(), kMostNamed);
  names.resize(names.size() - more);
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  return more == 0 ? text : fmt::format("{} and {} more", text, more);
}

Error not_found(std::string message) { return {ErrorKind::kNotFound, std::move(message)}; }

// The model that a folder is, or the only model in it.
Result<LibraryModel> model_in_folder(const fs::path& folder) {
  std::vector<LibraryModel> models;
  if (is_hugging_face(folder)) {
    add_folder(folder, models);
    return models.front();
  }
  add_models(folder, 0, models);
  if (models.size() == 1) return models.front();
  if (models.empty())
    return not_found(
        fmt::format("{}: no model in this folder: it has neither a .gguf file nor a config.json",
                    folder.string()));
  return Error{ErrorKind::kInvalid,
               fmt::format("{}: this folder has several models; choose one of {}", folder.string(),
                           listed(names_of(models)))};
}

// The models whose name is `wanted`; if there are none, those whose name begins with it.
std::vector<LibraryModel> models_named(const std::string& wanted,
                                       const std::vector<LibraryModel>& models) {
  std::vector<LibraryModel> equal, beginning;
  for (const LibraryModel& model : models) {
    const std::string name = lower_case(model.name);
    if (name == wanted) equal.push_back(model);
    if (name.starts_with(wanted)) beginning.push_back(model);
  }
  return equal.empty() ? beginning : equal;
}

// The model's path in the models folder, for a name that is the file's or folder's own.
std::optional<fs::path> path_in(const fs::path& folder, const std::string& wanted) {
  if (folder.empty()) return {};
  std::error_code ignored;
  const fs::path path = folder / wanted;
  if (fs::is_regular_file(path, ignored) || is_hugging_face(path)) return path;
  const fs::path file = folder / (wanted + ".gguf");
  return fs::is_regular_file(file, ignored) ? std::optional(file) : std::nullopt;
}

Error no_such_model(const std::string& wanted, const fs::path& folder,
                    const std::vector<LibraryModel>& models) {
  const std::vector<std::string> near = near_words(wanted, names_of(models));
  if (!near.empty())
    return not_found(fmt::format("there is no model {}{}", in_quotes(wanted), did_you_mean(near)));
  if (folder.empty())
    return not_found(fmt::format("there is no model {}: give the path of a .gguf file or a folder",
                                 in_quotes(wanted)));
  return not_found(
      fmt::format("there is no model {}, neither as a path nor in {} (see hearth list)",
                  in_quotes(wanted), folder.string()));
}

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace

fs::path models_folder() {
  if (const auto folder = variable("HEARTH_MODELS")) return *folder;
  if (const auto data = variable("XDG_DATA_HOME")) return fs::path(*data) / "hearth/models";
  if (const auto home = variable("HOME")) return fs::path(*home) / ".local/share/hearth/models";
  return {};
}

std::vector<LibraryModel> list_models(const fs::path& folder) {
  std::vector<LibraryModel> models;
  if (!folder.empty()) add_models(folder, kLevelsBelow, models);
  std::ranges::stable_sort(models, {},
                           [](const LibraryModel& model) { return lower_case(model.name); });
  return models;
}

Result<LibraryModel> find_model(const std::string& wanted, const fs::path& folder) {
  if (wanted.empty()) return built_in_model();
  std::error_code error;
  if (fs::is_directory(wanted, error)) return model_in_folder(wanted);
  if (fs::exists(wanted, error))
    return LibraryModel{
        .name = model_name(wanted), .path = wanted, .format = "GGUF", .bytes = bytes_of(wanted)};
  // A name with a slash is a path: to a file or folder here, or in the models folder.
  if (wanted.find('/') != std::string::npos) {
    if (!folder.empty() && fs::path(wanted).is_relative() && fs::exists(folder / wanted, error))
      return find_model((folder / wanted).string(), {});
    return not_found(fmt::format("{}: no such file or folder", wanted));
  }
  if (const auto path = path_in(folder, wanted)) return find_model(path->string(), {});
  std::vector<LibraryModel> models = list_models(folder);
  std::string name = lower_case(wanted);
  if (name.ends_with(".gguf")) name.resize(name.size() - std::string_view(".gguf").size());
  std::vector<LibraryModel> found = models_named(name, models);
  if (found.empty()) {
    found = models_named(name, {built_in_model()});
    models.push_back(built_in_model());
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) return no_such_model(wanted, folder, models);
  // A name that several models have is no choice; their paths are.
  std::vector<std::string> choices;
  for (const LibraryModel& model : found) {
    const auto same_name = std::ranges::count_if(found, [&](const LibraryModel& other) {
      return lower_case(other.name) == lower_case(model.name);
    });
    choices.push_back(same_name > 1 ? fs::relative(model.path, folder, error).string()
                                    : model.name);
  }
  return Error{ErrorKind::kInvalid,
               fmt::format("{} could be any of {}", in_quotes(wanted), listed(std::move(choices)))};
}

Result<LibraryModel> find_model(const std::string& wanted) {
  return find_model(wanted, models_folder());
}

}  // namespace hearth
