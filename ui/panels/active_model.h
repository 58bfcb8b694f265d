// Who a chat talks to: the model that is open, or why there is none.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ui/data/chat_answer.h"
#include "ui/panel.h"

namespace hearth {

// Valid while the host's engine is; look again in every frame.
struct ActiveModel {
  std::optional<ChatModel> model;
  std::string name;
  std::string reason;   // without a model
  float progress = -1;  // of loading; below 0: nothing loads
};
ActiveModel find_active_model(const PanelContext& context);

// What may be asked of a model of that name, to begin with.
std::span<const char* const> chat_examples(std::string_view model);

}  // namespace hearth
