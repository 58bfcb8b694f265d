#include "engine/ranks/mpi_link.h"

#include <cstdlib>

#ifdef HEARTH_HAS_MPI
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <mpi.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/ranks/inbox.h"
#include "engine/ranks/spare_messages.h"
#endif

namespace hearth {
namespace {

uint32_t number_in(const char* variable, uint32_t otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  return static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

}  // namespace

bool started_by_mpirun() { return number_in("OMPI_COMM_WORLD_SIZE", 1) > 1; }
uint32_t mpi_rank() { return started_by_mpirun() ? number_in("OMPI_COMM_WORLD_RANK", 0) : 0; }

#ifndef HEARTH_HAS_MPI

Result<std::unique_ptr<Link>> open_mpi_link() {
  return Error{ErrorKind::kUnsupported,
               "mpirun started several ranks, but this build has no MPI; run tools/setup "
               "--all and build again"};
}

#else

namespace {

using LinkClock = std::chrono::steady_clock;

// Tags beyond the channels.
constexpr int kHeartbeatTag = static_cast<int>(kChannels);  // without content
constexpr int kFailureTag = kHeartbeatTag + 1;              // the reason
constexpr int kGoodbyeTag = kHeartbeatTag + 2;              // without content

constexpr auto kHeartbeatInterval = std::chrono::milliseconds(500);
constexpr auto kWatchInterval = std::chrono::milliseconds(20);
constexpr auto kShortestSleep = std::chrono::microseconds(10);
constexpr auto kLongestSleep = std::chrono::milliseconds(1);
// How long the last messages may take: a failure's to be sent; and everybody's farewell, which
// waits for the slowest rank to end. A rank that died meanwhile is noticed by the watch.
constexpr auto kLastSends = std::chrono::seconds(2);
constexpr auto kFarewell = std::chrono::seconds(60);

// Where a rank's process runs. Process ids mean something only within one namespace of one machine.
struct Home {
  std::array<char, 192> machine = {};  // and the namespace
  pid_t process = 0;

  static Home own() {
    Home home;
    std::array<char, 96> host = {}, space = {};
    gethostname(host.data(), host.size() - 1);
    if (readlink("/proc/self/ns/pid", space.data(), space.size() - 1) < 0) space[0] = '\0';
    fmt::format_to_n(home.machine.data(), home.machine.size() - 1, "{} {}", host.data(),
                     space.data());
    home.process = getpid();
    return home;
  }
  bool is_beside(const Home& other) const { return machine == other.machine; }
  std::string_view host() const {
    const std::string_view name(machine.data());
    return name.substr(0, name.find(' '));
  }
};

class MpiLink final : public Link {
 public:
  explicit MpiLink(std::vector<Home> homes, uint32_t rank)
      : rank_(rank),
        homes_(std::move(homes)),
        inbox_(static_cast<uint32_t>(homes_.size())),
        spare_(homes_.size() - 1),
        peers_(homes_.size()) {
    const LinkClock::time_point now = LinkClock::now();
    for (uint32_t i = 0; i < peers_.size(); ++i) {
      peers_[i].heard = now;
      if (i != rank_ && homes_[i].is_beside(homes_[rank_]))
        peers_[i].descriptor = static_cast<int>(syscall(SYS_pidfd_open, homes_[i].process, 0));
    }
    thread_ = std::thread([this] { run(); });
  }

  ~MpiLink() override {
    if (!lost_)
      for (uint32_t i = 0; i < ranks(); ++i)
        if (i != rank_) static_cast<void>(post(i, kGoodbyeTag, {}).ok());
    leaving_ = true;
    thread_.join();
    for (const Peer& peer : peers_)
      if (peer.descriptor >= 0) close(peer.descriptor);
    // With a rank missing MPI_Finalize would wait for ever; mpirun ends what is left of the job.
    if (all_left() && !lost_) MPI_Finalize();
  }

  uint32_t rank() const override { return rank_; }
  uint32_t ranks() const override { return static_cast<uint32_t>(homes_.size()); }

