// Templates that would run too long, too deep or into too much memory are stopped; parsing is
// linear.
#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/text/jinja/render.h"
#include "tests/support/sanitizers.h"

namespace hearth::jinja::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

TEST(JinjaLimits, ParsingIsLinear) {
  const auto start = Clock::now();
  EXPECT_EQ(text_of(repeated("{{1}}", 3000)), std::string(3000, '1'));
  EXPECT_EQ(text_of(repeated("{% if 1 %}a{% endif %}", 20000)), std::string(20000, 'a'));
  EXPECT_EQ(text_of(repeated("{#", 100000)), "!! line 1: a comment does not end");
  EXPECT_EQ(text_of("{% raw %}" + repeated("{% ", 100000)), "!! line 1: a raw block does not end");
  EXPECT_EQ(text_of(repeated(" ", 400000) + "{%- if 1 %}{% endif %}"), "");
  EXPECT_EQ(text_of("{{ " + repeated("'a' ", 50000) + "}}"), std::string(50000, 'a'));
  EXPECT_THAT(text_of("{{ [" + repeated("1,", 50000) + "]|length }}"), "50000");
  EXPECT_LT(seconds_since(start), 10);  // under a second without sanitizers
}

TEST(JinjaLimits, DeepNestingIsRefusedWhenParsed) {
  for (const std::string& source : {
           "{{ " + repeated("(", 10000) + "1" + repeated(")", 10000) + " }}",
           "{{ " + repeated("[", 10000) + repeated("]", 10000) + " }}",
           "{{ " + repeated("not ", 10000) + "1 }}",
           "{{ " + repeated("-", 10000) + "1 }}",
           "{{ 1" + repeated(" + 1", 10000) + " }}",
           "{{ x" + repeated(".x", 10000) + " }}",
           "{{ x" + repeated("|trim", 10000) + " }}",
           "{{ 1" + repeated(" if 1 else 1", 10000) + " }}",
           "{{ x is eq" + repeated(" (", 10000) + "1" + repeated(")", 10000) + " }}",
           repeated("{% if true %}", 5000) + repeated("{% endif %}", 5000),
           repeated("{% for x in y %}", 5000),
       })
    EXPECT_THAT(text_of(source), HasSubstr("too deeply")) << source.substr(0, 40);
  EXPECT_THAT(text_of(std::string(1 << 20, 'a')), HasSubstr("1048576 bytes"));
  // What people write is not deep.
  EXPECT_EQ(
      text_of("{{ " + repeated("(", 60) + "1" + repeated(")", 60) + repeated(" + 1", 100) + " }}"),
      "101");
  EXPECT_EQ(text_of("{% if 0 %}" + repeated("{% elif 0 %}", 5000) + "{% else %}a{% endif %}"), "a");
}

TEST(JinjaLimits, RecursionIsStopped) {
  for (const std::string_view source : {
           "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
           "{% macro m(a=m()) %}{% endmacro %}{{ m() }}",
           "{% macro m() %}{% if m() %}{% endif %}{% endmacro %}{{ m() }}",
           "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}",
           "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
           "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}"
           "{% endfor %}{{ ns.x }}",
           "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}"
           "{% endfor %}{{ ns.x|tojson }}",
           "{% set ns = namespace(x=[], y=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}"
           "{% set ns.y = [ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
       })
    EXPECT_THAT(text_of(source), HasSubstr("too deeply")) << source;
}

