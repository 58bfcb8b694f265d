#include "tools/server/prometheus_writer.h"

#include <fmt/format.h>

namespace hearth {

std::string prometheus_label(std::string_view name, std::string_view value) {
  std::string text(name);
  text += "=\"";
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text += '"';
}

void PrometheusWriter::head(std::string_view name, std::string_view type, std::string_view help) {
  text_ += fmt::format("# HELP {0}{1} {2}\n# TYPE {0}{1} {3}\n", prefix_, name, help, type);
}

void PrometheusWriter::sample(std::string_view name, std::string_view labels,
                              std::string_view value) {
  text_ += prefix_;
  text_ += name;
  if (!labels.empty() || !labels_.empty())
    text_ +=
        fmt::format("{{{}{}{}}}", labels_, labels.empty() || labels_.empty() ? "" : ",", labels);
  text_ += fmt::format(" {}\n", value);
}

void PrometheusWriter::value(std::string_view name, std::string_view labels, uint64_t value) {
  sample(name, labels, fmt::format("{}", value));
}

void PrometheusWriter::value(std::string_view name, std::string_view labels, double value) {
  sample(name, labels, fmt::format("{}", value));
}

void PrometheusWriter::counter(std::string_view name, std::string_view help,
                               const Counter& counter) {
  head(name, "counter", help);
  value(name, {}, counter.value());
}

void PrometheusWriter::gauge(std::string_view name, std::string_view help, const Counter& counter) {
  head(name, "gauge", help);
  value(name, {}, counter.value());
}

void PrometheusWriter::histogram(std::string_view name, std::string_view help,
                                 const Histogram& histogram) {
  head(name, "histogram", help);
  const Histogram::Snapshot snapshot = histogram.snapshot();
  uint64_t below = 0;
  for (size_t i = 0; i < snapshot.counts.size(); ++i) {
    below += snapshot.counts[i];
    const std::string bound =
        i < snapshot.bounds.size() ? fmt::format("{}", snapshot.bounds[i]) : "+Inf";
    value(fmt::format("{}_bucket", name), prometheus_label("le", bound), below);
  }
  value(fmt::format("{}_sum", name), {}, snapshot.sum);
  value(fmt::format("{}_count", name), {}, snapshot.count);
}

}  // namespace hearth
