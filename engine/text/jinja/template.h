// A chat template: Jinja as transformers' apply_chat_template runs it, bounded and sandboxed.
//
//   auto made = jinja::Template::parse("{% for m in messages %}{{ m.content }}{% endfor %}");
//   auto text = made->render({{"messages", &json}}, {});
//
// Parsed once, rendered any number of times, from any thread at once.
#pragma once

#include <atomic>
#include <ctime>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

#include "engine/text/jinja/budget.h"
#include "engine/text/jinja/rendering.h"
#include "runtime/result.h"

namespace hearth::jinja {

struct Syntax;

struct Variable {
  std::string_view name;
  const nlohmann::ordered_json* value = nullptr;
  Origin origin = Origin::kInput;
};

struct RenderOptions {
  Limits limits = {};
  // Another thread may set it, and rendering ends with an error within about a millisecond.
  const std::atomic<bool>* cancelled = nullptr;
  std::time_t now = 0;  // what strftime_now() tells, in local time
  // Strings in the data that count as the template's own text if they are exactly this.
  std::span<const std::string_view> template_words = {};
};

class Template {
 public:
  // An error begins "line N: ".
  static Result<Template> parse(std::string_view source);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // An error begins "line N: ", is one line, and is in the template's words where it refuses the
  // data by itself (raise_exception).
  Result<Rendering> render(std::span<const Variable> variables, const RenderOptions& options) const;

 private:
  explicit Template(std::unique_ptr<const Syntax> syntax);

  std::unique_ptr<const Syntax> syntax_;
};

}  // namespace hearth::jinja
