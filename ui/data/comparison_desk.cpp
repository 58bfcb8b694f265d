#include "ui/data/comparison_desk.h"

#include <utility>

namespace hearth {

void ComparisonDesk::want(ComparisonWish wish) {
  failure_.clear();
  for (size_t i = 0; i < labels.size(); ++i)
    labels[i] = wish.plan ? wish.plan->sides[i].label : wish.policies[i].label;
  requests = wish.plan ? wish.plan->requests : wish.requests;
  wish_ = std::move(wish);
}

void ComparisonDesk::run() {
  ComparisonWish wish{.policies = {}, .requests = requests, .plan = {}};
  failure_.clear();
  for (size_t i = 0; i < labels.size(); ++i) {
    Result<ComparedPolicy> side = parse_compared_policy(labels[i]);
    if (!side.ok()) {
      failure_ = side.error().message;
      return;
    }
    wish.policies[i] = std::move(*side);
  }
  wish_ = std::move(wish);
}

std::string ComparisonDesk::status() const {
  if (!measurement_) return running() ? "waiting for the device" : "";
  const std::lock_guard lock(measurement_->mutex);
  return measurement_->status;
}

void ComparisonDesk::update(double seconds_passed, bool device_ready, const SchedulerLimits& limits,
                            const Borrow& borrow) {
  if (std::optional<Result<Comparison>> done = simulation_.take()) take(std::move(*done));
  if (measurement_) {
    std::optional<Result<Comparison>> outcome;
    {
      const std::lock_guard lock(measurement_->mutex);
      outcome = std::exchange(measurement_->outcome, std::nullopt);
    }
    if (outcome) {
      measurement_.reset();
      take(std::move(*outcome));
    }
  }
  if (wish_ && device_ready && !simulation_.busy() && !measurement_) start(limits, borrow);
  player.update(seconds_passed);
}

void ComparisonDesk::start(const SchedulerLimits& limits, const Borrow& borrow) {
  const ComparisonWish wish = *std::exchange(wish_, std::nullopt);
  at_end_ = wish.at_end;
  Result<ComparisonPlan> plan =
      wish.plan ? *wish.plan : plan_comparison(wish.policies, wish.requests, limits);
  if (!plan.ok()) {
    failure_ = plan.error().message;
    return;
  }
  if (!borrow) {
    simulation_.start(
        [plan = std::move(*plan)] { return compare_modelled(ModelledDevice{}, plan); });
    return;
  }
  const auto measurement = std::make_shared<Measurement>();
  const auto work = [measurement, plan = std::move(*plan)](Session& session) {
    Result<Comparison> outcome = compare_on_session(session, plan, [&](std::string status) {
      const std::lock_guard lock(measurement->mutex);
      measurement->status = std::move(status);
    });
    const std::lock_guard lock(measurement->mutex);
    measurement->outcome = std::move(outcome);
  };
  if (borrow(work))
    measurement_ = measurement;
  else
    failure_ = "The device is busy: it loads or measures a model.";
}

void ComparisonDesk::take(Result<Comparison> outcome) {
  if (!outcome.ok()) {
    failure_ = outcome.error().message;
    return;
  }
  player.open(std::move(*outcome));
  if (!at_end_) return;
  player.play(false);
  player.seek(player.end());
}

}  // namespace hearth
