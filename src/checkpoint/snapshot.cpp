#include "checkpoint/snapshot.hpp"

#include <cstring>
#include <vector>

#include "base/errors.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// An empty announcement ends the sequence. The waits here have no deadline of their own: a dead or
/// silent peer is the coordinator's to notice, who then cancels the node.
std::vector<std::byte> announcement(const SnapshotStamp& stamp) {
  const auto bytes = std::as_bytes(std::span(&stamp, 1));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void SnapshotSender::send(const SnapshotStamp& stamp, std::span<const float> params,
                          std::span<const float> buffers) {
  transport_.receive(evaluator_, tags::snapshot_credit, no_deadline);
  transport_.post(evaluator_, tags::snapshot, announcement(stamp));
  syncopate::send(transport_, evaluator_, tags::snapshot, std::as_bytes(params), no_deadline);
  syncopate::send(transport_, evaluator_, tags::snapshot, std::as_bytes(buffers), no_deadline);
}

void SnapshotSender::finish() {
  transport_.post(evaluator_, tags::snapshot, {});
}

SnapshotReceiver::SnapshotReceiver(Transport& transport, NodeId sender)
    : transport_(transport), sender_(sender) {
  grant();
}

std::optional<SnapshotStamp> SnapshotReceiver::receive(Replica& replica) {
  const Message message = transport_.receive(sender_, tags::snapshot, no_deadline);
  if (message.payload.empty()) {
    return std::nullopt;
  }
  SnapshotStamp stamp;
  if (message.payload.size() != sizeof stamp) {
    throw ProtocolError("the announcement of a snapshot has another size than expected");
  }
  std::memcpy(&stamp, message.payload.data(), sizeof stamp);
  for (const Part part : {Part::params, Part::buffers}) {
    receive_into(transport_, sender_, tags::snapshot, std::as_writable_bytes(replica.view(part)),
                 no_deadline);
    replica.store(part);
  }
  grant();
  return stamp;
}

void SnapshotReceiver::grant() {
  transport_.post(sender_, tags::snapshot_credit, {});
}

}  // namespace syncopate
