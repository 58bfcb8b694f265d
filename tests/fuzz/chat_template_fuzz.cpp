// Chat templates: any text ends in a prompt or an error, in bounded time.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "engine/text/jinja/template.h"
#include "tests/fuzz/fuzz.h"

namespace hearth {

std::vector<std::string> fuzz::seeds() {
  return {
      "{{ bos_token }}{% for m in messages %}{{ '<|' + m.role + '|>' }}\n{{ m['content'] | trim }}"
      "{% if not loop.last %}{{ eos_token }}{% endif %}{% endfor %}",
      "{%- if messages[0].role == 'system' -%}{% set rest = messages[1:] %}{% else %}"
      "{% set rest = messages %}{%- endif -%}{# note #}{{ rest | length }}",
      "{% macro say(m, end='!') %}{{ m.role ~ end }}{% endmacro %}{% for m in messages[::-1] %}"
      "{{ say(m) }}{% endfor %}",
      "{% set ns = namespace(n=0, l=[]) %}{% for m in messages if m.role != 'tool' %}"
      "{% set ns.n = ns.n + 1 %}{% set _ = ns.l.append(m) %}{% endfor %}{{ ns.l | tojson }}",
      "{{ 'a</t>b'.split('</t>')[-1].strip() }}{{ range(3) | join(', ') }}{{ 7 % 2 }}{{ -1 * 2 }}",
      "{% filter upper %}{{ {'a': [1, 2.5, none]} }}{% endfilter %}{{ raise_exception('x') }}",
      "{% if a is defined and b is not none or 'x' in messages %}{{ strftime_now('%d') }}{% elif "
      "add_generation_prompt %}{{ 'y' if true else 'z' }}{% endif %}",
      "{% for x in messages recursive %}{{ loop.index ~ loop.cycle(1, 2) }}{% if x.content is "
      "iterable %}"
      "{{ loop(x.content) }}{% else %}{% break %}{% endif %}{% else %}none{% endfor %}",
      "{% call(y) m(1, *[2], **{'c': 3}) %}{{ y }}{% endcall %}{% macro m(a, b=1) %}{{ "
      "caller(kwargs) }}"
      "{{ varargs }}{% endmacro %}{% raw %}{{ x }}{% endraw %}{% with a = 1 %}{{ a }}{% endwith %}",
      "{{ '%5.2f|%s' % (1.5, 'a') }}{{ '{:>5}{x}'.format(1, x='y') }}{{ "
      "messages|map(attribute='role')|"
      "unique|sort|list|tojson(indent=2) }}{{ messages|groupby('role') }}{{ 'a b'.title()[::-1] }}",
      "{{ messages[1:].0.content|trim|upper|replace('H', '<')|e|safe + '<' }}{{ 2 ** 3 // -2 % 5 }}"
      "{{ range(3)|batch(2, 'x')|list }}{{ cycler(1, 2).next() }}{{ dict(a=1).items()|list }}",
      // Every method of strings and every filter and test once, so that mutations can reach them.
      "{% set s = messages[1].content %}{{ s.find('l', 1) + s.rfind('lo') + s.count('l', -4, 9) }}"
      "{{ s.split(None, 1) ~ s.rsplit('l', 1) ~ s.partition('e') ~ s.rpartition('e') }}"
      "{{ s.splitlines(true) ~ s.strip('H ') ~ s.lstrip() ~ s.rstrip() }}{{ s.center(20, '*') }}"
      "{{ s.ljust(9) ~ s.rjust(9) ~ '-7'.zfill(5) ~ 'a\tb'.expandtabs(4) ~ s.swapcase() }}"
      "{{ s.startswith((' ', 'x'), 0, 5) ~ s.endswith('o') ~ s.removeprefix(' ') ~ s.index('H') }}"
      "{{ s.isalpha() ~ s.isdigit() ~ s.isupper() ~ s.istitle() ~ s.isidentifier() ~ s.isspace() "
      "}}",
      "{% set l = [3, 1, 2.5, true] %}{{ l|sort(reverse=true) ~ l|min ~ l|max ~ l|sum ~ l|last }}"
      "{{ l|select('odd')|list ~ l|reject('divisibleby', 2)|list ~ l|slice(3, 0)|list }}"
      "{{ messages|selectattr('role', 'eq', 'user')|map(attribute='content.0.text')|list }}"
      "{{ messages|rejectattr('tool_calls')|list|length ~ {'b': 1, 'a': 2}|dictsort(by='value') }}"
      "{{ 'a b c'|wordcount ~ 'a b c'|truncate(4, true, '.', 0) ~ 'a\nb'|indent(2, true) }}"
      "{{ '<p>x</p>'|striptags ~ 'a b'|urlencode ~ 2.675|round(2, 'floor') ~ -3|abs ~ '7'|int }}"
      "{{ 5000|filesizeformat(true) ~ {'k': [1]}|tojson(indent=1, sort_keys=true) ~ x|d('y', true) "
      "}}"
      "{{ 'a' is string and l is sequence and l is not mapping and 1 is sameas 1 and 2 is in l }}",
      "{{ '%-5d|%+.3e|%05x|%(k)s' % (1, 2.0, 255) }}{{ '{0!r:^9}{1:,}{2:#x}{k[a].b}'.format('a', "
      "5, 6,"
      "k={'a': 1}) }}{{ '{a}'.format_map({'a': 1}) }}{{ '%s %%' | format(1) }}"
      "{% set m, n = 'ab' %}{{ m[-1:] ~ [1, 2, 3][::-2] ~ range(5)[1:3] ~ 'x' * 3 ~ [n] * 2 }}",
  };
}

}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearth;
  const auto made = jinja::Template::parse({reinterpret_cast<const char*>(data), size});
  if (!made.ok()) return 0;
  static const auto messages = nlohmann::ordered_json::parse(R"([
      {"role": "system", "content": "Be brief."}, {"role": "user", "content": " Hello\n"},
      {"role": "assistant", "content": "{{ x }}", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1.5}}}]},
      {"role": "user", "content": [{"type": "text", "text": "\u00e9"}, null, true]}])");
  static const nlohmann::ordered_json yes = true, token = "<s>";
  const jinja::Variable variables[] = {{"messages", &messages},
                                       {"tools", &messages},
                                       {"add_generation_prompt", &yes},
                                       {"bos_token", &token, jinja::Origin::kTemplate},
                                       {"eos_token", &token}};
  jinja::RenderOptions options;
  options.limits.steps = 200'000;  // inputs that run for long are a waste of fuzzing time
  options.limits.memory_bytes = 16u << 20;
  const auto rendering = made->render(variables, options);
  if (!rendering.ok()) return 0;
  // The runs must cover the text, in order.
  std::size_t end = 0;
  for (const jinja::Run& run : rendering->runs) {
    if (run.end <= end) std::abort();
    end = run.end;
  }
  if (end != rendering->text.size()) std::abort();
  return 0;
}
