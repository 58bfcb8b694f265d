// The model that answers in a conversation. It can be replaced by another one, which continues with
// the same conversation.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/session.h"
#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

// How models are found and loaded: as -m does it, with all the other options of the command line.
struct ModelOpener {
  std::function<Result<std::unique_ptr<ModelFile>>(const std::string& name)> find;
  std::function<Result<std::unique_ptr<Session>>(std::unique_ptr<ModelFile> file)> load;
};

class ReplaceableModel {
 public:
  // `name` is what -m takes. Fails for a model that cannot chat: one without a vocabulary or with a
  // template that cannot be run.
  static Result<ReplaceableModel> open(ModelOpener opener, std::string name);

  // Unloads the model and loads another one in its place, because two may not fit the device. On an
  // error the old model answers as before; it was only unloaded if the other one looked right and
  // still could not be loaded. If the old one cannot be loaded again either, there is none:
  // loaded() is false.
  Status replace(const std::string& name);

  bool loaded() const { return session_ != nullptr; }
  // REQUIRES: loaded(). What these return is gone after replace().
  Session& session() const { return *session_; }
  const ChatTemplate& chat_template() const { return **session_->chat_template(); }
  uint32_t context() const { return session_->runner().options().limits.context; }

 private:
  explicit ReplaceableModel(ModelOpener opener) : opener_(std::move(opener)) {}
  Status load(const std::string& name, std::unique_ptr<ModelFile> file);

  ModelOpener opener_;
  std::string name_;
  std::unique_ptr<Session> session_;
};

}  // namespace hearth
