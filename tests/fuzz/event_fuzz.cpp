// Events of /events: any bytes end in a record or in an error, and a record is written back as it
// was read.
#include <cstdlib>

#include "tests/fuzz/fuzz.h"
#include "tools/server/step_event.h"

namespace hearth {

std::vector<std::string> fuzz::seeds() {
  StepRecord record;
  record.step = 7;
  record.members.resize(1);
  record.arrived.resize(1);
  record.finished = {3};
  return {step_event(record).dump(), counts_event({}).dump(), hello_event({}).dump()};
}

}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearth;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto step = parse_step_event(text); step.ok()) {
    const std::string written = step_event(*step).dump();
    const auto again = parse_step_event(written);
    if (!again.ok() || step_event(*again).dump() != written) std::abort();
  }
  static_cast<void>(parse_counts_event(text, {}));
  if (const auto hello = parse_hello_event(text); hello.ok())
    if (hello->model.size() > size || hello->device.size() > size) std::abort();
  return 0;
}
