// Replies of models: any bytes end in the same events, however they are cut into pieces, and every
// call that begins has an end. The first byte chooses the format, the second one the pieces.
#include <cstdlib>

#include "tests/engine/text/tool_calls/replies.h"
#include "tests/fuzz/fuzz.h"

namespace hearth {

std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> seeds;
  for (const testing::SampleReply& reply : testing::sample_replies()) {
    char format = 0;
    while (call_formats()[static_cast<std::size_t>(format)]->name != reply.format) ++format;
    seeds.push_back(std::string{format, 3} + reply.text);
    seeds.push_back(std::string{format, 1} + "<think>a</think>" + reply.text);
  }
  return seeds;
}

namespace {

std::vector<ReplyEvent> parse_in_pieces(const ReplyParser::Options& options, std::string_view text,
                                        std::size_t bytes) {
  ReplyParser parser(options);
  std::vector<ReplyEvent> events;
  for (std::size_t at = 0; at < text.size(); at += bytes)
    testing::join(events, parser.push(text.substr(at, bytes)));
  testing::join(events, parser.finish());
  return events;
}

}  // namespace
}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearth;
  if (size < 2) return 0;
  ReplyParser::Options options{.format = {.calls = call_formats()[data[0] % call_formats().size()]},
                               .tools = testing::weather_tools()};
  if (data[1] % 2 == 1) options.format.reasoning = &testing::kThink;
  options.begins_in_reasoning = data[1] % 4 == 3;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::vector<ReplyEvent> whole = parse_in_pieces(options, text, text.size() + 1);
  if (parse_in_pieces(options, text, 1 + data[1] / 16) != whole) std::abort();
  std::uint32_t begun = 0, ended = 0;
  for (const ReplyEvent& event : whole) {
    if (event.kind == ReplyEvent::Kind::kCallBegin && event.call != begun++) std::abort();
    if (event.kind == ReplyEvent::Kind::kCallEnd && event.call != ended++) std::abort();
    if (ended > begun || begun > ended + 1) std::abort();
  }
  if (begun != ended) std::abort();
  return 0;
}
