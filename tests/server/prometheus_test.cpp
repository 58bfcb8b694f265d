// The text Prometheus reads: its rules, and that the dashboard asks for nothing that is not there.
#include "tools/server/prometheus.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/exposition.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

Exposition read_text(const std::string& text) {
  Exposition read = ExpositionReader::read(text);
  EXPECT_THAT(read.complaints, ::testing::IsEmpty());
  for (const auto& [name, type] : read.types) EXPECT_TRUE(name.starts_with("hearth_")) << name;
  return read;
}

using Labels = std::map<std::string, std::string>;

double value_of(const Exposition& read, const std::string& name, const Labels& labels = {}) {
  for (const Sample& sample : read.samples)
    if (sample.name == name && sample.labels == labels) return sample.value;
  ADD_FAILURE() << "missing: " << name;
  return -1;
}

// A server that has done something of everything.
std::string busy_text() {
  Metrics metrics;
  for (const double value : {0.0001, 0.02, 0.02, 1.0, 1e9}) {
    metrics.time_to_first_token_seconds.add(value);
    metrics.step_seconds.add(value);
  }
  metrics.requests_submitted.add(uint64_t{1} << 60);
  return prometheus_text(metrics);
}

TEST(Prometheus, KeepsTheRulesOfTheFormat) {
  EXPECT_GE(read_text(prometheus_text(Metrics())).types.size(), 20u);
  read_text(busy_text());
}

