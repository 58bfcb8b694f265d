#include "tools/replay/perfetto_trace.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include <fmt/format.h>

namespace hearth {
namespace {

constexpr std::string_view kHead = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
// Written after every chunk and overwritten by the next one.
constexpr std::string_view kTail = "\n]}\n";
constexpr size_t kChunkBytes = 256 * 1024;
constexpr uint32_t kGpuTrack = 1;
constexpr uint32_t kFirstSlotTrack = 2;

std::string quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Result<std::unique_ptr<PerfettoTrace>> PerfettoTrace::create(const std::string& path) {
  std::unique_ptr<PerfettoTrace> trace(new PerfettoTrace(path));
  trace->file_.reset(std::fopen(path.c_str(), "wb"));
  if (!trace->file_)
    return Error{ErrorKind::kIo, fmt::format("cannot write {}: {}", path, strerror(errno))};
  trace->buffer_ = kHead;
  trace->flush();
  return trace;
}

PerfettoTrace::~PerfettoTrace() { flush(); }

Status PerfettoTrace::finish(std::string_view more) {
  flush();
  if (file_ != nullptr && !more.empty()) {
    // Overwrites the tail, which is shorter.
    const std::string rest = fmt::format("\n],{}\n}}\n", more);
    if (std::fwrite(rest.data(), 1, rest.size(), file_.get()) != rest.size() ||
        std::fflush(file_.get()) != 0)
      give_up(errno);
    file_.reset();
  }
  if (!failure_.empty()) return Error{ErrorKind::kIo, failure_};
  return {};
}

void PerfettoTrace::give_up(int error) {
  failure_ = fmt::format("cannot write {}: {}", path_, std::strerror(error));
  file_.reset();
  // Only a file of our own: not /dev/stdout, and not the pipe of a program.
  std::error_code failed;
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(path_, failed))) return;
  if (std::filesystem::remove(path_, failed)) failure_ += "; the unfinished file was removed";
}

void PerfettoTrace::flush() {
  if (buffer_.empty()) return;
  if (file_ == nullptr) return buffer_.clear();
  const auto write = [&](std::string_view text) {
    return std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  };
  // The next chunk overwrites the tail.
  if (!write(buffer_) || !write(kTail) || std::fflush(file_.get()) != 0 ||
      std::fseek(file_.get(), -static_cast<long>(kTail.size()), SEEK_CUR) != 0)
    give_up(errno);
  buffer_.clear();
}

void PerfettoTrace::event(std::string_view fields) {
  fmt::format_to(std::back_inserter(buffer_), "{}{{\"pid\":{},{}}}", first_event_ ? "" : ",\n",
                 run_, fields);
  first_event_ = false;
}

void PerfettoTrace::name_track(uint32_t track, std::string_view name) {
  event(fmt::format(R"("tid":{},"ph":"M","name":"thread_name","args":{{"name":{}}})", track,
                    quoted(name)));
  event(fmt::format(R"("tid":{0},"ph":"M","name":"thread_sort_index","args":{{"sort_index":{0}}})",
                    track));
}

void PerfettoTrace::begin_run(std::string_view name, uint32_t slots, double begin_seconds) {
  ++run_;
  begin_seconds_ = begin_seconds;
  last_end_ = begin_seconds;
  slots_.clear();
  event(fmt::format(R"("ph":"M","name":"process_name","args":{{"name":{}}})", quoted(name)));
  name_track(kGpuTrack, "GPU");
  for (uint32_t slot = 0; slot < slots; ++slot)
    name_track(kFirstSlotTrack + slot, fmt::format("slot {}", slot));
}

void PerfettoTrace::mark(RequestId request, std::string_view name, double seconds) {
  const auto slot = slots_.find(request);
  if (slot == slots_.end()) return;
  event(fmt::format(R"("tid":{},"ph":"i","s":"t","ts":{:.3f},"name":"{}","args":{{"request":{}}})",
                    kFirstSlotTrack + slot->second, microseconds(seconds), name, request));
}

void PerfettoTrace::add(const StepRecord& record) {
  const double begin = std::max(record.submit_seconds, last_end_);
  const double start = microseconds(begin);
  const double duration = std::max(0.0, (record.end_seconds - begin) * 1e6);
  // Preemptions are marked first, because another request may take over the slot in this step.
  for (const RequestId request : record.preempted_recompute) mark(request, "preempted", begin);
  for (const RequestId request : record.preempted_swap) mark(request, "swapped out", begin);
  event(fmt::format(
      R"("tid":{},"ph":"X","ts":{:.3f},"dur":{:.3f},"name":"step","args":{{"step":{},"sequences":{},)"
      R"("tokens":{},"padding_tokens":{},"plan_us":{:.1f}}})",
      kGpuTrack, start, duration, record.step, record.members.size(), record.tokens,
      record.padding_tokens, record.plan_seconds * 1e6));
  for (const StepMember& member : record.members) {
    slots_[member.request] = member.slot;
    // Named after the request, so that Perfetto tells requests of one slot apart.
    event(fmt::format(R"("tid":{},"ph":"X","ts":{:.3f},"dur":{:.3f},"name":"#{} {}","args":{{)"
                      R"("request":{},"tokens":{},"position":{},"samples":{}}})",
                      kFirstSlotTrack + member.slot, start, duration, member.request,
                      member.phase == StepPhase::kPrompt ? "prompt" : "decode", member.request,
                      member.tokens, member.first_position, member.samples));
  }
  for (const BatchPlan::PrefixHit& hit : record.prefix_hits)
    if (hit.tokens > 0) mark(hit.request, "prefix hit", begin);
  const SchedulerCounts& counts = record.counts;
  const auto counter = [&](std::string_view name, const std::string& values) {
    event(fmt::format(R"("ph":"C","ts":{:.3f},"name":"{}","args":{{{}}})", start, name, values));
  };
  counter("KV blocks", fmt::format(R"("used":{},"cached":{},"free":{})", counts.blocks_used,
                                   counts.blocks_cached, counts.blocks_free));
  counter("batch", fmt::format(R"("sequences":{})", record.members.size()));
  counter("rows", fmt::format(R"("tokens":{},"padding":{})", record.tokens, record.padding_tokens));
  counter("requests", fmt::format(R"("running":{},"waiting":{},"swapped":{})", counts.running,
                                  counts.waiting, counts.swapped));
  last_end_ = record.end_seconds;
  if (buffer_.size() >= kChunkBytes) flush();
}

}  // namespace hearth
