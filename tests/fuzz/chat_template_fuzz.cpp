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
