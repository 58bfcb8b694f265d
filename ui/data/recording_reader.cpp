// Recordings come from anywhere, so every value is checked. Moments are taken out of the text one
// by one, because all of them together would need many times the file's size.
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include <fmt/format.h>

#include "engine/weights/json_text.h"
#include "runtime/host/read_file.h"
#include "tools/server/step_event.h"
#include "ui/data/recording.h"

namespace hearth {
namespace {

using nlohmann::json;

constexpr uint64_t kMostRecordingBytes = uint64_t{1} << 30;
constexpr JsonLimits kRecordingLimits{
    .depth = 12, .token_bytes = 64 * 1024, .total_bytes = kMostRecordingBytes};
constexpr uint64_t kMostBlocks = 1 << 22;

class RecordingReader {
 public:
  Result<ViewHistory> read(std::string_view text) {
    HEARTH_TRY(check_json_limits(text, kRecordingLimits));
    const json root = json::parse(
        text.begin(), text.end(),
        [this](int depth, json::parse_event_t event, json& value) {
          return keep(depth, event, value);
        },
        /*allow_exceptions=*/false);
    if (!wrong_.empty()) return invalid(wrong_);
    if (root.is_discarded()) return invalid("it is damaged or cut off: it is not valid JSON");
    if (!root.is_object() || !root.contains("hearth") || !root["hearth"].is_object())
      return invalid("it has no events of the dashboard in it");
    const json& own = root["hearth"];
    if (!own.contains("version") || own["version"] != 1)
      return invalid("it was recorded by another version of the dashboard");
    if (history_.empty()) return invalid("it has no steps in it");
    history_.set_names(text_of(own, "source"), text_of(own, "model"), text_of(own, "device"));
    return std::move(history_);
  }

 private:
  static std::string text_of(const json& object, const char* name) {
    return object.contains(name) && object[name].is_string() ? object[name].get<std::string>()
                                                             : std::string();
  }

  // Leaves the trace out of the tree, and takes moments out of it.
  bool keep(int depth, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::key && depth == 1) {
      inside_ = value == "hearth";
      return inside_;
    }
    if (event == json::parse_event_t::key && depth == 2)
      in_moments_ = inside_ && value == "moments";
    if (event != json::parse_event_t::object_end || depth != 3 || !in_moments_) return true;
    if (wrong_.empty()) take(value);
    return false;
  }

  void complain(std::string_view what) {
    if (wrong_.empty()) wrong_ = fmt::format("moment {}: {}", moments_, what);
  }

  // Reads a row of whole numbers; others than `numbers` of them are a mistake.
  bool read_row(const json& row, std::span<uint64_t> numbers, const char* what) {
    bool good = row.is_array() && row.size() == numbers.size();
    for (size_t i = 0; good && i < numbers.size(); ++i) {
      good = row[i].is_number_unsigned();
      if (good) numbers[i] = row[i].get<uint64_t>();
    }
    if (!good) complain(fmt::format("{} must be {} whole numbers", what, numbers.size()));
    return good;
  }
  uint64_t number(const json& object, const char* name) {
    if (!object.contains(name)) return 0;
    if (!object[name].is_number_unsigned()) complain(fmt::format("{} must be a number", name));
    return object[name].is_number_unsigned() ? object[name].get<uint64_t>() : 0;
  }
  double seconds(const json& object, const char* name) {
    if (!object.contains(name)) return 0;
    const double value = object[name].is_number() ? object[name].get<double>() : NAN;
    if (!std::isfinite(value) || std::abs(value) > 1e12)
      complain(fmt::format("{} must be a time", name));
    return std::isfinite(value) ? value : 0;
  }
  const json& list(const json& object, const char* name) {
    static const json kNone = json::array();
    if (!object.contains(name)) return kNone;
    if (object[name].is_array()) return object[name];
    complain(fmt::format("{} must be a list", name));
    return kNone;
  }
  uint32_t small(uint64_t value) {
    if (value > UINT32_MAX) complain("a number is too large");
    return static_cast<uint32_t>(value);
  }

