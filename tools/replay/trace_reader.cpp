#include "tools/replay/trace_reader.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/weights/json_text.h"
#include "runtime/rounding.h"
#include "tools/replay/parse_number.h"
#include "tools/replay/synthetic_trace.h"

namespace hearth {
namespace {

constexpr std::string_view kAzureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens";
constexpr uint32_t kMooncakeTokensPerId = 512;
constexpr uint32_t kMaxLineTokens = 16'000'000;
constexpr size_t kShownBytes = 40;  // most bytes of a wrong value in a message

// A line of kMaxLineTokens has 31,250 prefix ids.
constexpr size_t kMaxLineBytes = 1 << 20;
// More would neither fit into memory nor end in reasonable time.
constexpr size_t kMaxRequests = 20'000'000;

// Reads lines and counts them for error messages.
class TraceLines {
 public:
  TraceLines(std::istream& text, const std::string& name)
      : text_(text), name_(name), buffer_(kMaxLineBytes + 1) {}

  // False at the end of the text, and at a line that is too long, which at_end() tells.
  bool next() {
    text_.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    auto bytes = static_cast<size_t>(text_.gcount());
    if (bytes == 0) return false;
    ++number_;
    too_long_ = text_.fail();
    if (too_long_) return false;
    if (!text_.eof()) --bytes;  // the end of the line
    line_ = std::string_view(buffer_.data(), bytes);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    return true;
  }
  std::string_view line() const { return line_; }
  // Whether the text ended as it should.
  Status at_end() const {
    return too_long_ ? wrong(fmt::format("longer than {} bytes", kMaxLineBytes)) : Status();
  }

  Error wrong(std::string_view message) const {
    return {ErrorKind::kInvalid, fmt::format("{}, line {}: {}", name_, number_, message)};
  }
  Error wrong_field(std::string_view field, std::string_view value, std::string_view why) const {
    return wrong(fmt::format("{} '{}' {}", field, value.substr(0, kShownBytes), why));
  }

 private:
  std::istream& text_;
  const std::string& name_;
  std::vector<char> buffer_;
  std::string_view line_;
  size_t number_ = 0;
  bool too_long_ = false;
};

// Removes the first field from the line and returns it.
std::string_view take_field(std::string_view& line) {
  const size_t comma = line.find(',');
  const std::string_view field = line.substr(0, comma);
  line = comma == std::string_view::npos ? std::string_view() : line.substr(comma + 1);
  return field;
}

// Whether the text starts like `form`, in which d stands for any digit.
bool begins_like(std::string_view text, std::string_view form) {
  if (text.size() < form.size()) return false;
  return std::equal(form.begin(), form.end(), text.begin(), [](char wanted, char c) {
    return wanted == 'd' ? c >= '0' && c <= '9' : c == wanted;
  });
}

// Removes "Z", "+02:00" or the like from the end. Returns the offset from UTC in seconds.
double take_zone(std::string_view& text) {
  if (text.ends_with('Z')) text.remove_suffix(1);
  constexpr size_t kSize = 6;
  if (text.size() < kSize) return 0;
  const std::string_view zone = text.substr(text.size() - kSize);
  if (!begins_like(zone, "+dd:dd") && !begins_like(zone, "-dd:dd")) return 0;
  text.remove_suffix(kSize);
  const double seconds = *parse_number<uint32_t>(zone.substr(1, 2)) * 3600.0 +
                         *parse_number<uint32_t>(zone.substr(4, 2)) * 60.0;
  return zone[0] == '-' ? -seconds : seconds;
}

// Parses "2023-11-16 18:15:46.6805900" or "2024-05-10 00:00:00.009930+00:00" to seconds since 1970,
// without leap seconds.
std::optional<double> parse_time(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-dd dd:dd:dd";
  if (!begins_like(text, kForm)) return std::nullopt;
  const auto number = [&](size_t from, size_t digits) {
    return *parse_number<uint32_t>(text.substr(from, digits));
  };
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(number(0, 4))),
                                         std::chrono::month(number(5, 2)),
                                         std::chrono::day(number(8, 2))};
  const uint32_t hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  double fraction = 0;
  std::string_view rest = text.substr(kForm.size());
  const double zone = take_zone(rest);
  if (!rest.empty()) {
    const auto digits =
        rest.size() > 1 && rest[0] == '.' ? parse_number<uint64_t>(rest.substr(1)) : std::nullopt;
    if (!digits) return std::nullopt;
    fraction = static_cast<double>(*digits);
    for (size_t i = 1; i < rest.size(); ++i) fraction /= 10;
  }
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return static_cast<double>(days) * 86400.0 + hour * 3600.0 + minute * 60.0 + second + fraction -
         zone;
}

