#include "engine/ranks/spare_messages.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/ranks/in_process_link.h"
#include "engine/ranks/link_exchange.h"

namespace hearth::testing {
namespace {

constexpr size_t kLarge = SpareMessages::kLeastBytes;

TEST(SpareMessages, LargeOnesAreUsedAgain) {
  SpareMessages spare(1);
  Message first(2 * kLarge);
  const std::byte* const memory = first.data();
  spare.keep(std::move(first));
  spare.keep(Message(kLarge));  // one is kept already
  EXPECT_EQ(spare.take(kLarge - 1).capacity(), 0u);
  EXPECT_EQ(spare.take(kLarge).data(), memory);
  EXPECT_EQ(spare.take(kLarge).capacity(), 0u);
  spare.keep(Message(kLarge - 1));
  EXPECT_EQ(spare.take(kLarge).capacity(), 0u);
}

// Notes where the contents of sent sums are.
class NotingLink final : public Link {
 public:
  explicit NotingLink(Link& link) : link_(link) {}

  uint32_t rank() const override { return link_.rank(); }
  uint32_t ranks() const override { return link_.ranks(); }
  Status send(uint32_t to, Channel channel, Message message) override {
    sent.push_back(message.data());
    return link_.send(to, channel, std::move(message));
  }
  Result<Message> receive(uint32_t from, Channel channel) override {
    return link_.receive(from, channel);
  }
  void watch_closely(Channel channel) override { link_.watch_closely(channel); }
  bool ready(uint32_t from, Channel channel) override { return link_.ready(from, channel); }
  void fail(const std::string& reason) override { link_.fail(reason); }

  std::vector<const std::byte*> sent;

 private:
  Link& link_;
};

// Two ranks send each other's memory back and forth, with sums of any size.
TEST(SpareMessages, AnExchangeSendsTheMemoryOfTheOneBefore) {
  constexpr size_t kMost = 9 << 20;  // floats
  const auto links = make_in_process_links(2);
  std::vector<std::vector<const std::byte*>> sent(2);
  std::vector<std::thread> ranks;
  for (uint32_t rank = 0; rank < 2; ++rank)
    ranks.emplace_back([&, rank] {
      NotingLink link(*links[rank]);
      LinkExchange exchange(link);
      for (const size_t size : {kMost, kMost, kMost / 2, kMost}) {
        const std::vector<float> own(size, rank == 0 ? 1.0f : 2.0f);
        std::vector<float> total(size);
        EXPECT_TRUE(exchange.sum(own, total).ok());
        EXPECT_EQ(total, std::vector<float>(size, 3.0f));
      }
      sent[rank] = link.sent;
    });
  for (std::thread& rank : ranks) rank.join();
  for (const auto& own : sent) ASSERT_EQ(own.size(), 4u);
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(sent[0][i], sent[1][i - 1]);
    EXPECT_EQ(sent[1][i], sent[0][i - 1]);
  }
}

}  // namespace
}  // namespace hearth::testing
