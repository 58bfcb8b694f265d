// Chat templates: any text ends in a prompt or an error, in bounded time.
#include "engine/text/chat_template.h"
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
  };
}

}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearth;
  Vocabulary vocabulary;
  vocabulary.chat_template.assign(reinterpret_cast<const char*>(data), size);
  const auto made = ChatTemplate::create(vocabulary);
  if (!made.ok()) return 0;
  const std::vector<ChatMessage> messages = {
      {"system", "Be brief."}, {"user", " Hello\n"}, {"assistant", "\xFF{{ x }}"}, {"user", ""}};
  (void)(*made)->apply(messages, {.now = 0});
  return 0;
}