  Status send(uint32_t to, Channel channel, Message message) override {
    if (const std::optional<Error> error = inbox_.error()) return *error;
    if (to == rank_) {
      inbox_.put(rank_, channel, std::move(message));
      return {};
    }
    return post(to, static_cast<int>(channel), std::move(message));
  }
  Result<Message> receive(uint32_t from, Channel channel) override {
    return inbox_.take(from, channel);
  }
  void watch_closely(Channel channel) override { inbox_.watch_closely(channel); }
  bool ready(uint32_t from, Channel channel) override { return inbox_.has(from, channel); }
  void fail(const std::string& reason) override {
    Message text(reason.size());
    std::memcpy(text.data(), reason.data(), reason.size());
    for (uint32_t i = 0; i < ranks(); ++i)
      if (i != rank_) static_cast<void>(post(i, kFailureTag, text).ok());
    lose(reason);
  }

 private:
  struct Peer {
    int descriptor = -1;  // of its process, if that runs beside ours
    bool left = false;    // it said goodbye
    LinkClock::time_point heard;
  };
  struct Sending {
    MPI_Request request = MPI_REQUEST_NULL;
    int tag = 0;
    Message message;
  };
  struct Receiving {
    MPI_Request request = MPI_REQUEST_NULL;
    int source = 0, tag = 0;
    Message message;
  };

  void lose(const std::string& reason) {
    lost_ = true;
    inbox_.fail({ErrorKind::kDeviceLost, reason});
  }

  Status post(uint32_t to, int tag, Message message) {
    if (message.size() > INT_MAX)
      return Error{ErrorKind::kUnsupported, "a message between ranks is larger than 2 GiB"};
    const std::lock_guard lock(mpi_);
    sending_.push_back({.tag = tag, .message = std::move(message)});
    Sending& last = sending_.back();
    const int result =
        MPI_Isend(last.message.data(), static_cast<int>(last.message.size()), MPI_BYTE,
                  static_cast<int>(to), tag, MPI_COMM_WORLD, &last.request);
    if (result == MPI_SUCCESS) return {};
    sending_.pop_back();
    return Error{ErrorKind::kDeviceLost, fmt::format("MPI cannot send to rank {}", to)};
  }

  void run() {
    prctl(PR_SET_TIMERSLACK, 1UL);
    LinkClock::time_point active = LinkClock::now(), watched = active, beaten = active;
    std::optional<LinkClock::time_point> left;  // since when it is leaving
    for (;;) {
      const bool moved = progress();
      const LinkClock::time_point now = LinkClock::now();
      if (moved) active = now;
      if (leaving_) {
        if (!left) left = now;
        const std::lock_guard lock(mpi_);
        if (sending_.empty() && (all_left() || lost_)) return;
        if (now - *left > (lost_ ? kLastSends : kFarewell)) return;
      }
      if (now - beaten > kHeartbeatInterval) {
        beaten = now;
        beat();
      }
      if (now - watched > kWatchInterval) {
        watched = now;
        watch(now);
      }
      if (moved) continue;
      const auto pause = std::chrono::duration_cast<std::chrono::nanoseconds>(now - active) / 16;
      std::this_thread::sleep_for(
          std::clamp<std::chrono::nanoseconds>(pause, kShortestSleep, kLongestSleep));
    }
  }

