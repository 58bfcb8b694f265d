// Schemas with instances from ../shared: MaskBench's sample and JSON-Schema-Test-Suite. Empty if
// the folder is not there, so that tests are skipped.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar/json_value.h"
#include "tests/support/process.h"
#include "tools/grammar/grammar_check.h"

namespace hearth::testing {

inline std::filesystem::path shared_schemas() {
  return std::filesystem::path(HEARTH_SOURCE_DIR) / ".." / "shared" / "schemas";
}

inline std::vector<SchemaCase> maskbench_cases() {
  const auto path = shared_schemas() / "maskbench.jsonl.xz";
  if (!std::filesystem::exists(path)) return {};
  const Finished unpacked = run_program({"xz", "-dc", path.string()});
  if (unpacked.exit_code != 0) return {};
  std::vector<SchemaCase> cases;
  const std::string_view text = unpacked.out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    auto one = parse_schema_case(text.substr(at, end - at));
    if (one.ok()) cases.push_back(std::move(one).value());
    at = end + 1;
  }
  return cases;
}

// One case per schema of the suite; `folder` is a draft.
inline std::vector<SchemaCase> test_suite_cases(const std::string& folder) {
  const auto path = shared_schemas() / "json-schema-test-suite.tar.xz";
  if (!std::filesystem::exists(path)) return {};
  const Finished listed = run_program({"tar", "tf", path.string()});
  std::vector<SchemaCase> cases;
  const std::string prefix = "tests/" + folder + "/";
  for (std::size_t at = 0; at < listed.out.size();) {
    const std::size_t end = std::min(listed.out.find('\n', at), listed.out.size());
    const std::string name = listed.out.substr(at, end - at);
    at = end + 1;
    const bool wanted = name.compare(0, prefix.size(), prefix) == 0 &&
                        name.find('/', prefix.size()) == name.npos && name.size() > 5 &&
                        name.compare(name.size() - 5, 5, ".json") == 0;
    if (!wanted) continue;
    const Finished file = run_program({"tar", "xOf", path.string(), name});
    const auto parsed = grammar::parse_json(file.out);
    if (!parsed.ok()) continue;
    for (const grammar::JsonValue& group : parsed->items) {
      SchemaCase one;
      one.name = name.substr(prefix.size()) + ": " + group.find("description")->text;
      one.schema = grammar::to_text(*group.find("schema"));
      for (const grammar::JsonValue& test : group.find("tests")->items)
        one.instances.push_back({test.find("valid")->kind == grammar::JsonValue::Kind::kTrue,
                                 grammar::to_text(*test.find("data"))});
      cases.push_back(std::move(one));
    }
  }
  return cases;
}

}  // namespace hearth::testing
