// The guard functions that template_guard writes into templates, with the limits they keep, for one
// run of one template. The only header that shows minja; private to chat_template.
#pragma once

#include <cstddef>
#include <ctime>
#include <memory>
#include <minja/minja.hpp>

namespace hearth {

struct TemplateLimits {
  std::size_t template_bytes = 0;
  std::size_t input_bytes = 0;  // the conversation's
};

// A context to run a guarded template in: minja's functions, bounded where they are not, the guard
// functions, and strftime_now. Limits count from here. Their violation is an exception.
std::shared_ptr<minja::Context> limited_context(const TemplateLimits& limits, std::time_t now);

}  // namespace hearth
