#include "runtime/chain_guard.h"

#include <bit>
#include <utility>

#include <fmt/format.h>

#include "runtime/command_recorder.h"
#include "runtime/device.h"
#include "runtime/log.h"
#include "runtime/memory.h"
#include "runtime/queue.h"
#include "runtime/rounding.h"

namespace hearth {

Status ChainGuard::open() {
  HEARTH_ASSIGN(host_failed_, device_.memory().allocate({.bytes = sizeof(uint32_t),
                                                         .intent = MemoryIntent::kReadback,
                                                         .name = "chain failed"}));
  host_failed_.view<uint32_t>()[0] = 0;
  HEARTH_TRY(host_failed_.flush());
  HEARTH_ASSIGN(memory_, device_.memory().allocate({.bytes = kChainBytes + kChainAlignment,
                                                    .intent = MemoryIntent::kActivations,
                                                    .name = "chain counts"}));
  const uint64_t host = host_failed_.address();
  const uint32_t state[] = {0, 0, static_cast<uint32_t>(host), static_cast<uint32_t>(host >> 32)};
  static_assert(sizeof(ChainState) == sizeof state);
  HEARTH_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device_, {.name = "chain"}));
  const uint64_t begin = address() - memory_.address();
  for (size_t i = 0; i < std::size(state); ++i)
    recorder.fill(memory_.slice(begin + i * sizeof(uint32_t), sizeof(uint32_t)), state[i]);
  HEARTH_ASSIGN(const CommandBuffer commands, recorder.finish());
  return device_.compute().run(commands);
}

void ChainGuard::close() {
  memory_ = {};
  host_failed_ = {};
}

uint64_t ChainGuard::address() const {
  return round_up(memory_.address(), kChainAlignment);
}

BufferSlice ChainGuard::links() const {
  return memory_.slice(address() - memory_.address() + kChainStride, kChainBytes - kChainStride);
}

void ChainGuard::submitted(ChainUser& user, size_t which, const TimelinePoint& done) {
  if (usable()) steps_.push_back({&user, which, done});
}

void ChainGuard::forget(const ChainUser& user) {
  std::erase_if(steps_, [&](const Step& step) { return step.user == &user; });
}

Result<bool> ChainGuard::wait_failed() const {
  if (!is_open()) return false;
  HEARTH_TRY(host_failed_.invalidate());
  return host_failed_.view<const uint32_t>()[0] != 0;
}

Status ChainGuard::check(const TimelinePoint& done) {
  if (!usable()) return {};
  HEARTH_ASSIGN(const bool failed, wait_failed());
  if (!failed) {
    std::erase_if(steps_, [&](const Step& step) { return step.done.value <= done.value; });
    return {};
  }
  turn_off();
  log_line(
      fmt::format("{}: a kernel waited too long for the one before it; from now on there are "
                  "barriers between kernels",
                  device_.caps().name));
  HEARTH_TRY(device_.compute().wait_idle());
  for (const Step& step : std::exchange(steps_, {})) HEARTH_TRY(step.user->rerun(step.which));
  return {};
}

Status ChainGuard::settle() {
  if (steps_.empty()) return {};
  const TimelinePoint last = steps_.back().done;
  HEARTH_TRY(device_.compute().wait(last));
  return check(last);
}

}  // namespace hearth