Result<uint32_t> parse_tokens(const TraceLines& lines, std::string_view field,
                              std::string_view value) {
  const auto tokens = parse_number<uint32_t>(value);
  if (!tokens || *tokens < 1 || *tokens > kMaxLineTokens)
    return lines.wrong_field(field, value, "is not a number of tokens, at least 1");
  return *tokens;
}

// Sets the arrival relative to the first request's, which is kept in `first`.
Status set_arrival(const TraceLines& lines, std::string_view field, double absolute,
                   std::optional<double>& first, const Trace& trace, TraceRequest& request) {
  if (!first) first = absolute;
  request.arrival_seconds = absolute - *first;
  if (!trace.requests.empty() && request.arrival_seconds < trace.requests.back().arrival_seconds)
    return lines.wrong(fmt::format("{} is earlier than in the line before", field));
  if (request.arrival_seconds > kLatestArrivalSeconds)
    return lines.wrong(
        fmt::format("{} is more than {:g} seconds after the first", field, kLatestArrivalSeconds));
  return {};
}

bool full(const Trace& trace, size_t limit) { return limit > 0 && trace.requests.size() >= limit; }

Status add_request(const TraceLines& lines, TraceRequest request, Trace& trace) {
  if (trace.requests.size() == kMaxRequests)
    return lines.wrong(
        fmt::format("more than {} requests; --limit N reads the first N", kMaxRequests));
  trace.requests.push_back(std::move(request));
  return {};
}

Result<Trace> finished(const TraceLines& lines, Trace trace, const std::string& name) {
  HEARTH_TRY(lines.at_end());
  if (trace.requests.empty())
    return Error{ErrorKind::kInvalid, fmt::format("{} has no requests", name)};
  return trace;
}

Result<nlohmann::json> parse_json_line(const TraceLines& lines) {
  Result<nlohmann::json> object = parse_json(lines.line());
  if (!object.ok()) return lines.wrong(object.error().message);
  if (!object->is_object()) return lines.wrong("expected a JSON object");
  return object;
}

Result<uint64_t> get_number(const TraceLines& lines, const nlohmann::json& object,
                            const char* field, uint64_t least, uint64_t most) {
  const auto place = object.find(field);
  if (place == object.end()) return lines.wrong(fmt::format("{} is missing", field));
  if (!place->is_number_unsigned() || place->get<uint64_t>() < least ||
      place->get<uint64_t>() > most)
    return lines.wrong_field(field, place->dump(),
                             fmt::format("is not a number, at least {}", least));
  return place->get<uint64_t>();
}

Status read_hash_ids(const TraceLines& lines, const nlohmann::json& object, TraceRequest& request) {
  const auto ids = object.find("hash_ids");
  if (ids == object.end() || !ids->is_array())
    return lines.wrong("hash_ids is missing or not a list");
  const size_t most = divide_up(request.prompt_tokens, kMooncakeTokensPerId);
  if (ids->size() > most)
    return lines.wrong(fmt::format("hash_ids has {} entries; {} tokens can have at most {}",
                                   ids->size(), request.prompt_tokens, most));
  for (const nlohmann::json& id : *ids) {
    if (!id.is_number_unsigned()) return lines.wrong_field("hash_ids", id.dump(), "is not an id");
    request.prefix_ids.push_back(id.get<uint64_t>());
  }
  return {};
}

}  // namespace

