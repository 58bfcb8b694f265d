#include "engine/token_stream.h"

#include <utility>

#include "engine/mailbox.h"
#include "engine/token_channel.h"

namespace hearth {

TokenStream::TokenStream(std::shared_ptr<TokenChannel> channel, std::weak_ptr<Mailbox> mailbox)
    : channel_(std::move(channel)), mailbox_(std::move(mailbox)) {}

TokenStream::~TokenStream() { release(); }

TokenStream::TokenStream(TokenStream&&) noexcept = default;

TokenStream& TokenStream::operator=(TokenStream&& other) noexcept {
  if (this == &other) return *this;
  release();
  channel_ = std::move(other.channel_);
  mailbox_ = std::move(other.mailbox_);
  return *this;
}

void TokenStream::release() {
  if (!channel_) return;  // moved from
  channel_->set_notify(nullptr);
  if (!channel_->closed())
    if (const std::shared_ptr<Mailbox> mailbox = mailbox_.lock())
      mailbox->cancel(channel_->request());
  channel_.reset();
}

RequestId TokenStream::request() const { return channel_->request(); }

std::optional<GeneratedToken> TokenStream::next() { return channel_->next(); }

std::optional<GeneratedToken> TokenStream::next(std::chrono::nanoseconds limit) {
  return channel_->next(limit);
}

bool TokenStream::ended() const { return channel_->ended(); }

const GenerationEnd& TokenStream::end() const { return channel_->end(); }

const std::vector<PromptLogprob>& TokenStream::prompt_logprobs() const {
  return channel_->prompt_logprobs();
}

void TokenStream::set_notify(std::function<void()> notify) {
  channel_->set_notify(std::move(notify));
}

}  // namespace hearth
