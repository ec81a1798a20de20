#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/waits.hpp"
#include "runtime/world.hpp"
#include "server/last_sent_copy.hpp"
#include "server/messages.hpp"
#include "server/shard_store.hpp"

namespace syncopate {

/// A shard's connection to one worker: pushed values arrive in the worker's slot, and parameters
/// leave from it. Between a request and its answer the worker waits, so the shard may read and
/// write the memory that the worker shares.
///
/// Thread: one.
class WorkerConnection {
 public:
  struct Options {
    NodeId worker;
    Duration wait_limit{};           ///< for values that a request has announced
    Rank rank{};                     ///< of the worker
    WaitArbiter* arbiter = nullptr;  ///< decides about longer waits; null: they end at the limit
    Codec* codec = nullptr;          ///< null: values travel uncompressed
    bool keeps_answers = false;      ///< `slot.out` keeps the sent parameters
  };

  /// `world`, `slot` and the codec outlive this.
  WorkerConnection(World& world, WorkerSlot& slot, const Options& options);

  /// Starts the receive of the next push: a receive that is posted before its message arrives saves
  /// a copy.
  void expect_push();
  /// Called when the worker sends no more pushes.
  void close() { arriving_.reset(); }

  /// Begins a request: records whether the worker pushes and pulls, and borrows the memory that it
  /// offers.
  /// Errors: ProtocolError if the shard does not reach this memory.
  void begin(const Request& request);
  /// Waits for the pushed values and buffers. Errors: ProtocolError, PeerLost, TimedOut.
  void receive_push(const Request& request);
  /// Waits for a model that the worker uploads: returns the parameters, and leaves the buffers in
  /// the slot.
  std::vector<float> receive_model();

  bool pushed() const { return pushed_; }
  /// Ends a request: returns the borrowed memory, sends the reply, and the parameters if the worker
  /// pulls.
  void answer(const Reply& reply);
  /// Sends only a reply; the request continues.
  void send(const Reply& reply);
  /// Sends a reply with all parameters, uncompressed, and these buffers.
  void send_model(const Reply& reply, std::span<const float> buffers);

  /// True if the shard reads and writes this worker's shared memory.
  bool reaches_memory() const;

 private:
  std::span<float> memory_at(std::uint64_t offset) const;
  void return_memory();
  void receive_buffers();
  void receive(Tag tag, std::span<float> into);
  void await(Transfer& values);
  void send_values(std::span<const std::byte> values);

  World& world_;
  WorkerSlot& slot_;
  Options options_;
  std::unique_ptr<Transfer> arriving_;              ///< into the slot, or into the frame
  std::vector<std::byte> frame_;                    ///< of a compressed push
  LastSentCopy copy_;                               ///< of compressed pulls
  std::vector<std::unique_ptr<Transfer>> leaving_;  ///< out of the slot
  bool pushed_ = false;                             ///< by the last request
  bool pulls_ = false;                              ///< by the last request
  std::span<float> wanted_{};  ///< the worker's memory for the answer; empty: the answer is sent
};

}  // namespace syncopate
