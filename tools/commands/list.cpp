// hearth list: the models that -m finds by name.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/model_library.h"
#include "engine/open_model_file.h"
#include "runtime/host/printable.h"
#include "runtime/memory.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"

namespace hearth {
namespace {

struct ListedModel {
  LibraryModel model;
  std::string architecture;  // empty: the file does not say
  std::string failure;       // why it cannot be read
};

ListedModel look_into(LibraryModel model) {
  ListedModel listed{.model = std::move(model), .architecture = {}, .failure = {}};
  const auto file = open_model_file(listed.model.path.string());
  if (!file.ok()) {
    listed.failure = file.error().message;
    return listed;
  }
  const auto architecture = (*file)->metadata().text("general.architecture");
  if (architecture.ok()) listed.architecture = architecture->value_or("");
  return listed;
}

class ListCommand : public Command {
 public:
  ListCommand() : Command(CommandGroup::kFiles, "list", "List the models that -m finds by name") {}

  void declare(Options& options) override {
    options.example("hearth list");
    options.example("HEARTH_MODELS=/data/models hearth list --json");
    add_json_option(options, &json_);
  }

  Status run() override {
    HEARTH_ASSIGN(const LibraryModel built_in, find_model(""));
    const std::filesystem::path folder = models_folder();
    std::vector<ListedModel> models = {look_into(built_in)};
    for (const LibraryModel& model : list_models(folder)) models.push_back(look_into(model));
    if (json_)
      print_json(folder, models);
    else
      print_table(folder, models);
    return {};
  }

 private:
  static void print_json(const std::filesystem::path& folder,
                         const std::vector<ListedModel>& models) {
    const auto text_or_null = [](const std::string& text) {
      return text.empty() ? nlohmann::json(nullptr) : nlohmann::json(text);
    };
    nlohmann::json list = nlohmann::json::array();
    for (const ListedModel& item : models)
      list.push_back({{"name", item.model.name},
                      {"path", text_or_null(item.model.path.string())},
                      {"bytes", item.model.bytes},
                      {"format", item.model.format},
                      {"arch", text_or_null(item.architecture)},
                      {"error", text_or_null(item.failure)}});
    fmt::print("{}\n", nlohmann::json{{"folder", folder.string()}, {"models", list}}.dump(
                           2, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  static void print_table(const std::filesystem::path& folder,
                          const std::vector<ListedModel>& models) {
    size_t width = std::string_view("name").size();
    for (const ListedModel& item : models) width = std::max(width, item.model.name.size());
    fmt::print("{:<{}}  {:>10}  {:<12}  {}\n", "name", width, "size", "format", "architecture");
    for (const ListedModel& item : models)
      fmt::print(
          "{:<{}}  {:>10}  {:<12}  {}\n", item.model.name, width, format_bytes(item.model.bytes),
          item.model.format,
          printable(item.failure.empty() ? item.architecture : "cannot be read: " + item.failure));
    if (models.size() > 1)
      fmt::print("\nModels folder: {}\n", printable(folder.string()));
    else
      fmt::print(
          "\nPut .gguf files or Hugging Face folders into {}\nto use them by name, or set "
          "HEARTH_MODELS to the folder that has them.\n",
          folder.empty() ? "~/.local/share/hearth/models" : printable(folder.string()));
  }

  bool json_ = false;
};

ListCommand list_command;

}  // namespace
}  // namespace hearth
