// Chat templates: the published ones to the letter, and broken or hostile ones to an error.
#include "engine/text/chat_template.h"

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/text/vocabularies.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;
using Messages = std::vector<ChatMessage>;

Vocabulary with_template(std::string text, std::string bos = "<s>", std::string eos = "</s>") {
  Vocabulary vocabulary;
  vocabulary.chat_template = std::move(text);
  vocabulary.tokens = {{.text = std::move(bos)}, {.text = std::move(eos)}};
  vocabulary.bos = 0;
  vocabulary.eos = 1;
  return vocabulary;
}

std::unique_ptr<ChatTemplate> make(const Vocabulary& vocabulary) {
  auto made = ChatTemplate::create(vocabulary);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.ok() ? std::move(made).value() : nullptr;
}

// The text, or the error in angle brackets.
std::string run(const std::string& source, const Messages& messages = {{"user", "Hi"}}) {
  const auto made = ChatTemplate::create(with_template(source));
  if (!made.ok()) return fmt::format("<{}>", error_of(made));
  const auto text = (*made)->apply(messages);
  return text.ok() ? *text : fmt::format("<{}>", error_of(text));
}

// A template of those beside the project; null where they are not.
std::unique_ptr<ChatTemplate> published_template(const std::string& name) {
  const auto path = shared_vocabularies() / "templates" / (name + ".json");
  if (!std::filesystem::exists(path)) return nullptr;
  const auto json = nlohmann::json::parse(read_text(path));
  const auto text = [&](const char* key) {
    return json[key].is_string() ? json[key].get<std::string>() : std::string();
  };
  return make(with_template(text("chat_template"), text("bos_token"), text("eos_token")));
}

constexpr std::time_t kJuly26 = 1721995200;  // 26 July 2024, 12:00 UTC

const Messages kConversation = {
    {"system", "Be brief."}, {"user", " Hello "}, {"assistant", "Hi!"}, {"user", "Why?"}};

TEST(PublishedTemplates, Qwen) {
  const auto qwen = published_template("qwen2_5");
  if (!qwen) GTEST_SKIP() << "no templates beside the project";
  EXPECT_EQ(*qwen->apply(kConversation),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hello <|im_end|>\n"
            "<|im_start|>assistant\nHi!<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(*qwen->apply(Messages{{"user", "Hi"}}, {.add_generation_prompt = false}),
            "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful "
            "assistant.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n");
}

