// The options and the processes of ranks.
#include <csignal>
#include <cstdlib>

#include <fmt/format.h>

#include "engine/open_model_file.h"
#include "engine/rank_worker.h"
#include "engine/ranks/mpi_link.h"
#include "tools/commands/model_options.h"
#include "tools/commands/rank_lists.h"

namespace hearth {
namespace {

std::vector<std::string> list_items(const std::string& list) {
  std::vector<std::string> items;
  if (list.empty()) return items;
  size_t begin = 0;
  for (;;) {
    const size_t end = list.find(',', begin);
    items.push_back(list.substr(begin, end - begin));
    if (end == std::string::npos) return items;
    begin = end + 1;
  }
}

}  // namespace

std::string problem_with_devices(const std::string& devices) {
  for (const std::string& item : list_items(devices))
    if (item.empty()) return "name devices with commas between them, such as 0,1";
  return {};
}

std::string problem_with_layers(const std::string& layers) {
  for (const std::string& item : list_items(layers))
    if (item.empty() || item.size() > 4 ||
        item.find_first_not_of("0123456789") != std::string::npos)
      return "give the number of layers per rank with commas between them, such as 20,12";
  return {};
}

std::string problem_with_split(const std::string& split) {
  if (split == "layers" || split == "tensor" || split == "sequence") return {};
  return "use layers, tensor or sequence";
}

std::string problem_with_divided_rows(const std::string& rows) {
  if (rows == "auto") return {};
  if (!rows.empty() && rows.size() <= 6 &&
      rows.find_first_not_of("0123456789") == std::string::npos)
    return {};
  return "use auto or a number of tokens, 0 for never";
}

void read_ranks(const std::string& devices, const std::string& layers, RankOptions& ranks) {
  ranks.devices = list_items(devices);
  ranks.layers.clear();
  for (const std::string& item : list_items(layers))
    ranks.layers.push_back(static_cast<uint32_t>(std::strtoul(item.c_str(), nullptr, 10)));
}

void ModelOptionsGroup::declare_ranks(Options& options) {
  may_have_ranks_ = true;
  options
      .add("--devices LIST", &devices_, "Divide the model over these devices, such as 0,1 or 0,0")
      .check(problem_with_devices);
  options
      .add("--split KIND", &split_,
           "Split by layers, within every layer (tensor), or only the KV cache (sequence)")
      .check(problem_with_split)
      .advanced();
  options
      .add("--layers LIST", &layers_,
           "Layers of each device, such as 20,12; by default by free memory")
      .check(problem_with_layers)
      .advanced();
  options
      .add("--parts N", &session.ranks.parts,
           "Parts of a large step that ranks run at the same time; 0 chooses")
      .range(0, 64)
      .advanced();
  options
      .add("--divide-rows N", &divided_rows_,
           "With --split tensor: divide norms, too, in steps of N tokens or more")
      .check(problem_with_divided_rows)
      .advanced();
}

bool ModelOptionsGroup::is_other_rank() const { return may_have_ranks_ && mpi_rank() > 0; }

Status ModelOptionsGroup::add_ranks(SessionOptions& options) const {
  if (!may_have_ranks_) return {};
  if (!devices_.empty() && !session.device.empty())
    return invalid("-d and --devices cannot be combined");
  if (started_by_mpirun()) {
    HEARTH_ASSIGN(options.ranks.link, open_mpi_link());
    if (const char* here = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE"))
      options.ranks.ranks_here = static_cast<uint32_t>(std::strtoul(here, nullptr, 10));
  }
  if (!options.ranks.several() && (split_ != "layers" || session.ranks.parts > 0))
    return invalid("--split and --parts need several --devices, or mpirun");
  if (divided_rows_ != "auto" && options.ranks.split != RankSplit::kTensor)
    return invalid("--divide-rows needs --split tensor");
  if (options.deterministic && divided_rows_ != "auto" && divided_rows_ != "0")
    return invalid(
        "--divide-rows changes the last bit of results with the size of a step; leave it out with "
        "--deterministic");
  if (divided_rows_ != "auto")
    options.ranks.divided_rows =
        static_cast<uint32_t>(std::strtoul(divided_rows_.c_str(), nullptr, 10));
  if (!layers_.empty() && !options.ranks.several())
    return invalid("--layers needs --devices or mpirun");
  if (!layers_.empty() && options.ranks.split != RankSplit::kLayers)
    return invalid(fmt::format("--layers and --split {} cannot be combined", split_));
  return {};
}

Status ModelOptionsGroup::run_rank() const {
  // Rank 0 decides when to end; mpirun tells all ranks at once.
  std::signal(SIGTERM, SIG_IGN);
  std::signal(SIGINT, SIG_IGN);
  SessionOptions options = session_options();
  options.prepared = nullptr;
  HEARTH_TRY(add_ranks(options));
  Link& link = *options.ranks.link;
  const auto refuse = [&](const Error& error) -> Status {
    HEARTH_TRY(link.send(0, Channel::kSetup, write_offer(error)));
    return error;
  };
  const Result<std::unique_ptr<ModelFile>> file = open_model_file(model);
  if (!file.ok()) return refuse(file.error());
  const auto instance = Instance::create({.validation = options.validation});
  if (!instance.ok()) return refuse(instance.error());
  return run_rank_worker(**instance, link, **file, options);
}

}  // namespace hearth
