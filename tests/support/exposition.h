// Parses Prometheus's text format by the rules of `promtool check metrics`. Everything that its
// parser rejects or its linter reports is in `complaints`.
#pragma once

#include <cmath>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::testing {

struct Sample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct Exposition {
  std::map<std::string, std::string> types;  // by name
  std::vector<Sample> samples;
  std::vector<std::string> complaints;
};

class ExpositionReader {
 public:
  static Exposition read(const std::string& text) {
    ExpositionReader reader;
    if (!text.ends_with("\n")) reader.complain("the last line does not end");
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) reader.read_line(line);
    reader.lint();
    return std::move(reader.read_);
  }

 private:
  void complain(const std::string& what) { read_.complaints.push_back(what); }

  void read_line(const std::string& line) {
    static const std::regex help(R"(# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*)( .*)?)");
    static const std::regex type(R"(# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*))");
    static const std::regex sample(
        R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?|\+Inf|NaN))re");
    std::smatch match;
    if (std::regex_match(line, match, help)) {
      if (!helps_.emplace(match[1], match[2]).second) complain("a second HELP: " + line);
      if (match[2].length() < 2) complain("no help text: " + line);
      begin(match[1]);
    } else if (std::regex_match(line, match, type)) {
      static const std::set<std::string> kinds = {"counter", "gauge", "histogram", "summary",
                                                  "untyped"};
      if (!kinds.contains(match[2])) complain("no such type: " + line);
      if (!read_.types.emplace(match[1], match[2]).second) complain("a second TYPE: " + line);
      if (sampled_.contains(match[1])) complain("TYPE after its samples: " + line);
      begin(match[1]);
    } else if (std::regex_match(line, match, sample)) {
      Sample read{match[1], labels_of(match[2]), std::strtod(match[3].str().c_str(), nullptr)};
      const std::string family = family_of(read.name);
      if (family != current_) complain("not under its own HELP and TYPE: " + line);
      sampled_.insert(family);
      if (!seen_.insert({read.name, read.labels}).second) complain("twice: " + line);
      read_.samples.push_back(std::move(read));
    } else {
      complain("not a line of the format: " + line);
    }
  }

  // All samples of a family must be adjacent.
  void begin(const std::string& family) {
    if (family == current_) return;
    if (!seen_families_.insert(family).second) complain("apart from the rest of it: " + family);
    current_ = family;
  }

  // The family of a sample: the series of a histogram belong to the histogram's name.
  std::string family_of(const std::string& name) const {
    for (const std::string_view part : {"_bucket", "_sum", "_count"}) {
      if (!name.ends_with(part)) continue;
      const auto found = read_.types.find(name.substr(0, name.size() - part.size()));
      if (found != read_.types.end() && found->second == "histogram") return found->first;
    }
    return name;
  }

  std::map<std::string, std::string> labels_of(const std::string& text) {
    static const std::regex label(
        R"re(([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\["\\n])*)"(?:,|$))re");
    std::map<std::string, std::string> labels;
    size_t read = 0;
    for (std::sregex_iterator it(text.begin(), text.end(), label), end; it != end; ++it) {
      if (static_cast<size_t>(it->position()) != read) break;
      read += static_cast<size_t>(it->length());
      if (!labels.emplace((*it)[1], (*it)[2]).second) complain("a label twice: " + text);
    }
    if (read != text.size()) complain("not labels: " + text);
    return labels;
  }

  void lint() {
    static const std::regex not_a_base_unit(
        ".*_(milliseconds|microseconds|nanoseconds|minutes|hours|days|ms|us|ns|sec|kilobytes|"
        "megabytes|gigabytes|kb|mb|gb|kib|mib|gib|percent)(_.*)?");
    for (const auto& [name, type] : read_.types) {
      if (!helps_.contains(name)) complain("no HELP: " + name);
      if (!sampled_.contains(name)) complain("no sample: " + name);
      if (name.ends_with("_total") != (type == "counter"))
        complain("counters, and only they, end in _total: " + name);
      if (std::regex_match(name, std::regex(".*[:A-Z].*"))) complain("colon or capital: " + name);
      if (std::regex_match(name, not_a_base_unit)) complain("not a base unit: " + name);
      if (name.find(type) != std::string::npos) complain("its type in its name: " + name);
      for (const std::string_view part : {"_bucket", "_sum", "_count"})
        if (name.ends_with(part)) complain("a histogram's suffix: " + name);
      if (type == "histogram") lint_histogram(name);
    }
    for (const auto& [name, help] : helps_)
      if (!read_.types.contains(name)) complain("no TYPE: " + name);
    for (const Sample& sample : read_.samples) {
      const auto type = read_.types.find(family_of(sample.name));
      if (type == read_.types.end()) {
        complain("no HELP or TYPE: " + sample.name);
        continue;
      }
      if (type->second != "histogram" && sample.labels.contains("le"))
        complain("'le' is for histograms: " + sample.name);
      if (type->second == "histogram" && sample.name == type->first)
        complain("a histogram has no value of its own: " + sample.name);
      if (type->second == "counter" && !(sample.value >= 0))
        complain("a counter below zero: " + sample.name);
    }
  }

  // Without labels of its own; none of ours has any.
  void lint_histogram(const std::string& name) {
    double last_bound = -HUGE_VAL, last = 0, sum = -1, count = -1;
    bool infinite = false;
    for (const Sample& sample : read_.samples) {
      if (sample.name == name + "_sum") sum = sample.value;
      if (sample.name == name + "_count") count = sample.value;
      if (sample.name != name + "_bucket") continue;
      const auto bound_text = sample.labels.find("le");
      if (bound_text == sample.labels.end()) {
        complain("a bucket without a bound: " + name);
        continue;
      }
      infinite = bound_text->second == "+Inf";
      const double bound = infinite ? HUGE_VAL : std::strtod(bound_text->second.c_str(), nullptr);
      if (!(bound > last_bound)) complain("bounds do not rise: " + name);
      if (sample.value < last) complain("buckets are not cumulative: " + name);
      last_bound = bound;
      last = sample.value;
    }
    if (!infinite) complain("no bucket for +Inf: " + name);
    if (sum < 0) complain("no sum: " + name);
    if (count != last) complain("the count is not what is in all buckets: " + name);
  }

  Exposition read_;
  std::map<std::string, std::string> helps_;
  std::set<std::string> seen_families_, sampled_;
  std::set<std::pair<std::string, std::map<std::string, std::string>>> seen_;
  std::string current_;
};

}  // namespace hearth::testing
