#include "tools/bench/link_bench.h"

#include <nlohmann/json.hpp>
#include <thread>

#include <fmt/format.h>

#include "engine/ranks/in_process_link.h"
#include "engine/ranks/link_timing.h"
#include "engine/ranks/mpi_link.h"
#include "runtime/memory.h"

namespace hearth {
namespace {

constexpr uint32_t kLinkRepetitions = 101;
constexpr uint32_t kLinkRows[] = {1, 8, 64};

struct LinkTimes {
  uint32_t ranks = 0;
  std::vector<LinkTiming> slowest;  // of all pairs, by size; empty on all ranks but the first
};

Result<LinkTimes> link_times() {
  const std::vector<uint64_t> sizes{64, 8 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20};
  if (started_by_mpirun()) {
    HEARTH_ASSIGN(const std::unique_ptr<Link> link, open_mpi_link());
    LinkTimes times{.ranks = link->ranks(), .slowest = {}};
    if (link->rank() > 0) {
      HEARTH_TRY(help_time_links(*link));
    } else {
      HEARTH_ASSIGN(times.slowest, time_links(*link, sizes, kLinkRepetitions));
    }
    return times;
  }
  const auto links = make_in_process_links(2);
  std::thread other([&] {
    if (const Status helped = help_time_links(*links[1]); !helped.ok())
      links[1]->fail(helped.error().message);
  });
  auto timings = time_links(*links[0], sizes, kLinkRepetitions);
  if (!timings.ok()) links[0]->fail("the link failed");
  other.join();
  if (!timings.ok()) return timings.error();
  return LinkTimes{.ranks = 2, .slowest = std::move(timings).value()};
}

SplitCost decode_split_cost(const std::vector<LinkTiming>& timings, const ModelConfig& config,
                            uint32_t rows) {
  return split_cost(timings, {.rows = rows,
                              .width = config.width,
                              .layers = config.layers,
                              .vocabulary = config.vocabulary,
                              .heads = config.heads,
                              .head_size = config.head_size});
}

}  // namespace

Status bench_link(const ModelConfig& config, bool json) {
  HEARTH_ASSIGN(const LinkTimes times, link_times());
  const std::vector<LinkTiming>& timings = times.slowest;
  if (timings.empty()) return {};
  const char* kind = started_by_mpirun() ? "mpi" : "in-process";
  if (json) {
    nlohmann::json result = {
        {"link", kind}, {"link_ranks", times.ranks}, {"messages", nlohmann::json::array()}};
    for (const LinkTiming& timing : timings)
      result["messages"].push_back(
          {{"bytes", timing.bytes}, {"seconds", timing.seconds}, {"ranks", timing.ranks}});
    for (const uint32_t rows : kLinkRows) {
      const SplitCost cost = decode_split_cost(timings, config, rows);
      result["splits"].push_back({{"rows", rows},
                                  {"pipeline_seconds", cost.pipeline_seconds},
                                  {"tensor_seconds", cost.tensor_seconds},
                                  {"sequence_seconds", cost.sequence_seconds},
                                  {"pipeline_pays_above_seconds", cost.pipeline_pays_above()},
                                  {"tensor_pays_above_seconds", cost.tensor_pays_above()},
                                  {"sequence_pays_above_seconds", cost.sequence_pays_above()}});
    }
    fmt::print("{}\n", result.dump());
    return {};
  }
  fmt::print("link: {}, {} ranks; one way, median of {}{}\n", kind, times.ranks, kLinkRepetitions,
             times.ranks > 2 ? ", between the two ranks that took longest" : "");
  for (const LinkTiming& timing : timings)
    fmt::print("   {:>9} {:>9.1f} us{}\n", format_bytes(timing.bytes), timing.seconds * 1e6,
               times.ranks > 2
                   ? fmt::format("  between ranks {} and {}", timing.ranks[0], timing.ranks[1])
                   : "");
  fmt::print(
      "added to a decode step of this model ({} layers, width {}), and how long the step must "
      "take on one\ndevice for two equal devices to be faster; by sequence, how long its attention "
      "to the KV cache must take:\n",
      config.layers, config.width);
  fmt::print("   {:>9} {:>22} {:>22} {:>24}\n", "sequences", "by layers, pays above",
             "by tensor, pays above", "by sequence, pays above");
  for (const uint32_t rows : kLinkRows) {
    const SplitCost cost = decode_split_cost(timings, config, rows);
    const auto both = [](double added, double pays) {
      return fmt::format("{:.2f} ms, {:.2f} ms", added * 1e3, pays * 1e3);
    };
    fmt::print("   {:>9} {:>22} {:>22} {:>24}\n", rows,
               both(cost.pipeline_seconds, cost.pipeline_pays_above()),
               both(cost.tensor_seconds, cost.tensor_pays_above()),
               both(cost.sequence_seconds, cost.sequence_pays_above()));
  }
  fmt::print(
      "Copies to and from the devices come on top; ranks of one process share memory instead of "
      "sending rows. A model that\nfits on one device is fastest there; --split layers is for one "
      "that does not, --split sequence for\ncontexts that do not.\n");
  return {};
}

}  // namespace hearth