Result<Trace> read_azure_csv(std::istream& text, const std::string& name, size_t limit) {
  TraceLines lines(text, name);
  if (!lines.next() || lines.line() != kAzureHeader)
    return Error{ErrorKind::kInvalid, fmt::format("{}, line 1: expected {}", name, kAzureHeader)};
  Trace trace;
  std::optional<double> first;
  while (!full(trace, limit) && lines.next()) {
    std::string_view rest = lines.line();
    if (rest.empty()) continue;
    if (std::count(rest.begin(), rest.end(), ',') != 2) return lines.wrong("expected three fields");
    const std::string_view time = take_field(rest), prompt = take_field(rest);
    TraceRequest request;
    const std::optional<double> absolute = parse_time(time);
    if (!absolute)
      return lines.wrong_field("TIMESTAMP", time, "is not like 2023-11-16 18:15:46.6805900");
    HEARTH_TRY(set_arrival(lines, "TIMESTAMP", *absolute, first, trace, request));
    HEARTH_ASSIGN(request.prompt_tokens, parse_tokens(lines, "ContextTokens", prompt));
    HEARTH_ASSIGN(request.generated_tokens, parse_tokens(lines, "GeneratedTokens", rest));
    HEARTH_TRY(add_request(lines, std::move(request), trace));
  }
  return finished(lines, std::move(trace), name);
}

Result<Trace> read_mooncake_jsonl(std::istream& text, const std::string& name, size_t limit) {
  TraceLines lines(text, name);
  Trace trace;
  std::optional<double> first;
  while (!full(trace, limit) && lines.next()) {
    if (lines.line().empty()) continue;
    HEARTH_ASSIGN(const nlohmann::json object, parse_json_line(lines));
    constexpr uint64_t kLongestMilliseconds = uint64_t{1} << 53;
    HEARTH_ASSIGN(const uint64_t time,
                  get_number(lines, object, "timestamp", 0, kLongestMilliseconds));
    HEARTH_ASSIGN(const uint64_t prompt,
                  get_number(lines, object, "input_length", 1, kMaxLineTokens));
    HEARTH_ASSIGN(const uint64_t output,
                  get_number(lines, object, "output_length", 1, kMaxLineTokens));
    TraceRequest request;
    request.prompt_tokens = static_cast<uint32_t>(prompt);
    request.generated_tokens = static_cast<uint32_t>(output);
    request.tokens_per_prefix_id = kMooncakeTokensPerId;
    const double seconds = static_cast<double>(time) / 1000.0;
    HEARTH_TRY(set_arrival(lines, "timestamp", seconds, first, trace, request));
    HEARTH_TRY(read_hash_ids(lines, object, request));
    HEARTH_TRY(add_request(lines, std::move(request), trace));
  }
  return finished(lines, std::move(trace), name);
}

Result<Trace> read_trace(const std::string& what, size_t limit) {
  if (what.starts_with(kSyntheticScheme)) return make_synthetic_trace(what, limit);
  std::ifstream file(what, std::ios::binary);
  if (!file || file.peek() == std::ifstream::traits_type::eof())
    return Error{ErrorKind::kIo,
                 fmt::format("cannot read the trace {}, or it is empty; give a file or "
                             "synthetic:n=64,prompt=16..120,gen=8..96",
                             what)};
  return read_trace(file, what, limit);
}

Result<Trace> read_trace(std::istream& text, const std::string& name, size_t limit) {
  return text.peek() == '{' ? read_mooncake_jsonl(text, name, limit)
                            : read_azure_csv(text, name, limit);
}

}  // namespace hearth
