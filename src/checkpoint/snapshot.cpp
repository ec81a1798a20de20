#include "checkpoint/snapshot.hpp"

#include <vector>

#include "base/bytes.hpp"
#include "base/errors.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// As a stamp travels: u64 round, u64 samples, f64 epoch, f64 training seconds.
constexpr std::size_t stamp_bytes = 32;

/// An empty announcement ends the sequence. The waits here have no deadline of their own: a dead or
/// silent peer is the coordinator's to notice, who then cancels the node.
std::vector<std::byte> announcement(const SnapshotStamp& stamp) {
  std::vector<std::byte> bytes(stamp_bytes);
  ByteWriter(bytes)
      .put(stamp.round)
      .put(stamp.samples)
      .put(stamp.epoch)
      .put(stamp.training_seconds);
  return bytes;
}

SnapshotStamp unpack(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  SnapshotStamp stamp;
  stamp.round = reader.take<std::uint64_t>();
  stamp.samples = reader.take<std::uint64_t>();
  stamp.epoch = reader.take<double>();
  stamp.training_seconds = reader.take<double>();
  return stamp;
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
  if (message.payload.size() != stamp_bytes) {
    throw ProtocolError("the announcement of a snapshot has another size than expected");
  }
  const SnapshotStamp stamp = unpack(message.payload);
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