// The rules above are promtool's, which decides where it is installed.
TEST(Prometheus, PromtoolAgrees) {
  if (std::system("command -v promtool >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "promtool is not installed";
  const std::string path = ::testing::TempDir() + "/prometheus_test.txt";
  for (const std::string& text : {prometheus_text(Metrics()), busy_text()}) {
    std::ofstream(path) << text;
    EXPECT_EQ(std::system(("promtool check metrics <" + path).c_str()), 0);
  }
  std::remove(path.c_str());
}

// A check of a rule means something only if it notices that the rule was broken.
TEST(Prometheus, EveryBrokenRuleIsNoticed) {
  const std::string good =
      "# HELP a_total Things.\n# TYPE a_total counter\na_total{kind=\"x\"} 1\na_total 2\n"
      "# HELP b_seconds Time.\n# TYPE b_seconds histogram\nb_seconds_bucket{le=\"0.1\"} 1\n"
      "b_seconds_bucket{le=\"+Inf\"} 3\nb_seconds_sum 1e3\nb_seconds_count 3\n";
  EXPECT_THAT(ExpositionReader::read(good).complaints, ::testing::IsEmpty());
  const struct {
    const char *what, *old_text, *new_text;
  } cases[] = {
      {"no HELP", "# HELP a_total Things.\n", ""},
      {"no help text", "a_total Things.", "a_total"},
      {"a second HELP", "# TYPE a_total", "# HELP a_total Again.\n# TYPE a_total"},
      {"no HELP or TYPE", "# TYPE a_total counter\n", ""},
      {"a second TYPE", "a_total 2\n", "a_total 2\n# TYPE a_total counter\n"},
      {"no such type", "a_total counter", "a_total number"},
      {"end in _total", "a_total counter", "a_total gauge"},
      {"end in _total", "b_seconds histogram", "b_seconds counter"},
      {"twice", "a_total 2\n", "a_total 2\na_total 2\n"},
      {"twice", "a_total 2", "a_total{kind=\"x\"} 2"},
      {"not labels", "{kind=\"x\"}", "{kind=x}"},
      {"a label twice", "{kind=\"x\"}", "{kind=\"x\",kind=\"y\"}"},
      {"not a line", "a_total 2", "a_total two"},
      {"not a line", "a_total 2", "a-total 2"},
      {"not a line", "a_total 2\n", "a_total 2\n\n"},
      {"'le' is for histograms", "{kind=\"x\"}", "{le=\"1\"}"},
      {"not under its own", "a_total 2\n", "a_total 2\nc 5\n"},
      {"bounds do not rise", "0.1", "+Inf"},
      {"not cumulative", "{le=\"0.1\"} 1", "{le=\"0.1\"} 4"},
      {"no bucket for +Inf", "b_seconds_bucket{le=\"+Inf\"} 3\n", ""},
      {"no sum", "b_seconds_sum 1e3\n", ""},
      {"the count is not", "b_seconds_count 3\n", ""},
      {"the count is not", "b_seconds_count 3", "b_seconds_count 4"},
      {"below zero", "a_total 2", "a_total -2"},
      {"does not end", "b_seconds_count 3\n", "b_seconds_count 3"},
  };
  for (const auto& broken : cases) {
    std::string text = good;
    const size_t place = text.find(broken.old_text);
    ASSERT_NE(place, std::string::npos) << broken.old_text;
    text.replace(place, std::string(broken.old_text).size(), broken.new_text);
    EXPECT_THAT(ExpositionReader::read(text).complaints,
                ::testing::Contains(HasSubstr(broken.what)))
        << text;
  }
  for (const char* name : {"a_milliseconds", "a_ms", "aB", "a:b", "a_gauge", "a_count"}) {
    const std::string text =
        std::string("# HELP ") + name + " A.\n# TYPE " + name + " gauge\n" + name + " 1\n";
    EXPECT_EQ(ExpositionReader::read(text).complaints.size(), 1u) << name;
  }
}

TEST(Prometheus, HistogramsCountWhatWasAdded) {
  const Exposition read = read_text(busy_text());
  const std::string name = "hearth_time_to_first_token_seconds";
  EXPECT_EQ(value_of(read, name + "_bucket", {{"le", "0.025"}}), 3);
  EXPECT_EQ(value_of(read, name + "_bucket", {{"le", "160"}}), 4);
  EXPECT_EQ(value_of(read, name + "_bucket", {{"le", "+Inf"}}), 5);
  EXPECT_EQ(value_of(read, name + "_count"), 5);
  EXPECT_DOUBLE_EQ(value_of(read, name + "_sum"), 1e9 + 1.0401);
}

TEST(Prometheus, NumbersAreWhatTheEngineCounted) {
  Metrics metrics;
  metrics.running.set(3);
  metrics.generated_tokens.add(70);
  metrics.finished_cancelled.add(2);
  metrics.preemptions_swap.add(4);
  const Exposition read = read_text(prometheus_text(metrics));
  EXPECT_EQ(value_of(read, "hearth_requests_running"), 3);
  EXPECT_EQ(value_of(read, "hearth_generated_tokens_total"), 70);
  EXPECT_EQ(value_of(read, "hearth_requests_finished_total", {{"reason", "cancelled"}}), 2);
  EXPECT_EQ(value_of(read, "hearth_preemptions_total", {{"kind", "swap"}}), 4);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void check_dashboard(const std::string& path) {
  const auto dashboard = nlohmann::json::parse(read_file(path), nullptr, false);
  ASSERT_TRUE(dashboard.is_object());
  ASSERT_FALSE(dashboard["panels"].empty());
  std::set<std::string> names;
  for (const Sample& sample : read_text(prometheus_text(Metrics())).samples)
    names.insert(sample.name);
  static const std::regex name(R"(hearth_[a-z0-9_]+)");
  size_t asked = 0;
  for (const auto& panel : dashboard["panels"]) {
    for (const auto& target : panel.value("targets", nlohmann::json::array())) {
      const std::string expression = target.value("expr", "");
      for (std::sregex_iterator it(expression.begin(), expression.end(), name), end; it != end;
           ++it) {
        EXPECT_TRUE(names.contains(it->str())) << it->str();
        ++asked;
      }
    }
  }
  EXPECT_GT(asked, 10u);
}

TEST(Prometheus, TheDashboardsAskOnlyForWhatIsThere) {
  check_dashboard(HEARTH_SOURCE_DIR "/docs/grafana-dashboard.json");
  check_dashboard(HEARTH_SOURCE_DIR "/deploy/grafana/replicas.json");
}

TEST(Prometheus, TheManualNamesThemAll) {
  const std::string manual = read_file(HEARTH_SOURCE_DIR "/docs/server.md");
  for (const auto& [name, type] : read_text(prometheus_text(Metrics())).types)
    EXPECT_NE(manual.find('`' + name.substr(7)), std::string::npos) << name;
}

}  // namespace
}  // namespace hearth::testing
