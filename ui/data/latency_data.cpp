#include "ui/data/latency_data.h"

#include <algorithm>
#include <cmath>

namespace hearth {

const char* latency_name(LatencyKind kind) {
  constexpr std::array<const char*, kLatencyKinds> kNames = {"TTFT", "TBT", "TPOT"};
  return kNames[static_cast<size_t>(kind)];
}

const char* latency_description(LatencyKind kind) {
  constexpr std::array<const char*, kLatencyKinds> kAbout = {
      "Time to first token: from a request's arrival to its first token.",
      "Time between tokens: from one token of a stream to the next.",
      "Time per output token: a stream's mean time between tokens, known when it ends."};
  return kAbout[static_cast<size_t>(kind)];
}

void LatencyData::clear() {
  now_ = restart_seconds_ = 0;
  restart_ = 0;
  first_step_seconds_ = -1;
  for (Kind& kind : kinds_) kind = {};
  recent_series_ = {};
  all_series_ = {};
  streams_.clear();
  ended_.clear();
}

void LatencyData::update(const EngineView& view) {
  stats_ = {};
  if (view.generation != generation_) {
    clear();
    generation_ = view.generation;
  }
  if (view.restart != restart_) {
    restart_ = view.restart;
    restart(view.restart_seconds);
  }
  if (view.missed_steps > 0) handle_missed_steps();
  for (const StepRecord& record : view.new_steps) add(record);
  if (view.state != EngineState::kPaused) now_ = std::max(now_, view.now);
  drop_old();
}

void LatencyData::restart(double seconds) {
  restart_seconds_ = seconds;
  kinds_ = {};
  recent_series_ = all_series_ = {};
  first_step_seconds_ = -1;
  for (auto& [id, stream] : streams_) stream.gaps.clear();
}

LatencyStream& LatencyData::stream(RequestId request) {
  LatencyStream& stream = streams_[request];
  stream.request = request;
  return stream;
}

void LatencyData::add(const StepRecord& record) {
  now_ = std::max(now_, record.end_seconds);
  const bool counts = record.end_seconds >= restart_seconds_;
  if (first_step_seconds_ < 0 && counts)
    first_step_seconds_ = std::max(record.begin_seconds, restart_seconds_);
  for (const StepRecord::Arrival& arrival : record.arrived) {
    LatencyStream& arrived = stream(arrival.request);
    arrived.arrived = arrival.seconds;
    arrived.arrival_known = true;
  }
  for (const StepMember& member : record.members) {
    if (!member.samples) continue;
    LatencyStream& of = stream(member.request);
    // The request ended while this step was already in flight, so the token was discarded.
    if (of.finished) continue;
    if (of.tokens == 0) {
      of.first_token = record.end_seconds;
      if (of.arrival_known && !of.interrupted)
        add_sample(LatencyKind::kTtft,
                   {record.end_seconds, record.end_seconds - of.arrived, member.request});
    } else if (of.gap_known) {
      const LatencySample sample{record.end_seconds, record.end_seconds - of.last_token,
                                 member.request};
      add_sample(LatencyKind::kTbt, sample);
      if (counts) of.gaps.push_back(sample);
      if (of.gaps.size() > kMaxGapsPerStream) of.gaps.pop_front();
    }
    ++of.tokens;
    of.gap_known = true;
    of.last_token = record.end_seconds;
  }
  for (const RequestId id : record.finished) finish(id);
}

void LatencyData::add_sample(LatencyKind which, const LatencySample& sample) {
  if (sample.at < restart_seconds_) return;
  Kind& kind = kinds_[static_cast<size_t>(which)];
  kind.samples.push_back(sample);
  kind.all_values.add(sample.seconds);
  kind.recent_values.add(sample.seconds);
  ++kind.recent;
  if (which != LatencyKind::kTbt) return;
  append(recent_series_, sample);
  append(all_series_, sample);
  if (all_series_.buckets.size() > Series::kMaxBuckets) double_bucket_width();
}

void LatencyData::finish(RequestId request) {
  const auto place = streams_.find(request);
  if (place == streams_.end() || place->second.finished) return;
  LatencyStream& stream = place->second;
  stream.finished = true;
  // After missed steps the token count is unknown, and so is the TPOT.
  if (stream.tokens > 1 && !stream.interrupted)
    add_sample(LatencyKind::kTpot, {stream.last_token, stream.tpot(), request});
  queue_for_removal(stream);
}

// In missed steps any stream may have received tokens or ended. All streams are queued for removal;
// those that were still running start over with their next token.
void LatencyData::handle_missed_steps() {
  std::vector<LatencyStream*> streams;
  for (auto& [id, stream] : streams_) streams.push_back(&stream);
  for (LatencyStream* stream : streams) {
    if (stream->finished) continue;
    stream->interrupted = true;
    stream->gap_known = false;
  }
  std::erase_if(streams, [](const LatencyStream* stream) { return stream->queued_for_removal; });
  std::sort(streams.begin(), streams.end(),
            [](const LatencyStream* a, const LatencyStream* b) { return a->request < b->request; });
  for (LatencyStream* stream : streams) {
    stream->queued_for_removal = true;
    ended_.push_back(stream->request);
  }
}

void LatencyData::queue_for_removal(LatencyStream& stream) {
  if (stream.queued_for_removal) return;
  stream.queued_for_removal = true;
  ended_.push_back(stream.request);
}

void LatencyData::drop_old() {
  const double recent_from = now_ - kRecentSeconds;
  for (Kind& kind : kinds_) {
    while (kind.recent > 0) {
      const LatencySample& oldest = kind.samples[kind.samples.size() - kind.recent];
      if (oldest.at >= recent_from) break;
      kind.recent_values.remove_oldest(oldest.seconds);
      --kind.recent;
    }
    while (kind.samples.size() > kMaxSamples) {
      const LatencySample& oldest = kind.samples.front();
      kind.all_values.remove_oldest(oldest.seconds);
      if (kind.recent == kind.samples.size()) {
        kind.recent_values.remove_oldest(oldest.seconds);
        --kind.recent;
      }
      kind.samples.pop_front();
      ++kind.dropped;
    }
  }
  while (ended_.size() > kMaxEndedStreams) {
    streams_.erase(ended_.front());
    ended_.pop_front();
  }
  const auto forget_until = [](std::deque<LatencyBucket>& buckets, double until) {
    while (!buckets.empty() && buckets.front().to < until) buckets.pop_front();
  };
  forget_until(recent_series_.buckets, recent_from);
  const std::deque<LatencySample>& gaps = kinds_[static_cast<size_t>(LatencyKind::kTbt)].samples;
  if (!gaps.empty()) forget_until(all_series_.buckets, gaps.front().at);
}

void LatencyData::finish_last_bucket(Series& series) {
  LatencyBucket& last = series.buckets.back();
  last.count = series.open.size();
  last.p50 = quantile_of(series.open, 0.5);
  last.p90 = quantile_of(series.open, 0.9);
  last.p99 = quantile_of(series.open, 0.99);
}

void LatencyData::append(Series& series, const LatencySample& sample) {
  if (series.buckets.empty() || sample.at >= series.buckets.back().to) {
    if (!series.buckets.empty()) finish_last_bucket(series);
    series.open.clear();
    const double from = std::floor(sample.at / series.width) * series.width;
    series.buckets.push_back({.from = from, .to = from + series.width});
  }
  series.open.push_back(sample.seconds);
}

// Rebuilds the buckets of the whole run from the samples, twice as wide.
void LatencyData::double_bucket_width() {
  Series wider{.width = all_series_.width * 2};
  for (const LatencySample& sample : kinds_[static_cast<size_t>(LatencyKind::kTbt)].samples)
    append(wider, sample);
  all_series_ = std::move(wider);
}

LatencyStats LatencyData::stats(LatencyKind which, Window window) const {
  const Kind& kind = kinds_[static_cast<size_t>(which)];
  const Quantiles& values = window == Window::kAll ? kind.all_values : kind.recent_values;
  std::optional<LatencyStats>& known =
      stats_[2 * static_cast<size_t>(which) + (window == Window::kAll ? 1 : 0)];
  if (!known)
    known = {.count = values.count(),
             .p50 = values.quantile(0.5),
             .p90 = values.quantile(0.9),
             .p99 = values.quantile(0.99),
             .mean = values.mean()};
  return *known;
}

std::vector<Quantiles::Bar> LatencyData::histogram(LatencyKind which, Window window,
                                                   int per_decade) const {
  const Kind& kind = kinds_[static_cast<size_t>(which)];
  return (window == Window::kAll ? kind.all_values : kind.recent_values).histogram(per_decade);
}

LatencyStats LatencyData::stats(const LatencyStream& stream, Window window) const {
  std::vector<double> values;
  LatencyStats stats;
  for (const LatencySample& gap : stream.gaps) {
    if (gap.at < from(window)) continue;
    values.push_back(gap.seconds);
    stats.mean += gap.seconds;
  }
  stats.count = values.size();
  if (values.empty()) return {};
  stats.mean /= static_cast<double>(values.size());
  stats.p50 = quantile_of(values, 0.5);
  stats.p90 = quantile_of(values, 0.9);
  stats.p99 = quantile_of(values, 0.99);
  return stats;
}

double LatencyData::from(Window window) const {
  if (window == Window::kRecent) return std::max(restart_seconds_, now_ - kRecentSeconds);
  return all_series_.buckets.empty() ? 0 : all_series_.buckets.front().from;
}

double LatencyData::span(Window window) const {
  constexpr double kMinSeconds = 5;
  const double available =
      first_step_seconds_ < 0 ? 0 : now_ - std::max(first_step_seconds_, from(window));
  return std::max(window == Window::kRecent ? std::min(available, kRecentSeconds) : available,
                  kMinSeconds);
}

std::vector<LatencyBucket> LatencyData::series(Window window) const {
  Series series = window == Window::kAll ? all_series_ : recent_series_;
  if (!series.buckets.empty()) finish_last_bucket(series);
  return {series.buckets.begin(), series.buckets.end()};
}

void LatencyData::newest_samples(LatencyKind which, Window window, size_t max_samples,
                                 std::vector<LatencySample>& found) const {
  const Kind& kind = kinds_[static_cast<size_t>(which)];
  const size_t available = window == Window::kAll ? kind.samples.size() : kind.recent;
  found.assign(kind.samples.end() - static_cast<ptrdiff_t>(std::min(available, max_samples)),
               kind.samples.end());
}

void LatencyData::streams(Window window, std::vector<const LatencyStream*>& found) const {
  found.clear();
  for (const auto& [id, stream] : streams_)
    if (stream.tokens > 0 && stream.last_token >= from(window)) found.push_back(&stream);
  std::sort(found.begin(), found.end(),
            [](const LatencyStream* a, const LatencyStream* b) { return a->request < b->request; });
}

const LatencyStream* LatencyData::find(RequestId request) const {
  const auto place = streams_.find(request);
  return place == streams_.end() ? nullptr : &place->second;
}

}  // namespace hearth
