#include "tools/chat/chat_settings.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "engine/sampling/sampler.h"
#include "engine/weights/in_quotes.h"
#include "tools/trimmed.h"

namespace hearth {
namespace {

// The whole text as a number that the type can hold.
template <class Number>
bool parse_setting(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end;
}

// A setting by the name of its option, and by others that users of other programs may try.
struct Setting {
  std::string_view name, other_name;
  // False if the text is no such number.
  bool (*set)(ChatSettings& settings, std::string_view text);
  std::string (*show)(const SamplingOptions& sampling, const ChatSettings& settings);
};

template <auto Member>
bool choose_sampling(ChatSettings& settings, std::string_view text) {
  auto& choice = settings.sampling.*Member;
  typename std::remove_reference_t<decltype(choice)>::value_type value{};
  if (!parse_setting(text, value)) return false;
  choice = value;
  return true;
}

template <auto Member>
std::string show_sampling(const SamplingOptions& sampling, const ChatSettings&) {
  return fmt::format("{}", sampling.*Member);
}

constexpr Setting kSettings[] = {
    {"temp", "temperature", choose_sampling<&SamplingChoices::temperature>,
     show_sampling<&SamplingOptions::temperature>},
    {"top-k", "", choose_sampling<&SamplingChoices::top_k>, show_sampling<&SamplingOptions::top_k>},
    {"top-p", "", choose_sampling<&SamplingChoices::top_p>, show_sampling<&SamplingOptions::top_p>},
    {"min-p", "", choose_sampling<&SamplingChoices::min_p>, show_sampling<&SamplingOptions::min_p>},
    {"repeat-penalty", "repetition-penalty", choose_sampling<&SamplingChoices::repetition_penalty>,
     show_sampling<&SamplingOptions::repetition_penalty>},
    {"presence-penalty", "", choose_sampling<&SamplingChoices::presence_penalty>,
     show_sampling<&SamplingOptions::presence_penalty>},
    {"frequency-penalty", "", choose_sampling<&SamplingChoices::frequency_penalty>,
     show_sampling<&SamplingOptions::frequency_penalty>},
    {"seed", "", choose_sampling<&SamplingChoices::seed>, show_sampling<&SamplingOptions::seed>},
    {"tokens", "n",
     [](ChatSettings& settings, std::string_view text) {
       return parse_setting(text, settings.max_tokens);
     },
     [](const SamplingOptions&, const ChatSettings& settings) {
       return fmt::format("{}", settings.max_tokens);
     }},
};

std::string setting_line(const Setting& setting, const ChatSettings& settings,
                         const SamplingOptions& defaults) {
  return fmt::format("{} = {}", setting.name,
                     setting.show(settings.sampling.over(defaults), settings));
}

}  // namespace

std::vector<std::string> list_settings(const ChatSettings& settings,
                                       const SamplingOptions& defaults) {
  std::vector<std::string> lines;
  for (const Setting& setting : kSettings)
    lines.push_back(setting_line(setting, settings, defaults));
  return lines;
}

Result<std::string> change_setting(ChatSettings& settings, const SamplingOptions& defaults,
                                   std::string_view assignment) {
  assignment = trimmed(assignment);
  const size_t end = assignment.find_first_of(" \t=");
  std::string name(assignment.substr(0, end));
  std::string_view value =
      end == std::string_view::npos ? std::string_view() : trimmed(assignment.substr(end));
  if (value.starts_with('=')) value = trimmed(value.substr(1));
  name.erase(0, name.find_first_not_of('-'));
  std::ranges::replace(name, '_', '-');

  const auto setting = std::ranges::find_if(kSettings, [&](const Setting& each) {
    return name == each.name || (!name.empty() && name == each.other_name);
  });
  if (setting == std::end(kSettings))
    return invalid(fmt::format("There is no setting {}. Type /set to list them.", in_quotes(name)));
  if (value.empty())
    return invalid(fmt::format("/set {} needs a value, for example /set temp 0.7.", setting->name));
  ChatSettings changed = settings;
  if (!setting->set(changed, value))
    return invalid(fmt::format("{} is not a valid value for {}.", in_quotes(value), setting->name));
  // The same rules as for any request.
  if (const auto row = make_sampling_row(changed.sampling.over(defaults), {}); !row.ok())
    return invalid(fmt::format("{}.", row.error().message));
  settings = changed;
  return setting_line(*setting, settings, defaults);
}

}  // namespace hearth
