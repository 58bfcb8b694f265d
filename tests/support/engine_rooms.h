// The parts of an engine without its thread: a test plays the engine thread itself.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/mailbox.h"
#include "engine/publisher.h"
#include "engine/request_table.h"
#include "engine/step_loop.h"
#include "engine/token_stream.h"
#include "tests/support/hand_clock.h"

namespace hearth::testing {

struct EngineRooms {
  explicit EngineRooms(const SchedulerLimits& limits, const Policy& policy = {})
      : publisher(16, limits.max_sequences, clock),
        mailbox(std::make_shared<Mailbox>(EngineSettings{.policy = policy, .limits = limits}, false,
                                          clock)),
        scheduler(limits, policy),
        requests(
            {.scheduler = scheduler, .mailbox = *mailbox, .publisher = publisher, .time = clock},
            limits.max_sequences) {}

  // Posts the request as Engine::submit() does.
  TokenStream post(GenerationRequest request) {
    auto places = mailbox->reserve(1);
    EXPECT_TRUE(places.ok());
    auto built = ActiveRequest::create(
        std::move(request),
        {.id = places->first_id(), .submitted = clock.now(), .limits = mailbox->settings().limits});
    EXPECT_TRUE(built.ok());
    TokenStream stream((*built)->channel(), mailbox);
    std::vector<std::unique_ptr<ActiveRequest>> requests_to_post;
    requests_to_post.push_back(std::move(*built));
    publisher.posted(1);
    EXPECT_TRUE(mailbox->post(std::move(*places), std::move(requests_to_post)).ok());
    return stream;
  }
  // Collects the mail and lets the table accept requests and cancellations.
  void read_mail() {
    mailbox->collect(mail, {});
    for (std::unique_ptr<ActiveRequest>& request : mail.requests)
      requests.accept(std::move(request));
    for (const RequestId id : mail.cancelled) requests.end(id, FinishReason::kCancelled);
  }
  TokenStream accepted(GenerationRequest request) {
    TokenStream stream = post(std::move(request));
    read_mail();
    return stream;
  }

  // For a StepLoop that runs its steps on this executor.
  StepLoop::Links links(StepExecutor& executor) {
    return {.executor = executor,
            .scheduler = scheduler,
            .requests = requests,
            .publisher = publisher,
            .time = clock};
  }

  HandClock clock;
  Publisher publisher;
  std::shared_ptr<Mailbox> mailbox;
  Scheduler scheduler;
  RequestTable requests;
  Mailbox::Mail mail;
};

}  // namespace hearth::testing
