#include "engine/grammar/formats.h"

namespace hearth::grammar {
namespace {

#define HEARTH_DATE                                                                   \
  "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12]["    \
  "0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02" \
  "468][048]|[13579][26])00)-02-29)"
#define HEARTH_TIME                                                                         \
  "(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]+)?([zZ]|[+-]([01][0-9]|2[0-3]):[0-5]" \
  "[0-9])|23:59:60(\\.[0-9]+)?([zZ]|[+-]00:00))"
#define HEARTH_LABEL "[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
#define HEARTH_IPV4                                                                               \
  "((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[" \
  "0-9])"
#define HEARTH_H16 "[0-9a-fA-F]{1,4}"
#define HEARTH_LS32 "(" HEARTH_H16 ":" HEARTH_H16 "|" HEARTH_IPV4 ")"
#define HEARTH_IPV6                                                                                \
  "((" HEARTH_H16 ":){6}" HEARTH_LS32 "|::(" HEARTH_H16 ":){5}" HEARTH_LS32 "|(" HEARTH_H16        \
  ")?::(" HEARTH_H16 ":){4}" HEARTH_LS32 "|((" HEARTH_H16 ":){0,1}" HEARTH_H16 ")?::(" HEARTH_H16  \
  ":){3}" HEARTH_LS32 "|((" HEARTH_H16 ":){0,2}" HEARTH_H16 ")?::(" HEARTH_H16 ":){2}" HEARTH_LS32 \
  "|((" HEARTH_H16 ":){0,3}" HEARTH_H16 ")?::" HEARTH_H16 ":" HEARTH_LS32 "|((" HEARTH_H16         \
  ":){0,4}" HEARTH_H16 ")?::" HEARTH_LS32 "|((" HEARTH_H16 ":){0,5}" HEARTH_H16 ")?::" HEARTH_H16  \
  "|((" HEARTH_H16 ":){0,6}" HEARTH_H16 ")?::)"
#define HEARTH_PCHAR "([a-zA-Z0-9._~!$&'()*+,;=:@-]|%[0-9a-fA-F]{2})"
#define HEARTH_AFTER_PATH "(\\?(" HEARTH_PCHAR "|[/?])*)?(#(" HEARTH_PCHAR "|[/?])*)?"
#define HEARTH_AUTHORITY                                                                        \
  "(([a-zA-Z0-9._~!$&'()*+,;=:-]|%[0-9a-fA-F]{2})*@)?(\\[" HEARTH_IPV6                          \
  "\\]|\\[[vV][0-9a-fA-F]+\\.[a-zA-Z0-9._~!$&'()*+,;=:-]+\\]|([a-zA-Z0-9._~!$&'()*+,;=-]|%[0-9" \
  "a-fA-F]{2})*)(:[0-9]*)?"
#define HEARTH_URI                                                                       \
  "[a-zA-Z][a-zA-Z0-9+.-]*:(//" HEARTH_AUTHORITY "(/" HEARTH_PCHAR "*)*|/(" HEARTH_PCHAR \
  "+(/" HEARTH_PCHAR "*)*)?|" HEARTH_PCHAR "+(/" HEARTH_PCHAR "*)*)?" HEARTH_AFTER_PATH

#define HEARTH_ICHAR                                                                               \
  "([a-zA-Z0-9._~!$&'()*+,;=:@\\u00a0-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\uffef\\u{10000}-\\u{1fffd}-" \
  "]|%[0-9a-fA-F]{2})"
#define HEARTH_IRI                                                                     \
  "[a-zA-Z][a-zA-Z0-9+.-]*:(//(" HEARTH_ICHAR "*|" HEARTH_AUTHORITY ")(/" HEARTH_ICHAR \
  "*)*|/(" HEARTH_ICHAR "+(/" HEARTH_ICHAR "*)*)?|" HEARTH_ICHAR "+(/" HEARTH_ICHAR    \
  "*)*)?(\\?(" HEARTH_ICHAR "|[/?])*)?(#(" HEARTH_ICHAR "|[/?])*)?"
#define HEARTH_RELATIVE                                                             \
  "(//" HEARTH_AUTHORITY "(/" HEARTH_PCHAR "*)*|/(" HEARTH_PCHAR "+(/" HEARTH_PCHAR \
  "*)*)?|([a-zA-Z0-9._~!$&'()*+,;=@-]|%[0-9a-fA-F]{2})+(/" HEARTH_PCHAR "*)*)?" HEARTH_AFTER_PATH

struct Format {
  std::string_view name;
  const char* pattern;
};

constexpr Format kFormats[] = {
    {"date", HEARTH_DATE},
    {"time", HEARTH_TIME},
    {"date-time", HEARTH_DATE "[tT]" HEARTH_TIME},
    {"duration",
     "P([0-9]+W|([0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|[0-9]+D)(T([0-9]+H([0-9]+M([0-9]+S)?"
     ")?|[0-9]+M([0-9]+S)?|[0-9]+S))?|T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S))"},
    {"email", "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+)*@" HEARTH_LABEL
              "(\\." HEARTH_LABEL ")*"},
    {"hostname", "(?=.{1,253}$)" HEARTH_LABEL "(\\." HEARTH_LABEL ")*"},
    {"ipv4", HEARTH_IPV4},
    {"ipv6", HEARTH_IPV6},
    {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
    {"uri", HEARTH_URI},
    {"uri-reference", "(" HEARTH_URI "|" HEARTH_RELATIVE ")"},
    {"iri", HEARTH_IRI},
    {"json-pointer", "(/([^~/]|~[01])*)*"},
    {"relative-json-pointer", "(0|[1-9][0-9]*)(#|(/([^~/]|~[01])*)*)"},
};

}  // namespace

const char* format_pattern(std::string_view name) {
  for (const Format& format : kFormats)
    if (format.name == name) return format.pattern;
  return nullptr;
}

bool format_is_exact(std::string_view name) {
  for (const std::string_view exact :
       {"date", "time", "date-time", "ipv4", "ipv6", "uuid", "uri", "json-pointer"})
    if (name == exact) return true;
  return false;
}

}  // namespace hearth::grammar