  // Sends and receives what can be; returns whether anything was.
  bool progress() {
    const std::lock_guard lock(mpi_);
    bool moved = false;
    for (auto each = sending_.begin(); each != sending_.end();) {
      int done = 0;
      if (MPI_Test(&each->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) done = 1;
      moved |= done != 0;
      if (done == 0) {
        ++each;
        continue;
      }
      // Mostly, as many sums come from other ranks as are sent to them.
      if (each->tag == static_cast<int>(Channel::kSums)) spare_.keep(std::move(each->message));
      each = sending_.erase(each);
    }
    if (receiving_.request == MPI_REQUEST_NULL) {
      int found = 0;
      MPI_Message handle = MPI_MESSAGE_NULL;
      MPI_Status status;
      if (MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &handle, &status) !=
              MPI_SUCCESS ||
          found == 0)
        return moved;
      int bytes = 0;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      receiving_.source = status.MPI_SOURCE;
      receiving_.tag = status.MPI_TAG;
      if (status.MPI_TAG == static_cast<int>(Channel::kSums))
        receiving_.message = spare_.take(static_cast<size_t>(bytes));
      receiving_.message.resize(static_cast<size_t>(bytes));
      if (MPI_Imrecv(receiving_.message.data(), bytes, MPI_BYTE, &handle, &receiving_.request) !=
          MPI_SUCCESS) {
        lose(fmt::format("MPI cannot receive from rank {}", receiving_.source));
        receiving_.request = MPI_REQUEST_NULL;
        return moved;
      }
    }
    int done = 0;
    if (MPI_Test(&receiving_.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done == 0)
      return moved;
    arrived();
    return true;
  }

  void arrived() {
    const auto source = static_cast<uint32_t>(receiving_.source);
    Peer& peer = peers_[source];
    peer.heard = LinkClock::now();
    Message message = std::move(receiving_.message);
    receiving_.message = {};
    if (receiving_.tag < static_cast<int>(kChannels)) {
      inbox_.put(source, static_cast<Channel>(receiving_.tag), std::move(message));
    } else if (receiving_.tag == kFailureTag) {
      lose({reinterpret_cast<const char*>(message.data()), message.size()});
    } else if (receiving_.tag == kGoodbyeTag) {
      peer.left = true;
      inbox_.end(source, {ErrorKind::kDeviceLost, fmt::format("rank {} has ended", source)});
    }
  }

  bool all_left() const {
    for (uint32_t i = 0; i < peers_.size(); ++i)
      if (i != rank_ && !peers_[i].left) return false;
    return true;
  }

  // Tells the ranks of other machines that this one is alive.
  void beat() {
    for (uint32_t i = 0; i < ranks(); ++i)
      if (i != rank_ && peers_[i].descriptor < 0 && !peers_[i].left)
        static_cast<void>(post(i, kHeartbeatTag, {}).ok());
  }

  void watch(LinkClock::time_point now) {
    for (uint32_t i = 0; i < ranks(); ++i) {
      const Peer& peer = peers_[i];
      if (i == rank_ || peer.left) continue;
      if (peer.descriptor >= 0) {
        pollfd ended{.fd = peer.descriptor, .events = POLLIN, .revents = 0};
        if (poll(&ended, 1, 0) > 0)
          lose(fmt::format("rank {} was lost: its process {} has ended", i, homes_[i].process));
      } else if (std::chrono::duration<double>(now - peer.heard).count() > kLostSeconds) {
        lose(fmt::format("rank {} on {} was lost: nothing was heard from it for {} s", i,
                         homes_[i].host(), kLostSeconds));
      }
    }
  }

  const uint32_t rank_;
  const std::vector<Home> homes_;
  Inbox inbox_;
  std::mutex mpi_;  // for all calls of MPI, and for the next three
  SpareMessages spare_;
  std::list<Sending> sending_;
  Receiving receiving_;
  std::vector<Peer> peers_;  // the thread's own
  std::atomic<bool> leaving_ = false;
  std::atomic<bool> lost_ = false;  // a rank is missing or has failed
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Link>> open_mpi_link() {
  constexpr int kKeep = 0;
  setenv("OMPI_MCA_pml", "ob1", kKeep);
  setenv("OMPI_MCA_btl", "self,vader,tcp", kKeep);
  int level = 0, size = 0, rank = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS ||
      level < MPI_THREAD_SERIALIZED)
    return Error{ErrorKind::kUnsupported, "MPI does not start with threads here"};
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<Home> homes(static_cast<size_t>(size));
  const Home own = Home::own();
  if (MPI_Allgather(&own, sizeof(Home), MPI_BYTE, homes.data(), sizeof(Home), MPI_BYTE,
                    MPI_COMM_WORLD) != MPI_SUCCESS)
    return Error{ErrorKind::kIo, "MPI cannot reach all ranks"};
  return std::unique_ptr<Link>(
      std::make_unique<MpiLink>(std::move(homes), static_cast<uint32_t>(rank)));
}

#endif

}  // namespace hearth
