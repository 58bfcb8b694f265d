// The model that chats talk to, or the reason why there is none.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ui/data/chat_answer.h"
#include "ui/panel.h"

namespace hearth {

// Valid only while the host's engine is; find it again in every frame.
struct ActiveModel {
  std::optional<ChatModel> model;
  std::string name;
  std::string reason;   // why there is no model
  float progress = -1;  // of loading, 0 to 1; negative: nothing is loading
};
ActiveModel find_active_model(const PanelContext& context);

// Example questions that suit the model of this name.
std::span<const char* const> chat_examples(std::string_view model);

}  // namespace hearth
