// POST /control: a dashboard elsewhere pauses the engine, changes its policy and limits, and
// cancels requests. Only on servers that were started with --control, which needs a key.
#include <nlohmann/json.hpp>

#include "tools/server/api/engine_hello.h"
#include "tools/server/api/routes.h"
#include "tools/server/control_request.h"

namespace hearth {

EngineHello engine_hello(const ServerState& server, const ServedModel& model) {
  return {.model = model.name,
          .device = model.device,
          .limits = model.engine.limits(),
          .policy = model.engine.policy(),
          .instance = static_cast<uint64_t>(server.started()),
          .now = model.engine.seconds(),
          .vocabulary = model.tokenizer.size(),
          .controllable = server.controllable(),
          .most = model.engine.initial_limits(),
          .paused = model.engine.state() == EngineState::kPaused,
          .pace = server.pace()};
}

namespace {

const ApiError kNotControllable{
    .status = 403,
    .message = "this server cannot be controlled: it was started without --control",
    .type = "permission_error",
    .code = "not_controllable"};

// Limits first, so that a policy that comes with them finds them.
void apply_control(const ControlRequest& request, ServerState& server, Engine& engine) {
  if (request.sets_limits()) {
    const SchedulerLimits limits = engine.limits();
    engine.set_limits(request.max_sequences.value_or(limits.max_sequences),
                      request.max_step_tokens.value_or(limits.max_step_tokens),
                      request.pool_blocks.value_or(0));
  }
  if (request.policy) engine.set_policy(*request.policy);
  if (request.pace) {
    engine.set_pace(*request.pace);
    server.set_pace(*request.pace);
  }
  if (request.paused) *request.paused ? engine.pause() : engine.resume();
  if (request.step) engine.step_once();
  for (const RequestId id : request.cancelled) engine.cancel(id);
  if (request.priority) engine.set_priority(request.priority->request, request.priority->value);
}

void control_engine(ServerState& server, Exchange& exchange) {
  if (!server.controllable()) return exchange.refuse(kNotControllable);
  const ServedModel* const model = server.ready(exchange);
  if (model == nullptr || !exchange.charge()) return;
  const auto parsed = parse_control_request(exchange.request.body, model->engine.policy());
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return exchange.refuse(*error);
  apply_control(std::get<ControlRequest>(parsed), server, model->engine);
  exchange.send(hello_event(engine_hello(server, *model)));
}

}  // namespace

std::span<const Route> control_routes() {
  static constexpr Route kRoutes[] = {
      {.method = "POST", .path = "/control", .handle = control_engine},
  };
  return kRoutes;
}

}  // namespace hearth
