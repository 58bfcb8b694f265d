#include "tools/bench/decode_window.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/engine.h"
#include "tools/bench/model_bench.h"

namespace hearth {
namespace {

bool all_decode(const StepRecord& record, uint32_t batch) {
  return record.members.size() == batch &&
         std::ranges::all_of(record.members, [](const StepMember& member) {
           return member.phase == StepPhase::kDecode;
         });
}

}  // namespace

DecodeWindow& DecodeWindow::operator+=(const DecodeWindow& other) {
  tokens += other.tokens;
  steps += other.steps;
  rows += other.rows;
  seconds += other.seconds;
  host_seconds += other.host_seconds;
  for (const auto& [rows_of_step, times] : other.steps_by_rows) {
    std::vector<double>& own = steps_by_rows[rows_of_step];
    own.insert(own.end(), times.begin(), times.end());
  }
  return *this;
}

DecodeWindow decode_window(std::span<const StepRecord> records, uint32_t batch) {
  const std::vector<double> done = done_seconds(records);
  DecodeWindow window;
  // The window begins at the end of a step.
  size_t first = 1;
  while (first < records.size() && !all_decode(records[first], batch)) ++first;
  for (size_t i = first; i < records.size() && records[i].finished.empty(); ++i) {
    window.tokens += records[i].sampled_tokens;
    window.rows += records[i].tokens;
    ++window.steps;
    window.seconds = done[i] - done[first - 1];
    window.host_seconds += std::max(0.0, done[i] - done[i - 1] - records[i].run_seconds);
    window.steps_by_rows[records[i].tokens].push_back(done[i] - done[i - 1]);
  }
  return window;
}

Result<DecodeWindow> decode_together(Engine& engine, std::vector<GenerationRequest> requests) {
  const auto batch = static_cast<uint32_t>(requests.size());
  const uint64_t first_record = engine.records().written();
  HEARTH_ASSIGN(std::vector<TokenStream> streams, engine.submit(std::move(requests)));
  for (TokenStream& stream : streams) {
    while (stream.next()) {
    }
    if (stream.end().reason == FinishReason::kError)
      return Error{ErrorKind::kInternal, stream.end().message};
  }
  std::vector<StepRecord> records;
  for (uint64_t i = first_record; i < engine.records().written(); ++i)
    if (StepRecord record; engine.records().read(i, record)) records.push_back(std::move(record));
  const DecodeWindow window = decode_window(records, batch);
  if (window.steps == 0)
    return Error{ErrorKind::kInternal,
                 fmt::format("{} sequences never decoded together: give a larger -n", batch)};
  return window;
}

}  // namespace hearth
