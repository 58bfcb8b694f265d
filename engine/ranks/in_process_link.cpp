#include "engine/ranks/in_process_link.h"

#include <utility>

#include "engine/ranks/inbox.h"

namespace hearth {
namespace {

using Inboxes = std::vector<std::unique_ptr<Inbox>>;

class InProcessLink final : public Link {
 public:
  InProcessLink(uint32_t rank, std::shared_ptr<Inboxes> inboxes)
      : rank_(rank), inboxes_(std::move(inboxes)) {}

  uint32_t rank() const override { return rank_; }
  uint32_t ranks() const override { return static_cast<uint32_t>(inboxes_->size()); }

  Status send(uint32_t to, Channel channel, Message message) override {
    if (const std::optional<Error> error = own().error()) return *error;
    (*inboxes_)[to]->put(rank_, channel, std::move(message));
    return {};
  }
  Result<Message> receive(uint32_t from, Channel channel) override {
    return own().take(from, channel);
  }
  void watch_closely(Channel channel) override { own().watch_closely(channel); }
  bool ready(uint32_t from, Channel channel) override { return own().has(from, channel); }
  void fail(const std::string& reason) override {
    for (const std::unique_ptr<Inbox>& inbox : *inboxes_)
      inbox->fail({ErrorKind::kDeviceLost, reason});
  }

 private:
  Inbox& own() { return *(*inboxes_)[rank_]; }

  uint32_t rank_;
  std::shared_ptr<Inboxes> inboxes_;
};

}  // namespace

std::vector<std::unique_ptr<Link>> make_in_process_links(uint32_t ranks) {
  const auto inboxes = std::make_shared<Inboxes>();
  for (uint32_t i = 0; i < ranks; ++i) inboxes->push_back(std::make_unique<Inbox>(ranks));
  std::vector<std::unique_ptr<Link>> links;
  for (uint32_t i = 0; i < ranks; ++i) links.push_back(std::make_unique<InProcessLink>(i, inboxes));
  return links;
}

}  // namespace hearth
