// What /set changes in a conversation, by the names that the command line's options have. No
// terminal here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/sampling/sampler.h"
#include "runtime/result.h"
#include "tools/sampling_choices.h"

namespace hearth {

struct ChatSettings {
  SamplingChoices sampling;  // what the user gave; the rest is the model's
  uint32_t max_tokens = 0;   // of an answer; 0: until the model ends or the context is full
};

// One line per setting, "temp = 0.7", as requests have them where the model's defaults are these.
std::vector<std::string> list_settings(const ChatSettings& settings,
                                       const SamplingOptions& defaults);

// Changes one: "temp 0.5", "temp=0.5", "--temp 0.5", "--temp=0.5"; "top_k" is "top-k". Returns its
// line. On an error, in words for the user, nothing has changed.
Result<std::string> change_setting(ChatSettings& settings, const SamplingOptions& defaults,
                                   std::string_view assignment);

}  // namespace hearth
