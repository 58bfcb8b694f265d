// The values that panels show, by name, such as "timeline.rows". Scripts wait for them, and tests
// check them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>

namespace hearth {

using ScriptValue = std::variant<double, std::string>;

class ValueSink {
 public:
  // Values set after this are named "prefix.name".
  void begin(std::string_view prefix) { prefix_ = std::string(prefix) + "."; }
  void set(std::string_view name, double number) { values_[prefix_ + std::string(name)] = number; }
  void set(std::string_view name, std::string text) {
    values_[prefix_ + std::string(name)] = std::move(text);
  }

  const std::map<std::string, ScriptValue>& values() const { return values_; }

 private:
  std::string prefix_;
  std::map<std::string, ScriptValue> values_;
};

}  // namespace hearth