// Whichever limit is reached first, that of time aside: a busy machine would reach it.
TEST(JinjaLimits, MemoryIsBounded) {
  RenderOptions options;
  options.limits.time = std::chrono::minutes(5);
  for (const std::string_view source : {
           "{{ 'a' * 1000000000 }}",
           "{{ 'a' * 9999 * 9999 * 9999 }}",
           "{{ [1] * 1000000000 }}",
           "{{ [1] * 9223372036854775807 }}",
           "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(100) %}"
           "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
           "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}"
           "{% endfor %}",
           "{{ 'a'.center(9223372036854775807) }}",
           "{{ 'a'.ljust(1000000000) }}",
           "{{ 'a\nb'|indent(1000000000) }}",
           "{{ ('a' * 1000000).replace('', 'a' * 1000) }}",
           "{{ ('a' * 1000000).replace('a', 'b' * 1000) }}",
           "{{ ('a' * 10000)|list|join('b' * 100000) }}",
           "{{ ('a,' * 10000000).split(',') }}",
           "{{ [1]|batch(1000000000, 'x')|list }}",
           "{{ []|slice(1000000000)|list }}",
           "{{ [1]|sort(attribute=',' * 10000000) }}",
           "{{ (('a' * 10000000).rsplit('a'))|length }}",
           "{{ ([1, 2] * 4000000)|reverse|list|length }}",
       })
    EXPECT_THAT(text_of(source, Json::object(), options),
                AnyOf(HasSubstr("too much memory"), HasSubstr("too many steps")))
        << source;
  for (const std::string_view source :
       {"{{ '%999999999d' % 1 }}", "{{ '{:999999999}'.format(1) }}", "{{ '%.999999999f' % 1 }}",
        "{{ {}|tojson(indent=999999999) }}", "{{ range(1000000000) }}", "{{ 2 ** 64 }}",
        "{{ 9223372036854775807 + 1 }}", "{{ -9223372036854775807 * 3 }}",
        "{{ 99999999999999999999 }}", "{{ (-9223372036854775807 - 1) // -1 }}",
        "{{ (-9223372036854775807 - 1)|abs }}", "{{ range(5, 1, 0) }}", "{{ range(1, 2, 3, 4) }}",
        "{{ 'abc'.split('') }}", "{{ 1 % messages }}", "{{ 9223372036854775807|round(-19) }}",
        "{{ range(0, 1, 1152921504606846976)[::2][::2][::2][::2] }}"})
    EXPECT_THAT(text_of(source), StartsWith("!! line 1: ")) << source;
  EXPECT_EQ(text_of("{{ (-9223372036854775807 - 1) % -1 }}"), "0");
  EXPECT_EQ(text_of("{{ 'a'.ljust(-9223372036854775807 - 1) }}"), "a");
  EXPECT_EQ(text_of("{{ 'a'|truncate(9223372036854775807, leeway=9223372036854775807) }}"), "a");
  EXPECT_EQ(text_of("{{ (1e308 * 10) is odd }}"), "False");
  EXPECT_EQ(text_of("{{ (-1e20)|filesizeformat }}"), "-100000000000000000000 Bytes");
  EXPECT_EQ(text_of("{{ 'abc'[9223372036854775807:-9223372036854775807:-9223372036854775807] }}"),
            "c");
}

TEST(JinjaLimits, OutputIsBounded) {
  RenderOptions options;
  options.limits.output_bytes = 1000;
  EXPECT_THAT(text_of("{% for i in range(1000) %}ab{% endfor %}", {}, options),
              HasSubstr("too much text"));
  EXPECT_EQ(text_of("{% for i in range(500) %}ab{% endfor %}", {}, options).size(), 1000u);
}

TEST(JinjaLimits, StepsAreBounded) {
  RenderOptions options;
  options.limits.steps = 100'000;
  EXPECT_THAT(
      text_of("{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}", {},
              options),
      HasSubstr("too many steps"));
  EXPECT_EQ(text_of("{% for a in range(1000) %}{% endfor %}", {}, options), "");
}

