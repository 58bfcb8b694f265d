// A part of MaskBench's sample, and JSON-Schema-Test-Suite: no invalid instance is ever accepted,
// and enough of the schemas are supported. All of MaskBench, token by token:
// slow/maskbench_all_test.cpp.
#include <gtest/gtest.h>

#include "tests/engine/grammar/grammar_texts.h"
#include "tests/engine/grammar/shared_schemas.h"

namespace hearth::testing {
namespace {

struct Tally {
  std::size_t schemas = 0, right = 0;  // every instance as the file says
  std::size_t instances = 0, instances_right = 0;
};

void judge(const SchemaCase& one, Tally& tally) {
  ++tally.schemas;
  tally.instances += one.instances.size();
  const auto grammar = grammar::Grammar::compile_json_schema(one.schema);
  if (!grammar.ok()) return;
  bool right = true;
  for (const SchemaCase::Instance& instance : one.instances) {
    const bool accepted = accepts(*grammar, instance.text);
    EXPECT_FALSE(accepted && !*instance.valid) << one.name << " accepts " << instance.text;
    right = right && accepted == *instance.valid;
    tally.instances_right += accepted == *instance.valid;
  }
  tally.right += right;
}

TEST(MaskBench, EverySeventhSchema) {
  const auto cases = maskbench_cases();
  if (cases.empty()) GTEST_SKIP() << "no schemas in ../shared";
  Tally tally;
  for (std::size_t i = 0; i < cases.size(); i += 7) judge(cases[i], tally);
  EXPECT_GE(tally.right * 100, tally.schemas * 90) << tally.right << " of " << tally.schemas;
}

TEST(MaskBench, JsonSchemaTestSuite) {
  const auto cases = test_suite_cases("draft2020-12");
  if (cases.empty()) GTEST_SKIP() << "no test suite in ../shared";
  Tally tally;
  for (const SchemaCase& one : cases) judge(one, tally);
  EXPECT_GE(tally.instances_right * 100, tally.instances * 70)
      << tally.instances_right << " of " << tally.instances;
}

TEST(MaskBench, JsonSchemaTestSuiteOfDraft7) {
  const auto cases = test_suite_cases("draft7");
  if (cases.empty()) GTEST_SKIP() << "no test suite in ../shared";
  Tally tally;
  for (SchemaCase one : cases) {
    // The suite's schemas do not say which draft they are.
    if (one.schema.size() > 1 && one.schema[0] == '{' &&
        one.schema.find("\"$schema\"") == one.schema.npos)
      one.schema = R"({"$schema":"http://json-schema.org/draft-07/schema#")" +
                   std::string(one.schema == "{}" ? "" : ",") + one.schema.substr(1);
    judge(one, tally);
  }
  EXPECT_GE(tally.instances_right * 100, tally.instances * 70)
      << tally.instances_right << " of " << tally.instances;
}

}  // namespace
}  // namespace hearth::testing
