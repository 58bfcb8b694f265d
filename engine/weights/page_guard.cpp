#include "engine/weights/page_guard.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace hearth {

// A watched mapping. Regions are in a list that only grows, because the signal handler walks
// through it without a lock; one that is no longer used has no bytes, and is used again.
struct GuardedRegion {
  std::atomic<std::uintptr_t> begin = 0;
  std::atomic<std::size_t> bytes = 0;
  std::atomic<bool> damaged = false;
  GuardedRegion* next = nullptr;
};

namespace {

static_assert(std::atomic<std::uintptr_t>::is_always_lock_free &&
              std::atomic<GuardedRegion*>::is_always_lock_free);

std::atomic<GuardedRegion*> first_region = nullptr;
std::mutex region_mutex;  // for changing regions
std::uintptr_t page_bytes = 0;
struct sigaction handler_before;

// Only what a signal handler may do: mmap is a system call like any other.
bool replace_by_zeros(GuardedRegion& region, std::uintptr_t address) {
  const std::uintptr_t begin = region.begin, end = begin + region.bytes;
  if (address < begin || address >= end) return false;
  if (region.begin != begin) return false;  // it was reused between the two reads above
  region.damaged = true;
  const std::uintptr_t page = address & ~(page_bytes - 1);
  return ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((handler_before.sa_flags & SA_SIGINFO) != 0)
    return handler_before.sa_sigaction(signal, info, context);
  if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN)
    return handler_before.sa_handler(signal);
  // Ends the process when this handler returns.
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (GuardedRegion* region = first_region; info->si_code == BUS_ADRERR && region != nullptr;
       region = region->next)
    if (replace_by_zeros(*region, address)) {
      errno = error;
      return;
    }
  pass_on(signal, info, context);
}

void install_handler() {
  static const bool installed = [] {
    page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    return ::sigaction(SIGBUS, &action, &handler_before) == 0;
  }();
  static_cast<void>(installed);
}

// REQUIRES: region_mutex is held.
GuardedRegion* unused_region() {
  for (GuardedRegion* region = first_region; region != nullptr; region = region->next)
    if (region->bytes == 0) return region;
  auto* const region = new GuardedRegion;
  region->next = first_region;
  first_region = region;
  return region;
}

}  // namespace

PageGuard::PageGuard(std::span<const std::byte> mapping) {
  if (mapping.empty()) return;
  const std::lock_guard lock(region_mutex);
  install_handler();
  region_ = unused_region();
  region_->damaged = false;
  region_->begin = reinterpret_cast<std::uintptr_t>(mapping.data());
  region_->bytes = mapping.size();
}

PageGuard::PageGuard(PageGuard&& other) noexcept : region_(std::exchange(other.region_, nullptr)) {}

PageGuard& PageGuard::operator=(PageGuard&& other) noexcept {
  std::swap(region_, other.region_);
  return *this;
}

PageGuard::~PageGuard() {
  if (region_ == nullptr) return;
  const std::lock_guard lock(region_mutex);
  region_->bytes = 0;
}

bool PageGuard::damaged() const { return region_ != nullptr && region_->damaged; }

}  // namespace hearth