// Whatever handles a megabyte or a hundred thousand items costs steps in proportion; otherwise a
// loop around it would run far past the limits before anything looks at them.
TEST(JinjaLimits, EveryOperationIsChargedForWhatItHandles) {
  std::string text(1 << 20, 'a');
  const Json given = {{"x", text},
                      {"same", text},
                      {"b", std::string(1 << 20, 'b')},
                      {"words", repeated("ab cd\n", 170'000)},
                      {"empty", Json(std::vector<std::string>(50'000))},
                      {"ones", Json(std::vector<int>(50'000, 1))},
                      {"k", "kkkkkkkk"}};
  RenderOptions options;
  options.limits.steps = 700'000;
  options.limits.memory_bytes = std::size_t{4} << 30;
  options.limits.time = std::chrono::minutes(1);
  const auto twenty_times = [&](std::string_view body) {
    return text_of("{% for i in range(20) %}" + std::string(body) + "{% endfor %}", given, options);
  };
  ASSERT_EQ(twenty_times("{% set y = x %}"), "") << "the data alone is within the limit";
  for (const std::string_view body : {
           // Characters and comparisons.
           "x[-1]",
           "x[5:-5]",
           "x[::2]",
           "x|length",
           "x|first ~ x|last",
           "x == same",
           "x < same",
           "x.startswith(same)",
           "x.endswith((b, same))",
           "x.removeprefix(same)",
           "x.removesuffix(same)",
           "{x: 1}[same]",
           "x in [b, same]",
           "x in {same: 1}",
           // Searching.
           "'b' in x",
           "x.find('b')",
           "x.rfind('b')",
           "x.index('a', 500000)",
           "x.count('')",
           "x.count('ab')",
           "x.find(b)",
           "x.rfind(b)",
           "x.replace('b', 'c')",
           "x.replace(b, 'c')",
           "x.split('b')",
           "x.rsplit('b')",
           "x.partition('b')",
           "x.rpartition('b')",
           // Made anew.
           "x ~ b",
           "x + b",
           "'ab' * 500000",
           "x * 2",
           "x|upper",
           "x.title()",
           "x|title",
           "x.swapcase()",
           "x|capitalize",
           "x|tojson",
           "[x]|string",
           "x|e",
           "x|forceescape",
           "x|urlencode",
           "x|striptags",
           "x|list",
           "x|reverse",
           "x|center(1100000)",
           "k.ljust(1000000)",
           "k.zfill(1000000)",
           "x.expandtabs()",
           "'\t'.expandtabs(1000000)",
           "'%s' % x",
           "'{:9}'.format(x)",
           "x.format()",
           "x|format",
           "x|indent",
           "x|truncate(600000)",
           "x|truncate(600000, end=x[:500000])",
           "words.split()",
           "words.rsplit()",
           "words.splitlines()",
           "words|wordcount",
           "x|replace('', '')",
           "(' ' * 1000000)|trim",
           "x.strip('a')",
           "x.lstrip('ab')",
           // Questions.
           "x.isalpha()",
           "x.islower()",
           "x.isascii()",
           "x.isprintable()",
           "x is lower",
           "x.isidentifier()",
           // Items.
           "empty|join",
           "''.join(empty)",
           "ones|sum",
           "empty|select|list",
           "ones|reject|list",
           "ones|reverse|list",
           "ones|sort",
           "ones|unique|list",
           "ones|min",
           "ones|max",
           "ones|map('string')|list",
           "ones|batch(100)|list",
           "ones|slice(100)|list",
           "ones|map(attribute='x')|list",
           "ones|selectattr('x')|list",
           "2 in ones",
           "ones[1:]",
           "ones + ones",
           "[1, 2] * 50000",
           "ones|string",
           "ones|tojson",
           "ones == ones[:]",
           "ones < ones[:]",
           "ones.count(2)",
           "ones.index(1, 5) + ones.count(3)",
           "range(100000)|list",
           "cycler(*ones)",
           "[1]|sort(attribute=x)",
           "[1]|map(attribute=x)|list",
       })
    EXPECT_THAT(twenty_times("{% set y = " + std::string(body) + " %}"),
                HasSubstr("too many steps"))
        << body;
}

// One template per construct that handles much data at a time: none may pass the clock.
TEST(JinjaLimits, TimeIsBoundedInsideFilters) {
  const std::string text(1'500'000, 'a');
  const Json given = {{"x", text}, {"half", text.substr(750'000) + "b"}};
  RenderOptions options;
  options.limits.time = std::chrono::milliseconds(100);
  options.limits.memory_bytes = std::size_t{4} << 30;
  for (const std::string_view body : {
           "{% set y = x.replace('aa', 'b') %}",
           "{% set y = x|replace('a', 'bc') %}",
           "{% set y = x.replace(half, 'b') %}",
           "{% set y = x.find(half) %}",
           "{% set y = x.count('aab') %}",
           "{% set y = half in x %}",
           "{% set y = x.split('a') %}",
           "{% set y = x.rsplit(half) %}",
           "{% set y = x|upper %}",
           "{% set y = x|title %}",
           "{% set y = x|tojson %}",
           "{% set y = x|e %}",
           "{% set y = x|list %}",
           "{% set y = x[::-1] %}",
           "{% set y = x|length %}",
           "{% set y = x == x ~ '' %}",
           "{% set y = x|list|sort %}",
           "{% set y = x|list|unique|list %}",
           "{% set y = x.strip(half) %}",
           "{% set y = x|wordcount %}",
           "{% set y = x.isalpha() %}",
           "{% set y = x * 2 %}",
           "{% set y = x|urlencode %}",
           "{% set y = '%s' % x %}",
           "{% set y = x.rfind(half) %}",
           "{% set y = x|striptags %}",
           "{% set y = [x]|string %}",
           "{% set y = x.startswith((half,) * 50000) %}",
           "{% set y = ([''] * 1000000)|join %}",
           "{% set y = ([1] * 1000000)|unique|list %}",
       }) {
    const std::string source = "{% for i in range(100000) %}" + std::string(body) + "{% endfor %}";
    const auto start = Clock::now();
    EXPECT_THAT(text_of(source, given, options), StartsWith("!! line 1: ")) << body;
    EXPECT_LT(seconds_since(start), 5) << body;
  }
}

TEST(JinjaLimits, ReplaceOnALongMessageIsQuick) {
  const Json given = {{"x", std::string(1'500'000, 'a')}};
  RenderOptions options;
  if (hearth::testing::kSanitized) options.limits.time = std::chrono::minutes(5);
  const auto start = Clock::now();
  EXPECT_EQ(text_of("{{ x.replace('a', 'b')|length }}{{ x.replace('aaaaaaab', '')|length }}", given,
                    options),
            "15000001500000");
  EXPECT_LT(seconds_since(start), hearth::testing::kSanitized ? 60 : 2);
}

TEST(JinjaLimits, AnotherThreadCanCancel) {
  std::atomic<bool> cancelled = false;
  RenderOptions options{.cancelled = &cancelled};
  options.limits.time = std::chrono::seconds(60);
  options.limits.steps = 1'000'000'000'000;
  std::thread thread([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancelled = true;
  });
  const auto start = Clock::now();
  EXPECT_THAT(text_of("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}"
                      "{% endfor %}",
                      {}, options),
              HasSubstr("cancelled"));
  EXPECT_LT(seconds_since(start), 10);
  thread.join();
}

TEST(JinjaLimits, DeepDataIsRefused) {
  Json deep = 1;
  for (int i = 0; i < 2000; ++i) deep = Json::array({std::move(deep)});
  EXPECT_THAT(text_of("{{ x }}", {{"x", deep}}), HasSubstr("too deeply"));
}

TEST(JinjaLimits, ManyKeysAreNotSlow) {
  Json keys = Json::object();
  auto& object = keys.get_ref<Json::object_t&>();
  for (int i = 0; i < 50'000; ++i) object.emplace_back("k" + std::to_string(i), i);
  const auto start = Clock::now();
  EXPECT_EQ(
      text_of("{% set n = namespace(s=0) %}{% for k in x %}{% set n.s = n.s + x[k] %}{% endfor %}"
              "{{ n.s }}",
              {{"x", std::move(keys)}}),
      "1249975000");
  EXPECT_LT(seconds_since(start), 5);
}

}  // namespace
}  // namespace hearth::jinja::testing
