// The language, by the cases in language.txt; the origin of every byte; errors with their lines.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/text/jinja/render.h"

namespace hearth::jinja::testing {
namespace {

std::string with_line_breaks(std::string text) {
  constexpr std::string_view kMark = "\u23ce";
  for (std::size_t at = 0; (at = text.find(kMark, at)) != text.npos; ++at)
    text.replace(at, kMark.size(), "\n");
  return text;
}

TEST(Jinja, RendersAsPythonDoes) {
  std::ifstream file(HEARTH_SOURCE_DIR "/tests/engine/text/jinja/language.txt");
  Json variables;
  std::string line, source;
  int cases = 0;
  while (std::getline(file, line)) {
    if (line.empty() || line.starts_with("# ")) continue;
    if (variables.is_null()) {
      variables = Json::parse(line);
    } else if (line.starts_with("=> ")) {
      EXPECT_EQ(text_of(source, variables), with_line_breaks(line.substr(3))) << source;
      ++cases;
    } else if (line.starts_with("!! ")) {
      EXPECT_EQ(text_of(source, variables), line) << source;
      ++cases;
    } else {
      source = with_line_breaks(line);
    }
  }
  EXPECT_GT(cases, 200);
}

TEST(Jinja, ErrorsNameTheirLine) {
  EXPECT_EQ(text_of("a\n\n{{ 1 + }}"), "!! line 3: expected an expression, found '}}'");
  EXPECT_EQ(text_of("a\r\nb\r\n{{ x.y }}"), "!! line 3: 'x' is undefined");
  EXPECT_EQ(text_of("\n{% if true %}\n  {{ 'a'\n   + 1 }}\n{% endif %}"),
            "!! line 4: can only concatenate str (not \"int\") to str");
  EXPECT_EQ(text_of("{% macro m() %}\n\n{{ 1 }}{% endmacro %}\n{{ m() + 1 }}"),
            "!! line 4: can only concatenate str (not \"int\") to str");
  EXPECT_EQ(text_of("\n{{ raise_exception('No\nway') }}"), "!! line 2: No way");
  EXPECT_EQ(text_of("{{ raise_exception('x' * 10000) }}").size(),
            500 + std::string("!! line 1: ").size());
  EXPECT_EQ(text_of("{#\n\n#}{% raw %}\n{% endraw %}\n{{ nope() }}"),
            "!! line 5: 'nope' is undefined");
}

TEST(Jinja, TellsTheTime) {
  std::tm parts{};
  parts.tm_year = 126, parts.tm_mon = 10, parts.tm_mday = 17, parts.tm_hour = 12;
  parts.tm_isdst = -1;
  const std::time_t noon = std::mktime(&parts);
  EXPECT_EQ(
      text_of("{{ strftime_now('%Y-%m-%d %H:%M') }}{{ strftime_now('') }}", {}, {.now = noon}),
      "2026-11-17 12:00");
  EXPECT_EQ(text_of("{{ strftime_now('%d %B') }}", {}, {.now = noon}), "17 November");
}

TEST(Jinja, ValuesNeverHoldThemselves) {
  EXPECT_EQ(text_of("{% set n = namespace(v=1) %}{% set n.me = n %}{{ n.me.me.v }}"), "1");
  EXPECT_THAT(text_of("{% set n = namespace(v=1) %}{% set n.me = n %}{{ n }}"),
              ::testing::HasSubstr("nests too deeply"));
}

TEST(Jinja, BrokenUtf8PassesThrough) {
  const Json given = {{"x", "\xFF\xC3 broken \xE2\x82"}};
  EXPECT_EQ(text_of("{{ x }}", given), "\xFF\xC3 broken \xE2\x82");
  EXPECT_EQ(text_of("{{ x|upper|length }}{{ x[0] == x[:1] }}", given), "12True");
}

// The rendering with every run of input in square brackets.
std::string marked(std::string_view source, const Json& variables,
                   std::span<const std::string_view> words = {}) {
  const auto rendering = render(source, variables, {.template_words = words});
  if (!rendering.ok()) return "!! " + rendering.error().message;
  std::string result;
  std::size_t begin = 0;
  for (const Run& run : rendering->runs) {
    const std::string part = rendering->text.substr(begin, run.end - begin);
    result += run.origin == Origin::kInput ? "[" + part + "]" : part;
    begin = run.end;
  }
  EXPECT_EQ(begin, rendering->text.size());
  return result;
}

TEST(JinjaOrigins, FollowTextThroughOperations) {
  const Json in = {{"x", " <in> "}, {"n", 5}, {"l", {"a", "b"}}, {"d", {{"k", "v"}}}};
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"<t>{{ x }}<t>", "<t>[ <in> ]<t>"},
      {"{{ '<t>' + x.strip() ~ '</t>' }}", "<t>[<in>]</t>"},
      {"{{ ('<t>' + x|trim + '<u>')[2:6] }}", ">[<in]"},
      {"{{ ('<t>' + x).replace('in', '<r>') }}", "<t>[ <]<r>[> ]"},
      {"{{ '<t>X'.replace('X', x) }}", "<t>[ <in> ]"},
      {"{{ ('<t>' + x)|upper }}", "<T>[ <IN> ]"},
      {"{{ ('<t>' + x)[::-1] }}", "[ >ni< ]>t<"},
      {"{{ ('<t>' ~ x ~ '<t>').split('in')|join('|') }}", "<t>[ <]|[> ]<t>"},
      {"{{ [x, '<t>']|join(',') }}", "[ <in> ],<t>"},
      {"{{ n }}{{ n + 1 }}{{ 7 }}", "[56]7"},
      {"{{ '<%s>' % x }}{{ '<{}>'.format(x) }}", "<[ <in> ]><[ <in> ]>"},
      {"{{ x|tojson }}{{ '<t>'|tojson }}", "[\" <in> \"\"]<t>[\"]"},
      {"{% for k, v in d.items() %}{{ k }}={{ v }}{% endfor %}", "[k]=[v]"},
      {"{% set t %}<a>{{ x }}{% endset %}{{ t }}{% macro m(y) %}<m>{{ y }}{% endmacro %}{{ m(x) }}",
       "<a>[ <in> ]<m>[ <in> ]"},
      {"{{ ('<a>\n' + x)|indent(2) }}", "<a>\n  [ <in> ]"},
      {"{{ l }}{{ l[0] ~ 'c' }}", "[['a', 'b']a]c"},
      {"{{ x|striptags }}{{ ('<' ~ x)|e }}", "&lt;[ &lt;in&gt; ]"},
      {"{{ x|length }}{{ x is string }}", "6True"},
      {"{{ ('a' + x).center(13, '*') }}", "***a[ <in> ]***"},
      {"{{ '12'|int + n }}{{ (n|string)|int }}", "[175]"},
  };
  for (const auto& [source, expected] : kCases) EXPECT_EQ(marked(source, in), expected) << source;
}

TEST(JinjaOrigins, SomeWordsCountAsTheTemplates) {
  constexpr std::string_view kWords[] = {"user"};
  const Json in = {{"role", "user"}, {"other", "users"}};
  EXPECT_EQ(marked("<|{{ role }}|><|{{ other }}|>", in, kWords), "<|user|><|[users]|>");
}

}  // namespace
}  // namespace hearth::jinja::testing
