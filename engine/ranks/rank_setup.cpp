#include "engine/ranks/rank_setup.h"

#include "engine/ranks/message.h"

namespace hearth {
namespace {

// A flag, then the value or the error.
template <class T, class Put>
Message write_result(const Result<T>& result, Put put) {
  MessageWriter writer;
  writer.value(static_cast<uint32_t>(result.ok()));
  if (result.ok())
    put(writer, *result);
  else
    writer.value(result.error().kind).text(result.error().message);
  return writer.take();
}

template <class T, class Take>
Result<T> read_result(const Message& message, Take take) {
  MessageReader reader(message);
  uint32_t ok = 0;
  T value{};
  Error error;
  if (reader.value(ok); ok != 0)
    take(reader, value);
  else
    reader.value(error.kind).text(error.message);
  HEARTH_TRY(reader.status());
  if (ok == 0) return error;
  return value;
}

}  // namespace

Message write_offer(const Result<RankOffer>& offer) {
  return write_result(offer, [](MessageWriter& writer, const RankOffer& value) {
    writer.text(value.device).value(value.free_bytes).value(value.fingerprint).value(value.is_cpu);
    writer.value(value.device_uuid);
  });
}

Result<RankOffer> read_offer(const Message& message) {
  return read_result<RankOffer>(message, [](MessageReader& reader, RankOffer& value) {
    reader.text(value.device).value(value.free_bytes).value(value.fingerprint).value(value.is_cpu);
    reader.value(value.device_uuid);
  });
}

Message write_task(const RankTask& task) { return MessageWriter().value(task).take(); }

Result<RankTask> read_task(const Message& message) {
  RankTask task;
  MessageReader reader(message);
  HEARTH_TRY(reader.value(task).status());
  return task;
}

Message write_room(const Result<RankRoom>& room) {
  return write_result(room,
                      [](MessageWriter& writer, const RankRoom& value) { writer.value(value); });
}

Result<RankRoom> read_room(const Message& message) {
  return read_result<RankRoom>(message,
                               [](MessageReader& reader, RankRoom& value) { reader.value(value); });
}

Message write_ready(const Status& status) {
  return write_result<Done>(status, [](MessageWriter&, const Done&) {});
}

Status read_ready(const Message& message) {
  HEARTH_TRY(read_result<Done>(message, [](MessageReader&, Done&) {}));
  return {};
}

}  // namespace hearth
