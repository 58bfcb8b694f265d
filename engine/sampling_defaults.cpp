#include "engine/sampling_defaults.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <variant>

#include <fmt/format.h>

#include "engine/weights/in_quotes.h"

namespace hearth {
namespace {

std::string value_text(const MetadataValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<uint64_t>(&value)) return fmt::format("{}", *number);
  if (const auto* number = std::get_if<int64_t>(&value)) return fmt::format("{}", *number);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{:g}", *number);
  if (const auto* text = std::get_if<std::string>(&value)) return in_quotes(*text);
  return "a list";
}

// Applies one setting after the other, and records which were valid.
class DefaultsReader {
 public:
  DefaultsReader(const Metadata& metadata, SamplingDefaults& defaults)
      : metadata_(metadata), defaults_(defaults) {}

  std::optional<float> number(std::string_view key, std::string_view name, double least,
                              double most) {
    const MetadataValue* const value = metadata_.find(key);
    if (value == nullptr) return std::nullopt;
    const auto number = metadata_.number(key);
    if (number.ok() && **number >= least && **number <= most) {
      defaults_.from_model.push_back(name);
      return static_cast<float>(**number);
    }
    ignore(name, *value, fmt::format("a number from {} to {}", least, most));
    return std::nullopt;
  }

  std::optional<uint32_t> whole_number(std::string_view key, std::string_view name, uint32_t most) {
    const MetadataValue* const value = metadata_.find(key);
    if (value == nullptr) return std::nullopt;
    const auto number = metadata_.unsigned_integer(key);
    if (number.ok() && **number <= most) {
      defaults_.from_model.push_back(name);
      return static_cast<uint32_t>(**number);
    }
    ignore(name, *value, fmt::format("a whole number from 0 to {}", most));
    return std::nullopt;
  }

  std::optional<bool> flag(std::string_view key, std::string_view name) {
    const MetadataValue* const value = metadata_.find(key);
    if (value == nullptr) return std::nullopt;
    if (const auto flag = metadata_.boolean(key); flag.ok()) return **flag;
    ignore(name, *value, "true or false");
    return std::nullopt;
  }

 private:
  void ignore(std::string_view name, const MetadataValue& value, std::string_view wanted) {
    defaults_.ignored += fmt::format("{}{} is {}, not {}", defaults_.ignored.empty() ? "" : "; ",
                                     name, value_text(value), wanted);
  }

  const Metadata& metadata_;
  SamplingDefaults& defaults_;
};

}  // namespace

SamplingDefaults sampling_defaults(const Metadata& metadata) {
  SamplingDefaults defaults;
  SamplingOptions& options = defaults.options;
  DefaultsReader reader(metadata, defaults);
  // The ranges that the HTTP API takes.
  const auto temperature = reader.number("general.sampling.temp", "temperature", 0, 100);
  const auto top_k =
      reader.whole_number("general.sampling.top_k", "top_k", std::numeric_limits<int32_t>::max());
  const auto top_p = reader.number("general.sampling.top_p", "top_p", 0, 1);
  const auto min_p = reader.number("general.sampling.min_p", "min_p", 0, 1);
  if (temperature || top_k || top_p || min_p) {
    const SamplingOptions off;
    options.temperature = temperature.value_or(off.temperature);
    options.top_k = top_k.value_or(off.top_k);
    options.top_p = top_p.value_or(off.top_p);
    options.min_p = min_p.value_or(off.min_p);
  }
  options.repetition_penalty =
      reader.number("general.sampling.penalty_repeat", "repetition_penalty", 0.01, 100)
          .value_or(options.repetition_penalty);
  const auto set = [&](std::string_view key, std::string_view name, float& value, double least,
                       double most) {
    value = reader.number(key, name, least, most).value_or(value);
  };
  set("general.sampling.typical_p", "typical_p", options.typical_p, 0, 1);
  set("general.sampling.epsilon_cutoff", "epsilon_cutoff", options.epsilon_cutoff, 0, 1);
  set("general.sampling.eta_cutoff", "eta_cutoff", options.eta_cutoff, 0, 1);
  set("general.sampling.xtc_probability", "xtc_probability", options.xtc_probability, 0, 1);
  set("general.sampling.xtc_threshold", "xtc_threshold", options.xtc_threshold, 0, 1);
  set("general.sampling.mirostat_tau", "mirostat_tau", options.mirostat_tau, 0, 100);
  set("general.sampling.mirostat_eta", "mirostat_eta", options.mirostat_eta, 0, 10);
  options.mirostat = reader.whole_number("general.sampling.mirostat", "mirostat", 2).value_or(0);
  if (options.mirostat == 1) {
    options.mirostat = 0;
    defaults.ignored += fmt::format("{}mirostat is 1, which is not supported",
                                    defaults.ignored.empty() ? "" : "; ");
  }
  if (reader.flag("general.sampling.do_sample", "do_sample") == false) {
    options.temperature = 0;
    if (!temperature) defaults.from_model.insert(defaults.from_model.begin(), "temperature");
  }
  return defaults;
}

}  // namespace hearth
