#include "tools/chat/replaceable_model.h"

#include <utility>

#include <fmt/format.h>

#include "runtime/log.h"

namespace hearth {
namespace {

// Everything that can be wrong with a model and is known before it is loaded.
Status check_can_chat(const ModelFile& file) {
  HEARTH_TRY(plan_model(file));
  HEARTH_ASSIGN(const Vocabulary vocabulary, read_vocabulary(file));
  if (vocabulary.kind == VocabularyKind::kNone)
    return Error{ErrorKind::kUnsupported,
                 fmt::format("{} has no vocabulary, so it cannot chat", file.name())};
  const auto chat = ChatTemplate::create(vocabulary);
  if (!chat.ok()) return chat.error();
  return {};
}

}  // namespace

Result<ReplaceableModel> ReplaceableModel::open(ModelOpener opener, std::string name) {
  ReplaceableModel model(std::move(opener));
  HEARTH_ASSIGN(std::unique_ptr<ModelFile> file, model.opener_.find(name));
  HEARTH_TRY(check_can_chat(*file));
  HEARTH_TRY(model.load(name, std::move(file)));
  return model;
}

Status ReplaceableModel::load(const std::string& name, std::unique_ptr<ModelFile> file) {
  HEARTH_ASSIGN(session_, opener_.load(std::move(file)));
  name_ = name;
  if (chat_template().source() == ChatTemplate::Source::kChatMl) log_line(kChatMlNotice);
  return {};
}

Status ReplaceableModel::replace(const std::string& name) {
  HEARTH_ASSIGN(std::unique_ptr<ModelFile> file, opener_.find(name));
  HEARTH_TRY(check_can_chat(*file));
  session_.reset();
  const Status loaded = load(name, std::move(file));
  if (loaded.ok()) return {};
  auto old = opener_.find(name_);
  const Status restored = old.ok() ? load(name_, std::move(old).value()) : Status(old.error());
  if (!restored.ok()) session_.reset();
  return loaded;
}

}  // namespace hearth
