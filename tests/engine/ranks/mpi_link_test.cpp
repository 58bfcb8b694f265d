// The link over MPI. Each test starts this program again under mpirun; the ranks run the tests
// MpiRank.*, which do nothing otherwise.
#include "engine/ranks/mpi_link.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/ranks/message.h"
#include "tests/support/process.h"

namespace hearth::testing {
namespace {

bool has_mpirun() { return run_program({"/bin/sh", "-c", "command -v mpirun"}).exit_code == 0; }

Finished run_ranks(int ranks, const std::string& test) {
  // Debian's Open MPI asks root to say twice that this is meant.
  // When a rank dies, mpirun ends the others: first with SIGTERM, which ranks ignore here, and
  // after the timeout for good. mpirun always waits that long, twice.
  return run_program(
      {"/usr/bin/env", "mpirun", "--oversubscribe", "--bind-to", "none", "--mca",
       "odls_base_sigkill_timeout", "2", "-n", std::to_string(ranks),
       std::filesystem::read_symlink("/proc/self/exe").string(), "--gtest_filter=MpiRank." + test},
      {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"});
}

class MpiLink : public ::testing::Test {
 protected:
  void SetUp() override {
    if (started_by_mpirun()) GTEST_SKIP() << "this is a rank";
    if (!has_mpirun()) GTEST_SKIP() << "mpirun is not installed (package openmpi-bin)";
    static const Finished probe = run_ranks(2, "Connects");
    if (probe.out.find("has no MPI") != std::string::npos)
      GTEST_SKIP() << "this build has no MPI (package libopenmpi-dev)";
  }
};

class MpiRank : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!started_by_mpirun()) GTEST_SKIP() << "runs under mpirun only";
    std::signal(SIGTERM, SIG_IGN);
    auto link = open_mpi_link();
    ASSERT_TRUE(link.ok()) << link.error().message;
    link_ = std::move(*link);
  }

