// Writes metrics in Prometheus' text format. All names of a writer begin with its prefix, and all
// its samples have its labels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "engine/metrics.h"

namespace hearth {

// name="value", with the value escaped.
std::string prometheus_label(std::string_view name, std::string_view value);

class PrometheusWriter {
 public:
  // `labels` are as prometheus_label() makes them, separated by commas; may be empty.
  explicit PrometheusWriter(std::string prefix, std::string labels = {})
      : prefix_(std::move(prefix)), labels_(std::move(labels)) {}

  void head(std::string_view name, std::string_view type, std::string_view help);
  // Samples with labels of their own, after head().
  void value(std::string_view name, std::string_view labels, uint64_t value);
  void value(std::string_view name, std::string_view labels, double value);

  void counter(std::string_view name, std::string_view help, const Counter& counter);
  void gauge(std::string_view name, std::string_view help, const Counter& counter);
  void histogram(std::string_view name, std::string_view help, const Histogram& histogram);

  std::string take() { return std::move(text_); }

 private:
  void sample(std::string_view name, std::string_view labels, std::string_view value);

  const std::string prefix_, labels_;
  std::string text_;
};

}  // namespace hearth
