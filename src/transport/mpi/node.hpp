#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/mail/mailbox.hpp"
#include "transport/mpi/engine.hpp"
#include "transport/mpi/mpi_allreduce.hpp"
#include "transport/mpi/peer_streams.hpp"

namespace syncopate::mpi {

/// A node of this process: passes messages between the caller, the mailbox and the streams to its
/// peers. `PeerStreams` decides who the peers are.
///
/// Threads: any. Every member takes the engine lock, except the mailbox and the shared memory,
///          which have mutexes of their own; no thread takes the engine lock while it holds one of
///          these.
class Node final : public Transport {
 public:
  struct Options {
    std::string token;
    bool shares_memory;
    bool is_coordinator;
    MpiAllreduce* allreduce;  ///< null, where this rank takes no part in it
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
  Message receive(std::optional<NodeId> from, Tag tag, TimePoint deadline) override;
  void give_up(NodeId peer) override;
  void cancel(std::exception_ptr why) noexcept override;
  void close(TimePoint deadline) noexcept override;
  Traffic traffic() const override;
  Traffic traffic_to(NodeId peer) const override;
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
