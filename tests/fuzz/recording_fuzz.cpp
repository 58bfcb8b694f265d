// Recordings of the dashboard: any bytes end in a history or in an error of one line, and every
// step of a history can be shown.
#include <cstdlib>

#include "tests/fuzz/fuzz.h"
#include "tools/server/step_event.h"
#include "ui/data/recording.h"

namespace hearth {

std::vector<std::string> fuzz::seeds() {
  StepRecord record;
  record.step = 7;
  record.members.resize(2);
  record.arrived.resize(1);
  record.finished = {3};
  const std::string moment =
      R"({"now":1.5,"state":0,"restart":1,"restart_seconds":0.5,"counts":[1,2,3,4,5,6,7,8,9,10,11,12,13],)"
      R"("hello":)" +
      hello_event({}).dump() +
      R"(,"snapshot":{"step":7,"blocks":2,"changed":[[0,1,3,1,16,5,7],[1,0,0,0,0,0,0]],)"
      R"("sequences":[[3,2,0,2147483648,8,9,0,8,20,0,1,0,1,0]]},"steps":[)" +
      step_event(record).dump() + "]}";
  const std::string head =
      R"({"traceEvents":[{"name":"step"}],"hearth":{"version":1,"source":"s","moments":[)";
  return {head + moment + "]}}", head + "]}}", "{}"};
}

}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearth;
  Result<ViewHistory> history =
      parse_recording(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!history.ok()) {
    if (history.error().message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  EngineView view;
  for (uint64_t i = history->first(); i < history->end(); ++i) {
    history->show(i + 1, view);
    if (!view.connected || view.blocks.size() > (1u << 22)) std::abort();
  }
  return 0;
}