  std::unique_ptr<Link> link_;
};

TEST_F(MpiRank, Connects) { EXPECT_EQ(link_->rank(), mpi_rank()); }

// Messages of many sizes around the ring of all ranks, and to itself.
TEST_F(MpiRank, Exchanges) {
  const uint32_t next = (link_->rank() + 1) % link_->ranks();
  const uint32_t before = (link_->rank() + link_->ranks() - 1) % link_->ranks();
  const size_t sizes[] = {0, 1, 8, 4095, 4097, 65536, 5 << 20, 3};
  for (int round = 0; round < 3; ++round)
    for (const size_t size : sizes)
      ASSERT_TRUE(
          link_->send(next, Channel::kRows, Message(size, std::byte(link_->rank() * 16 + round)))
              .ok());
  ASSERT_TRUE(link_->send(link_->rank(), Channel::kIds, Message(5)).ok());
  for (int round = 0; round < 3; ++round)
    for (const size_t size : sizes) {
      const Result<Message> message = link_->receive(before, Channel::kRows);
      ASSERT_TRUE(message.ok()) << message.error().message;
      EXPECT_EQ(*message, Message(size, std::byte(before * 16 + round)));
    }
  EXPECT_EQ(link_->receive(link_->rank(), Channel::kIds)->size(), 5u);
}

// The memory of large sums is used again: for the same size, a smaller and a larger one.
TEST_F(MpiRank, ExchangesLargeSums) {
  const uint32_t other = 1 - link_->rank();
  constexpr size_t kMegabyte = 1 << 20;
  uint8_t round = 0;
  for (const size_t size : {17 * kMegabyte, 17 * kMegabyte, 33 * kMegabyte, 16 * kMegabyte,
                            33 * kMegabyte, size_t{100}}) {
    ++round;
    ASSERT_TRUE(
        link_->send(other, Channel::kSums, Message(size, std::byte(16 * link_->rank() + round)))
            .ok());
    const Result<Message> message = link_->receive(other, Channel::kSums);
    ASSERT_TRUE(message.ok()) << message.error().message;
    EXPECT_TRUE(*message == Message(size, std::byte(16 * other + round))) << size << " bytes";
  }
}

// The last rank dies; the others notice soon. mpirun may end them as soon as they have, so rank 0
// says so at once.
TEST_F(MpiRank, IsKilled) {
  const uint32_t last = link_->ranks() - 1;
  if (link_->rank() == last) {
    ASSERT_TRUE(link_->send(0, Channel::kRows, Message(1)).ok());
    ASSERT_TRUE(link_->receive(0, Channel::kRows).ok());
    raise(SIGKILL);
  }
  if (link_->rank() == 0) {
    ASSERT_TRUE(link_->receive(last, Channel::kRows).ok());
    ASSERT_TRUE(link_->send(last, Channel::kRows, Message(1)).ok());
  }
  const auto begin = std::chrono::steady_clock::now();
  const Result<Message> message = link_->receive(last, Channel::kResults);
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  ASSERT_FALSE(message.ok());
  EXPECT_EQ(message.error().kind, ErrorKind::kDeviceLost);
  if (link_->rank() == 0)
    fprintf(stderr, "noticed: %s%s\n", message.error().message.c_str(),
            waited.count() < 4 ? ", soon" : "");
  else
    std::this_thread::sleep_for(std::chrono::seconds(1));  // or rank 0 may miss this one first
}

TEST_F(MpiRank, GivesUp) {
  if (link_->rank() == 1) return link_->fail("rank 1 has no memory");
  const Result<Message> message = link_->receive(1, Channel::kResults);
  ASSERT_FALSE(message.ok());
  fprintf(stderr, "noticed: %s\n", message.error().message.c_str());
}

// One rank ends long after the others, which wait for it. Once they gave up after 2 s, and then
// mpirun ended the slow one.
TEST_F(MpiRank, EndsLate) {
  if (link_->rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
}

TEST_F(MpiRank, Waits) {
  const auto cpu_seconds = [] {
    rusage use = {};
    getrusage(RUSAGE_SELF, &use);
    return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
  };
  const double before = cpu_seconds();
  std::thread waiting([&] { static_cast<void>(link_->receive(1 - link_->rank(), Channel::kIds)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  const double used = (cpu_seconds() - before) / 1.5;
  static_cast<void>(link_->send(1 - link_->rank(), Channel::kIds, {}));
  waiting.join();
  fprintf(stderr, "an idle rank used %.1f %% of a core\n", used * 100);
  EXPECT_LT(used, 0.25);  // one that never sleeps uses all of it
}

TEST_F(MpiLink, CarriesMessagesOfAllSizesBetweenThreeRanks) {
  const Finished ranks = run_ranks(3, "Exchanges");
  EXPECT_EQ(ranks.exit_code, 0) << ranks.out << ranks.err;
}

TEST_F(MpiLink, CarriesLargeSums) {
  const Finished ranks = run_ranks(2, "ExchangesLargeSums");
  EXPECT_EQ(ranks.exit_code, 0) << ranks.out << ranks.err;
}

TEST_F(MpiLink, NoticesAKilledRank) {
  const Finished ranks = run_ranks(3, "IsKilled");
  EXPECT_NE(ranks.exit_code, 0);
  EXPECT_NE(ranks.err.find("noticed: rank 2 was lost"), std::string::npos)
      << ranks.out << ranks.err;
  EXPECT_NE(ranks.err.find("has ended, soon"), std::string::npos) << ranks.err;
}

TEST_F(MpiLink, AFailureReachesTheOtherRanks) {
  const Finished ranks = run_ranks(2, "GivesUp");
  EXPECT_NE(ranks.err.find("noticed: rank 1 has no memory"), std::string::npos)
      << ranks.out << ranks.err;
}

TEST_F(MpiLink, RanksThatEndEarlyWaitForTheOthers) {
  const Finished ranks = run_ranks(2, "EndsLate");
  EXPECT_EQ(ranks.exit_code, 0) << ranks.out << ranks.err;
}

TEST_F(MpiLink, AnIdleRankSleeps) {
  const Finished ranks = run_ranks(2, "Waits");
  EXPECT_EQ(ranks.exit_code, 0) << ranks.out << ranks.err;
}

}  // namespace
}  // namespace hearth::testing
