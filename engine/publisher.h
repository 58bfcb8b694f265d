// What the outside learns about the engine: metrics, gauges and step records.
//
// posted() and refused() may be called from any thread; all other functions belong to the engine
// thread. Metrics and records can be read from any thread at any time. Nothing here allocates
// during decode steps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/active_request.h"
#include "engine/generation.h"
#include "engine/metrics.h"
#include "engine/scheduling/batch_plan.h"
#include "engine/scheduling/scheduler_views.h"
#include "engine/step_record.h"
#include "engine/time_source.h"

namespace hearth {

class Publisher {
 public:
  // Keeps the last `records` step records of up to `sequences` members each. `time` outlives this.
  Publisher(size_t records, size_t sequences, const TimeSource& time);
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  const Metrics& metrics() const { return metrics_; }
  const StepRing& records() const { return records_; }
  // Seconds from the creation of the engine until `time`: the clock of step records.
  double seconds_at(EngineClock::time_point time) const;
  double seconds() const { return seconds_at(time_.now()); }
  // Fills in the counts that are gauges: requests, and blocks used, cached and free.
  void read_gauges(SchedulerCounts& counts) const;

  // Any thread. From posted() on, requests count as waiting; it is called before the engine thread
  // can see them, and taken back with unposted() if they are refused after all.
  void posted(size_t requests) { metrics_.waiting.add(requests); }
  void unposted(size_t requests) { metrics_.waiting.add(uint64_t{0} - requests); }
  void submitted(size_t requests) { metrics_.requests_submitted.add(requests); }
  void refused(size_t requests) { metrics_.requests_refused.add(requests); }

  // The life of a request.
  void accepted() { ++shown_waiting_; }  // it is among the scheduler's from now on
  void admitted(const ActiveRequest& request);
  void generated_token() { metrics_.generated_tokens.add(); }
  void forced(size_t tokens) { metrics_.forced_tokens.add(tokens); }
  void judged(size_t proposed, size_t accepted);
  // After judged(), if the proposals came from the output of another request.
  void judged_shared(size_t proposed, size_t accepted) {
    metrics_.shared_proposed_tokens.add(proposed);
    metrics_.shared_accepted_tokens.add(accepted);
  }
  void delivered_token(const ActiveRequest& request);
  void ended(const ActiveRequest& request, FinishReason reason);

  // Sets the gauges.
  void show_counts(const SchedulerCounts& counts);
  // Publishes the record of a step that is done, and counts it. `totals` are the scheduler's.
  void publish(const StepRecord& record, const SchedulerTotals& totals);

 private:
  const TimeSource& time_;
  const EngineClock::time_point created_at_;
  Metrics metrics_;
  StepRing records_;
  uint64_t shown_waiting_ = 0;  // the part of the gauge `waiting` that the engine thread knows of
};

// Writes what was planned into the record. `counts` are the scheduler's after planning.
void describe_plan(const BatchPlan& plan, const SchedulerCounts& counts, StepRecord& record);

}  // namespace hearth