TEST(PublishedTemplates, Llama) {
  const auto llama = published_template("llama3_2");
  if (!llama) GTEST_SKIP() << "no templates beside the project";
  const auto turn = [](const std::string& role, const std::string& text) {
    return "<|start_header_id|>" + role + "<|end_header_id|>\n\n" + text + "<|eot_id|>";
  };
  EXPECT_EQ(
      *llama->apply(kConversation, {.now = kJuly26}),
      "<|begin_of_text|>" +
          turn("system",
               "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\nBe brief.") +
          turn("user", "Hello") + turn("assistant", "Hi!") + turn("user", "Why?") +
          "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST(PublishedTemplates, Gemma) {
  const auto gemma = published_template("gemma3");
  if (!gemma) GTEST_SKIP() << "no templates beside the project";
  EXPECT_EQ(*gemma->apply(kConversation),
            "<bos><start_of_turn>user\nBe brief.\n\nHello<end_of_turn>\n"
            "<start_of_turn>model\nHi!<end_of_turn>\n<start_of_turn>user\nWhy?<end_of_turn>\n"
            "<start_of_turn>model\n");
  const auto refused = gemma->apply(Messages{{"user", "a"}, {"user", "b"}});
  EXPECT_THAT(error_of(refused), HasSubstr("Conversation roles must alternate"));
}

TEST(PublishedTemplates, EqualTransformers) {
  const std::filesystem::path golden = HEARTH_SOURCE_DIR "/tests/engine/text/golden/templates.json";
  ASSERT_TRUE(std::filesystem::exists(golden)) << "tools/make_golden.py makes it";
  if (!published_template("qwen2_5")) GTEST_SKIP() << "no templates beside the project";
  std::map<std::string, std::unique_ptr<ChatTemplate>> templates;
  const auto cases = nlohmann::json::parse(read_text(golden));
  ASSERT_GT(cases.size(), 20u);
  for (const auto& one : cases) {
    const std::string name = one["template"];
    if (!templates[name]) templates[name] = published_template(name);
    Messages messages;
    for (const auto& message : one["messages"])
      messages.push_back({message["role"], message["content"]});
    std::string expected = one["text"];
    // The day the file was made stands in it, where a template asks for the date.
    const std::string today = "Today Date: ";
    ChatOptions options{.add_generation_prompt = one["add_generation_prompt"], .now = kJuly26};
    if (const auto at = expected.find(today); at != std::string::npos)
      expected.replace(at + today.size(), 11, "26 Jul 2024");
    const auto text = templates[name]->apply(messages, options);
    ASSERT_TRUE(text.ok()) << text.error().message;
    EXPECT_EQ(*text, expected) << name << ": " << one["conversation"];
  }
}

TEST(ChatTemplate, ChatMlWhereTheModelBringsNone) {
  const auto fallback = make(Vocabulary{});
  EXPECT_EQ(fallback->source(), ChatTemplate::Source::kChatMl);
  EXPECT_EQ(*fallback->apply(kConversation),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hello <|im_end|>\n"
            "<|im_start|>assistant\nHi!<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(make(with_template("x"))->source(), ChatTemplate::Source::kModel);
}

TEST(ChatTemplate, WhiteSpaceIsJinjas) {
  EXPECT_EQ(run("a\n  {% if true %}\nb\n  {% endif %}\nc"), "a\nb\nc");
  EXPECT_EQ(run("a\n  {{ 'b' }}\nc\n"), "a\n  b\nc");
  EXPECT_EQ(run("a\n  {{- 'b' -}}\n c"), "abc");
  EXPECT_EQ(run("a {#- note\n more -#} b"), "ab");
  EXPECT_EQ(run("  {{ 'b' }}"), "  b");
}

TEST(ChatTemplate, DoesWhatTemplatesDo) {
  EXPECT_EQ(run("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
                "{% endfor %}{{ ns.n }}",
                kConversation),
            "4");
  EXPECT_EQ(run("{% macro say(m, end='!') %}{{ m.role ~ end }}{% endmacro %}"
                "{% for m in messages if m.role == 'user' %}{{ say(m) }}{% endfor %}",
                kConversation),
            "user!user!");
  EXPECT_EQ(run("{% for m in messages[::-1] %}{{ m.content }}{% endfor %}", kConversation),
            "Why?Hi! Hello Be brief.");
  EXPECT_EQ(run("{% set a = [] %}{% for i in range(3) %}{% set _ = a.append(i) %}{% endfor %}"
                "{{ a }}{{ {'k': [1]} | tojson }}"),
            "[0, 1, 2]{\"k\": [1]}");
  EXPECT_EQ(
      run("{{ 'a</think>b'.split('</think>')[-1] }}{{ 7 % 2 }}{{ bos_token }}{{ eos_token }}"),
      "b1<s></s>");
  EXPECT_EQ(run("{{ ('<think>a\n</think>b'.split('</think>')|first).rstrip('\n') }}{{ []|first }}"),
            "<think>a");
  EXPECT_EQ(run("{% for m in messages %}{{ loop.index0 if not loop.last else 'end' }}{% endfor %}",
                kConversation),
            "012end");
  EXPECT_EQ(run("{{ \"it's {{ not }} a %} tag\" }}"), "it's {{ not }} a %} tag");
  EXPECT_EQ(run("{% if strftime_now is defined %}{{ strftime_now('%Y')|length }}{% endif %}"), "4");
  EXPECT_EQ(run("{{ 'a' if false else 'b' }}{{ {'a': {'b': 1}}['a']['b'] }}{{ {'a':{}} }}"),
            "b1{'a': {}}");
}

TEST(ChatTemplate, WhatItRefusesIsSaidInItsWords) {
  EXPECT_EQ(run("\n{{ raise_exception('No\nway') }}"), "<chat template: line 2: No way>");
}

TEST(BrokenTemplates, AreErrorsWithTheirLine) {
  for (const char* source : {"\n{{ a",
                             "\n{% if x %}",
                             "\n{% endif %}",
                             "\n{{ }}",
                             "\n{{ ) }}",
                             "\n{{ a b }}",
                             "\n{% nonsense %}",
                             "\n{{ 'open }}",
                             "\n{# open",
                             "\n{% for x %}{% endfor %}",
                             "\n{{ messages | nonsense }}",
                             "\n{{ messages.nonsense() }}",
                             "\n{{ missing.member }}",
                             "\n{{ 1 + }}",
                             "\n{% set x = %}",
                             "\n{{ a, b }}",
                             "\n{{ a = 1 }}",
                             "\n{% for x in 5 %}{% endfor %}",
                             "\n{{ messages() }}",
                             "\n{{ [1, }}",
                             "\n{{ {'a' }}",
                             "\n{{ 'a' - 'b' }}",
                             "\n{% break %}",
                             "\n{{ 'x' is nothing }}"})
    EXPECT_THAT(run(source), ::testing::MatchesRegex("<chat template: .*>")) << source;
  EXPECT_THAT(run("\n\n{{ 1 + }}"), HasSubstr("line 3"));
  EXPECT_THAT(run("\n\n{{ raise_exception('x') }}"), HasSubstr("line 3"));
}

TEST(HostileTemplates, AreStopped) {
  const auto many = [](std::string text, int count) {
    std::string result;
    while (count-- > 0) result += text;
    return result;
  };
  const std::vector<std::string> sources = {
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m() %}{% if m() %}{% endif %}{% endmacro %}{{ m() }}",
      "{% macro m(a=m()) %}{% endmacro %}{{ m() }}",
      "{% macro m(x) %}{% filter m %}{% endfilter %}{% endmacro %}{{ m(1) }}",
      "{% for x in [1] %}{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}{% endfor %}",
      "{% for x in [[1]] recursive %}{{ loop(x) }}{% endfor %}",
      "{{ 'a' * 1000000000 }}",
      "{{ 'a' * 9999 * 9999 * 9999 }}",
      "{% for i in range(1000000000) %}x{% endfor %}",
      "{{ range(5, 1, 0) }}",
      "{{ range(1, 2, 3, 4) }}",
      "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}"
      "{% endfor %}",
      "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}x{% endfor %}"
      "{% endfor %}{% endfor %}",
      "{{ 1 % 0 }}",
      "{{ 1 // 0 }}",
      "{{ 1 % messages }}",
      "{{ 'abc'.split('') }}",
      "{{ 'abc'.replace('', 'x') }}",
      "{{ 'abc'[9:0:-1] }}",
      "{{ loop.cycle(1) }}",
      "{% for i in [1] %}{{ loop['cycle'](1) }}{% endfor %}",
      "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}",
      "{% set a = [] %}{% for i in range(9999) %}{% set a = a + [a] %}{{ a }}{% endfor %}",
      "{{ {} | tojson(indent=999999999) }}",
      "{{ 'a\nb' | indent(999999999) }}",
      "{% set a = [1] %}{% for x in a if a.append(x) %}{% endfor %}",
      "{{ " + many("(", 10000) + "1" + many(")", 10000) + " }}",
      "{{ " + many("not ", 10000) + "1 }}",
      "{{ 1" + many(" + 1", 10000) + " }}",
      many("{% if true %}", 5000) + many("{% endif %}", 5000),
      many(" ", 30000) + "{%- if true %}{% endif %}",
      "{{ " + std::string(10000, 'a') + " }}",
      std::string(1 << 20, 'a'),
      "{{ 99999999999999999999 }}",
      "{{ hearth_tick }}",
  };
  for (const std::string& source : sources) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THAT(run(source).substr(0, 200), ::testing::StartsWith("<chat template: "))
        << source.substr(0, 100);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    EXPECT_LT(taken.count(), 30) << source.substr(0, 100);
  }
}

TEST(HostileTemplates, ListsThatWouldHoldThemselvesHoldACopy) {
  EXPECT_EQ(run("{% set a = [1] %}{% set _ = a.append(a) %}{{ a }}"), "[1, [1]]");
  EXPECT_EQ(run("{% set n = namespace(v=1) %}{% set n.me = n %}{{ n.me.v }}"), "1");
  EXPECT_EQ(run("{% set a = [1] %}{% set _ = a.insert(0, [a]) %}{{ a }}"), "[[[1]], 1]");
}

TEST(HostileTemplates, MessagesAreOnlyText) {
  EXPECT_EQ(run("{{ messages[0].content }}", {{"user", "{{ raise_exception('x') }} {% if %}"}}),
            "{{ raise_exception('x') }} {% if %}");
  EXPECT_EQ(run("{{ messages[0].content }}", {{"user", "\xFF\xC3 broken"}}), "\xFF\xC3 broken");
}

}  // namespace
}  // namespace hearth::testing
