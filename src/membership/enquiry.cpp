#include "membership/enquiry.hpp"

#include "base/errors.hpp"
#include "runtime/control_link.hpp"
#include "transport/tags.hpp"
#include "wire/control.hpp"

namespace syncopate {
namespace {

constexpr Duration declining_limit = std::chrono::seconds(10);

void post(Transport& transport, const wire::ToCoordinator& message) {
  transport.post(coordinator_node, tags::to_coordinator, wire::encode(message));
}

}  // namespace

wire::JobDescription enquire(Transport& transport, const wire::Enquire& enquiry,
                             TimePoint deadline) {
  wire::ToCoordinator question;
  *question.mutable_enquire() = enquiry;
  post(transport, question);
  const Message message = transport.receive(coordinator_node, tags::from_coordinator, deadline);
  const wire::FromCoordinator answer = wire::decode_from_coordinator(message.payload);
  if (answer.has_abort()) {
    std::rethrow_exception(to_error(answer.abort()));
  }
  if (!answer.has_job()) {
    throw ProtocolError("the coordinator did not answer what the job is");
  }
  return answer.job();
}

void decline(World& world, const std::exception& why) {
  wire::ToCoordinator message;
  *message.mutable_abort() = to_abort(why);
  post(world.transport(), message);
  world.transport().close(world.now() + declining_limit);
}

}  // namespace syncopate