  void take(const json& object) {
    ++moments_;
    RecordedMoment moment;
    moment.now = seconds(object, "now");
    const uint64_t state = number(object, "state");
    if (state > static_cast<uint64_t>(EngineState::kFailed)) complain("an unknown state");
    moment.state = static_cast<EngineState>(state);
    moment.restart = number(object, "restart");
    moment.restart_seconds = seconds(object, "restart_seconds");
    read_counts(object, moment.counts);
    read_totals(object, moment.totals);
    if (object.contains("hello")) {
      Result<EngineHello> hello = parse_hello_event(object["hello"].dump());
      if (!hello.ok()) return complain(hello.error().message);
      policy_ = hello->policy;
      limits_ = hello->limits;
    }
    moment.policy = policy_;
    moment.limits = limits_;
    if (object.contains("snapshot")) read_snapshot(object["snapshot"], moment);
    std::vector<StepRecord> steps;
    for (const json& event : list(object, "steps")) {
      Result<StepRecord> step = read_step_event(event);
      if (!step.ok()) return complain(step.error().message);
      if (step->step <= last_step_ || step->end_seconds < last_seconds_)
        return complain("its steps are not in order");
      last_step_ = step->step;
      last_seconds_ = step->end_seconds;
      steps.push_back(std::move(*step));
    }
    const uint64_t missed = number(object, "missed");
    if (wrong_.empty()) history_.add(std::move(steps), std::move(moment), missed);
  }

  void read_counts(const json& object, SchedulerCounts& counts) {
    std::array<uint64_t, 13> n{};
    if (!object.contains("counts") || !read_row(object["counts"], n, "counts")) return;
    uint32_t* const numbers[] = {&counts.waiting,         &counts.running,
                                 &counts.swapped,         &counts.ending,
                                 &counts.blocks_used,     &counts.blocks_cached,
                                 &counts.blocks_free,     &counts.blocks_reserved,
                                 &counts.blocks_shared,   &counts.swap_used,
                                 &counts.swap_total};
    for (size_t i = 0; i < std::size(numbers); ++i) *numbers[i] = small(n[i]);
    counts.kv_tokens = n[11];
    counts.wasted_tokens = n[12];
  }

  // Recordings of earlier versions have none.
  void read_totals(const json& object, EngineTotals& totals) {
    std::array<uint64_t, 10> n{};
    if (!object.contains("totals") || !read_row(object["totals"], n, "totals")) return;
    totals = {n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9]};
  }

  void read_snapshot(const json& object, RecordedMoment& moment) {
    if (!object.is_object()) return complain("snapshot must be an object");
    moment.has_snapshot = true;
    moment.snapshot_step = number(object, "step");
    const uint64_t blocks = number(object, "blocks");
    if (blocks > kMostBlocks) return complain("it has too many blocks");
    moment.blocks = static_cast<uint32_t>(blocks);
    for (const json& row : list(object, "changed")) {
      std::array<uint64_t, 7> n{};
      if (!read_row(row, n, "a block")) return;
      if (n[0] >= blocks || n[1] > static_cast<uint64_t>(BlockState::kWithheld))
        return complain("a block that cannot be");
      moment.changed.emplace_back(static_cast<uint32_t>(n[0]),
                                  BlockView{.state = static_cast<BlockState>(n[1]),
                                            .owner = n[2],
                                            .references = small(n[3]),
                                            .filled = small(n[4]),
                                            .hash = n[5],
                                            .last_use = n[6]});
    }
    for (const json& row : list(object, "sequences")) {
      std::array<uint64_t, 14> n{};
      if (!read_row(row, n, "a sequence")) return;
      if (n[1] > static_cast<uint64_t>(SequenceState::kEnding))
        return complain("a sequence in an unknown state");
      moment.sequences.push_back(
          {.id = n[0],
           .state = static_cast<SequenceState>(n[1]),
           .slot = small(n[2]),
           .priority = static_cast<int32_t>(static_cast<int64_t>(small(n[3])) - (int64_t{1} << 31)),
           .prompt_tokens = small(n[4]),
           .committed = small(n[5]),
           .proposed = small(n[6]),
           .computed = small(n[7]),
           .max_tokens = small(n[8]),
           .pending = n[9] != 0,
           .ready = n[10] != 0,
           .batch = n[11],
           .blocks = small(n[12]),
           .preemptions = small(n[13])});
    }
  }

  ViewHistory history_;
  std::string wrong_;
  bool inside_ = false, in_moments_ = false;
  uint64_t moments_ = 0, last_step_ = 0;
  double last_seconds_ = -1e12;
  Policy policy_;
  SchedulerLimits limits_;
};

}  // namespace

Result<ViewHistory> parse_recording(std::string_view text) { return RecordingReader().read(text); }

Result<ViewHistory> read_recording(const std::string& path) {
  HEARTH_ASSIGN(const std::string text, read_file(path, {.most_bytes = kMostRecordingBytes}));
  Result<ViewHistory> history = parse_recording(text);
  if (!history.ok())
    return Error{history.error().kind,
                 fmt::format("{} is not a recording: {}", path, history.error().message)};
  return history;
}

}  // namespace hearth
