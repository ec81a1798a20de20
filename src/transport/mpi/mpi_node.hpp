#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/mail/mailbox.hpp"
#include "transport/mpi/engine.hpp"
#include "transport/mpi/peer_streams.hpp"

namespace syncopate::mpi {

/// `MPI_Allreduce` of the ranks that take part.
///
/// A rank first waits in a non-blocking barrier, which it can stop waiting for, until all ranks
/// have arrived. So the blocking call takes no longer than the allreduce itself, and keeps no core
/// busy for a late rank. The waiting thread polls MPI itself, so that no other thread has to wake
/// up.
class MpiAllreduce {
 public:
  /// `form_reducing_group` has made the group, of `ranks` ranks.
  MpiAllreduce(Engine& engine, std::uint32_t ranks) : engine_(engine), ranks_(ranks) {}

  std::uint32_t size() const { return ranks_; }
  /// As `NativeAllreduce::allreduce`; `check` throws if the other ranks cannot arrive any more.
  void run(std::span<float> values, TimePoint deadline, const std::function<void()>& check);

 private:
  Engine& engine_;
  const std::uint32_t ranks_;
  std::optional<Calls::Request> all_are_here_;  ///< the barrier of an allreduce that timed out
};

/// A node of this process: passes messages between the caller, the mailbox and the streams to its
/// peers. `PeerStreams` keeps the peers.
///
/// Threads: any. Every member takes the engine lock, except the mailbox and the shared memory,
///          which have their own mutexes; no thread takes the engine lock while it holds one of
///          these.
class Node final : public Transport {
 public:
  struct Options {
    std::string token;
    bool shares_memory;
    bool is_coordinator;
    MpiAllreduce* allreduce;  ///< null if this rank takes no part in it
  };

  Node(Engine& engine, Options options);
  ~Node() override;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Gets a number from node 0. Errors: as `Session::join`.
  void join(std::chrono::milliseconds timeout);

  NodeId self() const override { return peers_.self(); }
  std::string address() const override { return to_string(peers_.site()); }
  void introduce(NodeId peer, const std::string& address) override;
  std::unique_ptr<Transfer> start_send(NodeId to, Tag tag,
                                       std::span<const std::byte> payload) override;
  std::unique_ptr<Transfer> start_receive(NodeId from, Tag tag, std::span<std::byte> into) override;
  void post(NodeId to, Tag tag, std::vector<std::byte> payload) override;
  std::optional<Message> try_receive(std::optional<NodeId> from, Tag tag,
                                     TimePoint deadline) override;
  void give_up(NodeId peer) override;
  void cancel(std::exception_ptr why) noexcept override;
  void close(TimePoint deadline) noexcept override;
  Traffic traffic() const override;
  Traffic traffic_to(NodeId peer) const override;
  std::string path_to(NodeId peer) const override;
  SharedMemory* shared_memory() override { return peers_.memory(); }
  NativeAllreduce* native_allreduce() override { return allreduce_.get(); }

 private:
  friend class Sending;
  class NodeAllreduce;

  void await_release() noexcept;
  bool await_handle(SendHandle& handle, TimePoint deadline);
  template <class Done>
  bool wait(Engine::Lock& lock, TimePoint deadline, const Done& done) const;

  Engine& engine_;
  mail::Mailbox mailbox_;
  PeerStreams peers_;
  std::unique_ptr<NativeAllreduce> allreduce_;
};

}  // namespace syncopate::mpi
