// hearth quantize IN OUT TYPE: a GGUF file in another format.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "engine/weights/quantize_file.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"

namespace hearth {
namespace {

// Ctrl-C leaves no half of a file behind; a second one ends the program where it is.
volatile std::sig_atomic_t interrupted = 0;

extern "C" void interrupt(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

class QuantizeCommand : public Command {
 public:
  QuantizeCommand() : Command("quantize", "A GGUF file in another format") {}

  void declare(Options& options) override {
    options.example("hearth quantize model-F16.gguf model-Q4_K_M.gguf Q4_K_M");
    options.add("IN", &in_, "Model to read: a .gguf file, or any file of a split set").required();
    options.add("OUT", &out_, "File to write").required();
    options.add("TYPE", &type_, "One of " + quantize_type_names())
        .required()
        .check([](const std::string& name) {
          return find_quantize_type(name) ? "" : "no type " + name + ": " + quantize_type_names();
        });
    options.add("--threads N", &threads_, "CPU threads to use").range(1, 1024);
    add_json_option(options, &json_);
  }

  Status run() override {
    const auto start = std::chrono::steady_clock::now();
    const QuantizeType type = *find_quantize_type(type_);
    HEARTH_ASSIGN(const auto model, GgufFile::open(in_));
    const bool terminal = ::isatty(STDERR_FILENO) != 0;
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, interrupt);
    std::uint64_t shown = 0;
    const auto progress = [&](const ModelTensor& tensor, WeightFormat to, std::uint64_t index) {
      if (terminal && index + 1 != shown) {
        shown = index + 1;
        fmt::print(stderr, "\r\033[K{}/{} {} {}", shown, model->tensors().size(), tensor.name,
                   format_info(to).name);
        std::fflush(stderr);
      }
      return interrupted == 0;
    };
    const auto report = quantize_file(*model, out_, type, threads_, progress);
    if (terminal) fmt::print(stderr, "\r\033[K");
    if (!report.ok()) return report.error();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    print(*report, type, taken.count());
    return {};
  }

 private:
  void print(const QuantizeReport& report, const QuantizeType& type, double seconds) const {
    if (json_) {
      nlohmann::json formats = nlohmann::json::object();
      for (const auto& [name, count] : report.formats) formats[std::string(name)] = count;
      const nlohmann::json json = {
          {"in", in_},
          {"out", out_},
          {"type", type.name},
          {"tensors", report.tensors},
          {"parameters", report.parameters},
          {"bytes_in", report.bytes_in},
          {"bytes_out", report.bytes_out},
          {"bits_per_weight", bits_per_weight(report)},
          {"formats", formats},
          {"seconds", seconds},
      };
      fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
      return;
    }
    fmt::print("{}: {}, {} tensors, {:.2f} bits a weight, {:.1f} MB from {:.1f} MB in {:.1f} s\n",
               out_, type.name, report.tensors, bits_per_weight(report),
               static_cast<double>(report.bytes_out) * 1e-6,
               static_cast<double>(report.bytes_in) * 1e-6, seconds);
    for (const auto& [name, count] : report.formats) fmt::print("  {:<7} {:>5}\n", name, count);
  }

  static double bits_per_weight(const QuantizeReport& report) {
    if (report.parameters == 0) return 0;
    return 8 * static_cast<double>(report.bytes_out) / static_cast<double>(report.parameters);
  }

  std::string in_, out_, type_;
  unsigned threads_ = std::max(1u, std::thread::hardware_concurrency());
  bool json_ = false;
};

QuantizeCommand quantize_command;

}  // namespace
}  // namespace hearth
