// The text Prometheus reads: its rules, and that the dashboard asks for nothing that is not there.
#include "tools/server/prometheus.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

namespace hearth {
namespace {

struct Sample {
  std::string name, labels;
  double value;
};
struct Exposition {
  std::map<std::string, std::string> types;
  std::vector<Sample> samples;
};

// What a sample belongs to: a histogram's parts are under its own name.
std::string family(const std::string& name, const Exposition& read) {
  for (const char* part : {"_bucket", "_sum", "_count"}) {
    if (!name.ends_with(part)) continue;
    const std::string base = name.substr(0, name.size() - std::string(part).size());
    if (read.types.contains(base)) return base;
  }
  return name;
}

// Checks every line on the way.
Exposition read_text(const std::string& text) {
  static const std::regex help(R"(# HELP (hearth_[a-z0-9_]+) \S.*)");
  static const std::regex type(R"(# TYPE (hearth_[a-z0-9_]+) (counter|gauge|histogram))");
  static const std::regex sample(R"re((hearth_[a-z0-9_]+)(\{[a-z]+="[^"\\]*"\})? ([-+0-9.eE]+))re");
  Exposition read;
  std::set<std::string> helped;
  std::string current, line;
  EXPECT_TRUE(text.ends_with("\n"));
  std::istringstream lines(text);
  while (std::getline(lines, line)) {
    std::smatch match;
    if (std::regex_match(line, match, help)) {
      EXPECT_TRUE(helped.insert(match[1]).second) << "twice: " << line;
      current = match[1];
    } else if (std::regex_match(line, match, type)) {
      EXPECT_EQ(match[1], current) << "HELP comes first: " << line;
      EXPECT_TRUE(read.types.emplace(match[1], match[2]).second) << line;
    } else if (std::regex_match(line, match, sample)) {
      EXPECT_EQ(family(match[1], read), current) << "samples stand together: " << line;
      EXPECT_TRUE(read.types.contains(current)) << line;
      read.samples.push_back({match[1], match[2], std::strtod(match[3].str().c_str(), nullptr)});
    } else {
      ADD_FAILURE() << "not a line Prometheus reads: " << line;
    }
  }
  return read;
}

double value_of(const Exposition& read, const std::string& name, const std::string& labels = {}) {
  for (const Sample& sample : read.samples)
    if (sample.name == name && sample.labels == labels) return sample.value;
  ADD_FAILURE() << "missing: " << name << labels;
  return -1;
}

TEST(Prometheus, KeepsTheRulesOfTheFormat) {
  const Metrics metrics;
  const Exposition read = read_text(prometheus_text(metrics));
  EXPECT_GE(read.types.size(), 20u);
  for (const auto& [name, type] : read.types)
    EXPECT_EQ(name.ends_with("_total"), type == "counter") << name;
}

TEST(Prometheus, BucketsAreCumulativeAndEndWithAll) {
  Metrics metrics;
  for (const double value : {0.0001, 0.02, 0.02, 1.0, 1e9})
    metrics.time_to_first_token_seconds.add(value);
  const Exposition read = read_text(prometheus_text(metrics));
  const std::string name = "hearth_time_to_first_token_seconds";
  double last = 0, last_bound = 0, at_infinity = -1;
  size_t buckets = 0;
  for (const Sample& sample : read.samples) {
    if (sample.name != name + "_bucket") continue;
    ++buckets;
    EXPECT_GE(sample.value, last);
    last = sample.value;
    if (sample.labels == R"({le="+Inf"})") {
      at_infinity = sample.value;
    } else {
      EXPECT_EQ(at_infinity, -1) << "+Inf comes last";
      const double bound = std::strtod(sample.labels.c_str() + 5, nullptr);
      EXPECT_GT(bound, last_bound);
      last_bound = bound;
    }
  }
  EXPECT_GT(buckets, 5u);
  EXPECT_EQ(at_infinity, 5);
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
  EXPECT_EQ(value_of(read, "hearth_requests_finished_total", R"({reason="cancelled"})"), 2);
  EXPECT_EQ(value_of(read, "hearth_preemptions_total", R"({kind="swap"})"), 4);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Prometheus, TheDashboardAsksOnlyForWhatIsThere) {
  const std::string text = read_file(HEARTH_SOURCE_DIR "/docs/grafana-dashboard.json");
  const auto dashboard = nlohmann::json::parse(text, nullptr, false);
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

TEST(Prometheus, TheManualNamesThemAll) {
  const std::string manual = read_file(HEARTH_SOURCE_DIR "/docs/server.md");
  for (const auto& [name, type] : read_text(prometheus_text(Metrics())).types)
    EXPECT_NE(manual.find('`' + name.substr(7)), std::string::npos) << name;
}

}  // namespace
}  // namespace hearth
