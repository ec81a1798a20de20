#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "runtime/world.hpp"
#include "scheme/replica.hpp"

namespace syncopate {

/// The moment at which a snapshot was taken.
struct SnapshotStamp {
  std::uint64_t round = 0;
  std::uint64_t samples = 0;
  double epoch = 0;
  double training_seconds = 0;
};

/// Hands snapshots of the model to the evaluator. Owned by the worker of rank 0, or by a parameter
/// server's first shard.
///
/// The evaluator grants one snapshot at its start and one more whenever it has taken one in, so that
/// at most one waits behind the one under test, however slow testing is.
class SnapshotSender {
 public:
  SnapshotSender(Transport& transport, NodeId evaluator)
      : transport_(transport), evaluator_(evaluator) {}

  /// Blocks until the evaluator has room and the snapshot has been handed over. The caller takes
  /// this time off the training clock. Errors: those of the transport.
  void send(const SnapshotStamp& stamp, std::span<const float> params,
            std::span<const float> buffers);
  /// Tells the evaluator that no more will come.
  void finish();

 private:
  Transport& transport_;
  NodeId evaluator_;
};

/// The evaluator's side.
class SnapshotReceiver {
 public:
  SnapshotReceiver(Transport& transport, NodeId sender);

  /// Waits for the next snapshot and loads it into `replica`; empty when no more will come.
  /// Errors: ProtocolError, when it is of another size than the replica; those of the transport.
  std::optional<SnapshotStamp> receive(Replica& replica);

 private:
  void grant();

  Transport& transport_;
  NodeId sender_;
};

}  // namespace syncopate
