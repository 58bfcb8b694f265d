// Delivery with the batch, as a static server does it: what the members of a batch generate is held
// back until all of them have ended, and then handed out together. Holds ended requests; those that
// still run collect their own tokens (ActiveRequest::hold). Used by the engine thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/active_request.h"
#include "engine/generation.h"

namespace hearth {

class BatchDelivery {
 public:
  struct Ended {
    std::unique_ptr<ActiveRequest> request;
    FinishReason reason = FinishReason::kNone;
    std::string message;
  };

  // Whether nothing is held back.
  bool empty() const { return batches_.empty(); }

  // The request is a member of this batch from now on, and its tokens are held back.
  void join(ActiveRequest& request, uint64_t batch);
  // Takes an ended request over. Appends to `ready` all requests whose end is to be delivered now:
  // this one, unless its answer is complete and its batch is not; its whole batch, if it was the
  // last member.
  void end(Ended ended, std::vector<Ended>& ready);
  // The same for one answer that is held back; ignores other requests.
  void release(RequestId request, std::vector<Ended>& ready);
  // Gives up all batches; their ended requests are ready.
  void release(std::vector<Ended>& ready);

 private:
  struct Batch {
    uint32_t open = 0;  // members that have not ended
    std::vector<Ended> ended;
  };
  std::map<uint64_t, Batch> batches_;
};

}  // namespace hearth
