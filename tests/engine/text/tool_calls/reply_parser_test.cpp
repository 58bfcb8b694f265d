// Replies to content, reasoning and calls: every format, whole and cut into pieces at every byte.
#include "engine/text/tool_calls/reply_parser.h"

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

#include "engine/text/tool_calls/tool_prompt.h"
#include "engine/text/vocabulary_parts.h"
#include "tests/engine/text/tool_calls/replies.h"

namespace hearth {
namespace {

using testing::describe;
using testing::join;
using testing::sample_replies;
using testing::SampleReply;
using testing::weather_tools;

ReplyParser::Options options_for(std::string_view format) {
  return {.format = {.calls = find_call_format(format)}, .tools = weather_tools()};
}

// Pieces end at `cuts`, which are in order.
std::vector<ReplyEvent> parse(const ReplyParser::Options& options, std::string_view text,
                              const std::vector<std::size_t>& cuts = {}) {
  ReplyParser parser(options);
  std::vector<ReplyEvent> events;
  std::size_t begin = 0;
  for (const std::size_t cut : cuts) {
    join(events, parser.push(text.substr(begin, cut - begin)));
    begin = cut;
  }
  join(events, parser.push(text.substr(begin)));
  join(events, parser.finish());
  return events;
}

// Whole, in two pieces at every byte, byte by byte, and at random.
void expect_same_at_every_cut(const ReplyParser::Options& options, std::string_view text,
                              std::mt19937& random) {
  const std::vector<ReplyEvent> whole = parse(options, text);
  std::vector<std::size_t> every;
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    ASSERT_EQ(parse(options, text, {cut}), whole) << text << " at " << cut;
    every.push_back(cut);
  }
  ASSERT_EQ(parse(options, text, every), whole) << text;
  for (int i = 0; i < 8; ++i) {
    std::vector<std::size_t> cuts;
    for (std::size_t cut = 0; cut <= text.size(); ++cut)
      if (random() % 5 == 0) cuts.push_back(cut);
    ASSERT_EQ(parse(options, text, cuts), whole) << text;
  }
}

TEST(ReplyParser, ReadsEveryFormat) {
  for (const SampleReply& reply : sample_replies()) {
    const auto options = options_for(reply.format);
    EXPECT_EQ(describe(parse(options, reply.text)), reply.expected)
        << reply.format << ": " << reply.text;
  }
}

TEST(ReplyParser, GivesTheSameAtEveryChunkBoundary) {
  std::mt19937 random(1);
  for (const SampleReply& reply : sample_replies())
    expect_same_at_every_cut(options_for(reply.format), reply.text, random);
}

// Pieces of replies in any order, read in every format.
TEST(ReplyParser, GivesTheSameAtEveryChunkBoundaryOfNonsense) {
  std::mt19937 random(2);
  for (int i = 0; i < 60; ++i) {
    std::string text;
    while (text.size() < 120) {
      const std::string& from = sample_replies()[random() % sample_replies().size()].text;
      if (!from.empty()) text += from.substr(random() % from.size(), 1 + random() % 40);
    }
    const CallFormat* const format =
        call_formats()[static_cast<std::size_t>(i) % call_formats().size()];
    ReplyParser::Options options = options_for(format->name);
    if (i % 2 == 0) options.format.reasoning = &testing::kThink;
    expect_same_at_every_cut(options, text, random);
  }
}

TEST(ReplyParser, EndsEveryCallThatBegan) {
  for (const SampleReply& reply : sample_replies())
    for (std::size_t bytes = 0; bytes <= reply.text.size(); ++bytes) {
      int open = 0;
      for (const ReplyEvent& event :
           parse(options_for(reply.format), std::string_view(reply.text).substr(0, bytes))) {
        open += event.kind == ReplyEvent::Kind::kCallBegin;
        open -= event.kind == ReplyEvent::Kind::kCallEnd;
        ASSERT_TRUE(open == 0 || open == 1);
      }
      ASSERT_EQ(open, 0) << reply.text.substr(0, bytes);
    }
}

// Arguments are passed on while the model writes them, not at the end.
TEST(ReplyParser, StreamsArguments) {
  ReplyParser parser(options_for("hermes"));
  parser.push("<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"ci");
  const auto events = parser.push("ty\": \"Pa");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, ReplyEvent::Kind::kArguments);
  EXPECT_EQ(events[0].text, "ty\": \"Pa");
}

TEST(ReplyParser, WithoutToolsLeavesCallsAsText) {
  const ReplyParser::Options options{.format = {.calls = &hermes_format()}};
  const std::string text = " <tool_call>{\"name\": \"f\"}</tool_call>\n";
  EXPECT_EQ(describe(parse(options, text)), text);
}

TEST(ReplyParser, SplitsReasoning) {
  const ReasoningMarkers brackets{"[THINK]", "[/THINK]"};
  struct Case {
    const ReasoningMarkers* markers;
    bool begun;
    std::string text, expected;
  };
  const Case cases[] = {
      {&testing::kThink, false, "<think>\n17 * 3\n</think>\n\n51", "R(17 * 3)51"},
      {&testing::kThink, true, "17 * 3\n</think>\n\n51", "R(17 * 3)51"},
      {&testing::kThink, false, "51, not <think>52</think>", "51, not <think>52</think>"},
      {&testing::kThink, false, "\n<think>a <b> c", "R(a <b> c)"},
      {&testing::kThink, false, "<think></think>\n\nHi\n", "Hi\n"},
      {&testing::kThink, false, " <thi", " <thi"},
      {&brackets, false, "[THINK]a[/THINK]b", "R(a)b"},
      {&testing::kThink, true,
       "<tool_call>x</think><tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>",
       "R(<tool_call>x)add({})"},
  };
  std::mt19937 random(3);
  for (const Case& one : cases) {
    ReplyParser::Options options = options_for("hermes");
    options.format.reasoning = one.markers;
    options.begins_in_reasoning = one.begun;
    EXPECT_EQ(describe(parse(options, one.text)), one.expected) << one.text;
    expect_same_at_every_cut(options, one.text, random);
  }
  EXPECT_TRUE(ends_in_reasoning(testing::kThink, "<|im_start|>assistant\n<think>\n"));
  EXPECT_FALSE(ends_in_reasoning(testing::kThink, "<|im_start|>assistant\n<think>\n</think>"));
  EXPECT_FALSE(ends_in_reasoning(testing::kThink, " \n"));
}

// The published templates in ../shared.
TEST(ReplyFormat, IsFoundInPublishedTemplates) {
  const auto folder = std::filesystem::path(HEARTH_SOURCE_DIR) / ".." / "shared" / "templates";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no templates in ../shared";
  struct Case {
    const char *name, *calls, *reasoning;
  };
  const Case cases[] = {
      {"GLM-4.6", "glm", "<think>"},
      {"Mistral-Small-3.2-24B-Instruct-2506", "mistral", ""},
      {"unsloth-mistral-Devstral-Small-2507", "mistral", ""},
      {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "hermes", ""},
      {"Qwen-QwQ-32B", "hermes", "<think>"},
      {"Qwen-Qwen2.5-7B-Instruct", "hermes", ""},
      {"Qwen3-Coder", "qwen-coder", ""},
      {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "deepseek", "<think>"},
      {"deepseek-ai-DeepSeek-V3.1", "deepseek", "<think>"},
      {"google-gemma-4-31B-it-interleaved", "gemma", "<|channel>thought"},
      {"ibm-granite-granite-4.0", "hermes", ""},
      {"meta-llama-Llama-3.1-8B-Instruct", "llama3", ""},
      {"meta-llama-Llama-3.3-70B-Instruct", "llama3", ""},
      {"microsoft-Phi-3.5-mini-instruct", "generic", ""},
      {"openai-gpt-oss-120b", "harmony", ""},
      {"llama-cpp-rwkv-world", "generic", "<think>"},
  };
  for (const Case& one : cases) {
    std::ifstream file(folder / "jinja" / (std::string(one.name) + ".jinja"));
    ASSERT_TRUE(file) << one.name;
    std::stringstream source;
    source << file.rdbuf();
    const ReplyFormat format = detect_reply_format(source.str());
    EXPECT_EQ(format.calls->name, one.calls) << one.name;
    EXPECT_EQ(format.reasoning == nullptr ? "" : format.reasoning->open, one.reasoning) << one.name;
  }
}

TEST(ReplyFormat, IsGenericWithoutATemplate) {
  EXPECT_EQ(detect_reply_format("").calls->name, "generic");
  EXPECT_EQ(detect_reply_format("").reasoning, nullptr);
  EXPECT_EQ(find_call_format("no such format"), nullptr);
}

std::unique_ptr<ChatTemplate> template_of(const std::string& source) {
  Vocabulary vocabulary;
  vocabulary.chat_template = source;
  return ChatTemplate::create(vocabulary).value();
}

TEST(ToolPrompt, FindsOutWhetherATemplateShowsTools) {
  EXPECT_TRUE(shows_tools(*template_of("{% for t in tools %}{{ t | tojson }}{% endfor %}")));
  EXPECT_FALSE(shows_tools(*template_of("{{ messages[0].content }}")));
  EXPECT_FALSE(shows_tools(*template_of("{{ raise_exception('no') }}")));
}

TEST(ToolPrompt, PutsToolsAndResultsIntoPlainMessages) {
  const std::vector<ChatMessage> messages = {
      {.role = "system", .content = "Be brief."},
      {.role = "user", .content = "Weather?"},
      {.role = "assistant",
       .content = "I look.",
       .tool_calls = {{.id = "1", .name = "get_weather", .arguments = "{\"city\": \"Paris\"}"}}},
      {.role = "tool", .content = "21", .tool_call_id = "1"},
      {.role = "tool", .content = "22", .tool_call_id = "2"},
      {.role = "user", .content = "Thanks"}};
  const auto made = with_tool_instructions(messages, weather_tools());
  ASSERT_EQ(made.size(), 5u);
  EXPECT_TRUE(made[0].content.starts_with("Be brief.\n\n"));
  EXPECT_NE(made[0].content.find("\"get_weather\""), std::string::npos);
  EXPECT_EQ(made[2].content,
            "I look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
            "\"Paris\"}}\n</tool_call>");
  EXPECT_TRUE(made[2].tool_calls.empty());
  EXPECT_EQ(made[3].role, "user");
  EXPECT_EQ(made[3].content,
            "<tool_response>\n21\n</tool_response>\n<tool_response>\n22\n</tool_response>");
  // The text that a conversation shows the model is what the parser reads.
  EXPECT_EQ(describe(parse(options_for("generic"), made[2].content)),
            "I look.get_weather({\"city\": \"Paris\"})");
  const ChatMessage alone{.role = "user", .content = "Hi"};
  EXPECT_EQ(with_tool_instructions(std::span(&alone, 1), weather_tools()).size(), 2u);
  EXPECT_EQ(with_tool_instructions(std::span(&alone, 1), {}).size(), 1u);
}

// Templates get arguments as objects; one that joins them to text gets their text.
TEST(ChatTemplate, PassesToolCallsOn) {
  const std::vector<ChatMessage> messages = {
      {.role = "assistant",
       .content = "",
       .reasoning = "Hm.",
       .tool_calls = {{.id = "1", .name = "f", .arguments = "{\"b\": 1, \"a\": [2]}"}}},
      {.role = "tool", .content = "3", .tool_call_id = "1", .name = "f"}};
  const auto rendered = [&](const char* source) {
    return template_of(source)->apply(messages).value();
  };
  EXPECT_EQ(rendered("{{ messages[0].tool_calls[0].function.arguments | tojson }}"),
            "{\"b\": 1, \"a\": [2]}");
  EXPECT_EQ(rendered("{{ 'x' + messages[0].tool_calls[0].function.arguments }}"),
            "x{\"b\": 1, \"a\": [2]}");
  EXPECT_EQ(rendered("{{ messages[0].reasoning_content ~ messages[1].name ~ "
                     "messages[1].tool_call_id ~ messages[0].tool_calls[0].id }}"),
            "Hm.f11");
}

// <|end|> ends a turn elsewhere, but only a message in gpt-oss's format: its replies stopped after
// the reasoning.
TEST(Vocabulary, HarmonyRepliesGoOnAfterAMessage) {
  const auto ends = [](std::vector<std::string> texts) {
    Vocabulary vocabulary;
    for (std::string& text : texts)
      vocabulary.tokens.push_back({.text = std::move(text), .kind = TokenKind::kControl});
    vocabulary.eos = 0;
    find_end_of_generation(vocabulary);
    return vocabulary.end_of_generation;
  };
  EXPECT_EQ(ends({"<|return|>", "<|end|>", "<|call|>"}), (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(ends({"<|endoftext|>", "<|end|>", "<|user|>"}), (std::vector<std::uint32_t>{0, 1}));
}

TEST(Tools, SchemasSayWhichArgumentsAreText) {
  const std::vector<Tool> tools = {{.name = "f",
                                    .description = "",
                                    .parameters = {{"properties",
                                                    {{"s", {{"type", "string"}}},
                                                     {"n", {{"type", {"number", "null"}}}},
                                                     {"b", {{"type", {"string", "null"}}}},
                                                     {"e", {{"enum", {"a", "b"}}}},
                                                     {"c", {{"const", 5}}},
                                                     {"x", nlohmann::ordered_json::object()}}}}}};
  const std::pair<const char*, ArgumentKind> cases[] = {
      {"s", ArgumentKind::kText},     {"n", ArgumentKind::kJson}, {"b", ArgumentKind::kEither},
      {"e", ArgumentKind::kText},     {"c", ArgumentKind::kJson}, {"x", ArgumentKind::kEither},
      {"none", ArgumentKind::kEither}};
  for (const auto& [name, kind] : cases) EXPECT_EQ(argument_kind(tools, "f", name), kind) << name;
  EXPECT_EQ(argument_kind(tools, "g", "s"), ArgumentKind::kEither);
}

}  // namespace
}  // namespace hearth
