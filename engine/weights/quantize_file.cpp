#include "engine/weights/quantize_file.h"

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "engine/weights/gguf_writer.h"
#include "engine/weights/in_quotes.h"
#include "engine/weights/quantize.h"
#include "engine/weights/repack.h"

namespace hearth {
namespace {

// How many floats a thread converts at a time.
constexpr std::uint64_t kBatchWeights = 1 << 20;
// GGUF's version number of the quantized formats; 2 since their scales are halves.
constexpr std::uint32_t kQuantizationVersion = 2;

std::uint64_t row_bytes(WeightFormat format, std::uint64_t cols) {
  const FormatInfo& info = format_info(format);
  return cols / info.block_weights * info.block_bytes;
}

// Converts consecutive rows of a tensor to another format. Keeps its memory from call to call.
class RowConverter {
 public:
  Status convert(const ModelTensor& tensor, std::uint64_t first, std::uint64_t rows,
                 WeightFormat to) {
    const auto file = tensor.bytes.subspan(first * row_bytes(tensor.format, tensor.cols),
                                           rows * row_bytes(tensor.format, tensor.cols));
    const std::uint64_t blocks = file.size() / format_info(tensor.format).block_bytes;
    device_.resize(device_layout(tensor.format, blocks).total_bytes);
    repack_matrix(tensor.format, file, device_);
    floats_.resize(rows * tensor.cols);
    for (std::uint64_t row = 0; row < rows; ++row)
      dequantize_row(tensor.format, device_.data(), {.rows = rows, .cols = tensor.cols}, row,
                     floats_.data() + row * tensor.cols);
    out_.resize(rows * row_bytes(to, tensor.cols));
    return quantize_row(to, floats_, out_);
  }
  std::span<const std::byte> out() const { return out_; }

 private:
  std::vector<std::byte> device_;
  std::vector<float> floats_;
  std::vector<std::byte> out_;
};

Error stopped() { return {ErrorKind::kInvalid, "stopped; nothing was written"}; }

// Each thread converts a batch of rows; then the batches are written in order.
Status convert_tensor(const ModelTensor& tensor, WeightFormat to, GgufWriter& writer,
                      std::vector<RowConverter>& converters, const std::function<bool()>& goes_on) {
  const std::uint64_t batch = std::max<std::uint64_t>(1, kBatchWeights / tensor.cols);
  for (std::uint64_t first = 0; first < tensor.rows; first += batch * converters.size()) {
    if (!goes_on()) return stopped();
    std::vector<std::optional<Status>> done(converters.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < converters.size() && first + i * batch < tensor.rows; ++i)
        threads.emplace_back([&, i, from = first + i * batch] {
          done[i] = converters[i].convert(tensor, from, std::min(batch, tensor.rows - from), to);
        });
    }
    for (std::size_t i = 0; i < converters.size() && done[i]; ++i) {
      if (!done[i]->ok())
        return Error{done[i]->error().kind, fmt::format("tensor {}: {}", in_quotes(tensor.name),
                                                        done[i]->error().message)};
      HEARTH_TRY(writer.write(converters[i].out()));
    }
  }
  return {};
}

Status write_tensors(const GgufFile& model, std::span<const GgufTensorPlan> plans,
                     GgufWriter& writer, unsigned threads, const QuantizeProgress& progress) {
  std::vector<RowConverter> converters(threads);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const ModelTensor& tensor = model.tensors()[i];
    const auto goes_on = [&] {
      return model.check_files().ok() && (!progress || progress(tensor, plans[i].format, i));
    };
    if (!goes_on()) return stopped();
    if (plans[i].format == tensor.format) {
      HEARTH_TRY(writer.write(tensor.bytes));
      continue;
    }
    const Status status = convert_tensor(tensor, plans[i].format, writer, converters, goes_on);
    if (!status.ok())
      return Error{status.error().kind,
                   fmt::format("{}: {}", model.name(), status.error().message)};
  }
  return {};
}

Result<MixModel> mix_model(const GgufFile& model) {
  const Metadata& metadata = model.metadata();
  HEARTH_ASSIGN(const auto architecture, metadata.text("general.architecture"));
  const auto read = [&](std::string_view key) {
    return metadata.unsigned_integer(fmt::format("{}.{}", architecture.value_or(""), key));
  };
  HEARTH_ASSIGN(const auto layers, read("block_count"));
  HEARTH_ASSIGN(const auto experts, read("expert_count"));
  // An array if layers differ. The rules only use the ratio, which is then taken as 1.
  const auto heads = read("attention.head_count"), kv_heads = read("attention.head_count_kv");
  MixModel mix{.layers = layers.value_or(0),
               .experts = experts.value_or(0),
               .has_output = model.find("output.weight") != nullptr};
  if (heads.ok() && kv_heads.ok() && *heads && *kv_heads && **kv_heads > 0)
    mix.heads_per_kv_head = **heads / **kv_heads;
  return mix;
}

// All keys except those that say how the weights are stored.
GgufKeys keys_for(const GgufFile& model, const QuantizeType& type) {
  GgufKeys keys;
  for (const GgufKey& key : model.keys())
    if (!key.key.starts_with("split.") && key.key != "general.alignment" &&
        key.key != "general.file_type" && key.key != "general.quantization_version")
      keys.add(key);
  keys.add("general.quantization_version", kQuantizationVersion);
  keys.add("general.file_type", type.file_type);
  return keys;
}

}  // namespace

Result<QuantizeReport> quantize_file(const GgufFile& model, const std::filesystem::path& out,
                                     const QuantizeType& type, unsigned threads,
                                     const QuantizeProgress& progress) {
  if (model.consists_of(out))
    return Error{ErrorKind::kInvalid,
                 fmt::format("{}: the output would overwrite the input; choose another file name",
                             out.string())};
  HEARTH_ASSIGN(const MixModel mix, mix_model(model));
  QuantizeReport report;
  std::vector<GgufTensorPlan> plans;
  for (const ModelTensor& tensor : model.tensors()) {
    const GgufTensorPlan& plan =
        plans.emplace_back(GgufTensorPlan{.name = tensor.name,
                                          .format = mixed_format(type, mix, tensor),
                                          .matrices = tensor.matrices,
                                          .rows = tensor.rows,
                                          .cols = tensor.cols});
    ++report.tensors;
    report.parameters += tensor.rows * tensor.cols;
    report.bytes_in += tensor.bytes.size();
    report.bytes_out += plan.bytes();
    ++report.formats[format_info(plan.format).name];
  }
  HEARTH_ASSIGN(auto writer, GgufWriter::create(out, keys_for(model, type), plans));
  const Status written = write_tensors(model, plans, writer, threads, progress);
  // First: what went missing in the model explains every other error.
  HEARTH_TRY(model.check_files());
  HEARTH_TRY(written);
  HEARTH_TRY(writer.finish());
  return report;
}

}  // namespace hearth
