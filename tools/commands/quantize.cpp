// hearth quantize IN OUT TYPE: converts a GGUF file to another weight format.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "engine/model_library.h"
#include "engine/weights/quantize_file.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"
#include "tools/progress.h"

namespace hearth {
namespace {

// After the first Ctrl-C the unfinished file is removed; a second one ends the program at once.
volatile std::sig_atomic_t interrupted = 0;

extern "C" void interrupt(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

class QuantizeCommand : public Command {
 public:
  QuantizeCommand()
      : Command(CommandGroup::kFiles, "quantize", "Convert a GGUF file to another weight format") {}

  void declare(Options& options) override {
    options.example("hearth quantize model-F16.gguf model-Q4_K_M.gguf Q4_K_M");
    options.add("IN", &in_, "Model to read: a .gguf file, or any file of a split set").required();
    options.add("OUT", &out_, "File to write").required();
    options.add("TYPE", &type_, "One of " + quantize_type_names())
        .required()
        .check([](const std::string& name) {
          return find_quantize_type(name)
                     ? ""
                     : "unknown type '" + name + "'; use one of " + quantize_type_names();
        });
    options.add("--force", &force_, "Overwrite OUT if it exists");
    options.add("--threads N", &threads_, "CPU threads to use").range(1, 1024);
    add_json_option(options, &json_);
  }

  Status run() override {
    const auto start = std::chrono::steady_clock::now();
    const QuantizeType type = *find_quantize_type(type_);
    HEARTH_ASSIGN(const LibraryModel found, find_model(in_));
    if (found.format != "GGUF")
      return Error{
          ErrorKind::kUnsupported,
          fmt::format("quantize needs a .gguf file, and {} is {}", found.name,
                      found.path.empty() ? "the built-in model" : "a folder of safetensors files")};
    HEARTH_ASSIGN(const auto model, GgufFile::open(found.path));
    HEARTH_TRY(check_output(*model));
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, interrupt);
    // What is done when a tensor begins, in parameters.
    std::vector<uint64_t> before = {0};
    for (const ModelTensor& tensor : model->tensors())
      before.push_back(before.back() + tensor.rows * tensor.cols);
    Progress progress("quantizing", ProgressOutput::standard_error(json_));
    const auto report = quantize_file(
        *model, out_, type, threads_,
        [&](const ModelTensor& tensor, WeightFormat to, uint64_t index) {
          progress.update(before[index], before.back(),
                          fmt::format("tensor {} of {}: {} to {}", index + 1, before.size() - 1,
                                      tensor.name, format_info(to).name));
          return interrupted == 0;
        });
    progress.clear();
    if (!report.ok()) return report.error();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    print(*report, type, taken.count());
    return {};
  }

 private:
  Status check_output(const GgufFile& model) const {
    std::error_code ignored;
    const std::filesystem::path folder = std::filesystem::path(out_).parent_path();
    if (!folder.empty() && !std::filesystem::exists(folder, ignored))
      return Error{ErrorKind::kNotFound,
                   fmt::format("cannot write {}: the folder does not exist", out_)};
    if (force_ || model.consists_of(out_) || !std::filesystem::exists(out_, ignored)) return {};
    return Error{ErrorKind::kInvalid,
                 fmt::format("{} already exists; use --force to overwrite it", out_)};
  }

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
    fmt::print("{}: {}, {} tensors, {:.2f} bits per weight, {:.1f} MB from {:.1f} MB in {:.1f} s\n",
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
  bool force_ = false, json_ = false;
};

QuantizeCommand quantize_command;

}  // namespace
}  // namespace hearth
