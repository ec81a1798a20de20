#include "transport/mpi/engine.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "transport/steady_time.hpp"
#include "wire/wire_frame.hpp"

namespace syncopate::mpi {
namespace {

/// Packets that can arrive between two polls.
constexpr std::size_t ring_slots = 32;
constexpr std::uint32_t packet_tag = 0;
/// Time for transfers that are still under way when all ranks have ended.
constexpr Duration drain_limit = std::chrono::seconds(2);

}  // namespace

Engine::Engine(const std::function<std::unique_ptr<Calls>()>& make) {
  std::promise<void> started;
  std::future<void> answer = started.get_future();
  thread_ = std::thread(
      [this, &make, started = std::move(started)]() mutable { run(make, std::move(started)); });
  try {
    answer.get();
  } catch (...) {
    thread_.join();
    throw;
  }
}

Engine::~Engine() {
  stopping_ = true;
  wakeup_.notify();
  thread_.join();
}

void Engine::run(const std::function<std::unique_ptr<Calls>()>& make, std::promise<void> started) {
  pthread_setname_np(pthread_self(), "mpi");
  try {
    calls_ = make();
    post_receives();
  } catch (...) {
    started.set_exception(std::current_exception());
    return;
  }
  started.set_value();
  loop();
  try {
    end();
  } catch (const std::exception& error) {
    log::warn("MPI_Finalize failed: {}", error.what());
  }
}

void Engine::loop() {
  PollBackoff backoff(wakeup_, has_core_);
  while (!stopping_) {
    if (poll_once() || wakeup_.take()) {
      backoff.restart();
    } else {
      backoff.pause();
    }
  }
}

bool Engine::poll_once() {
  lock_.lock_after_others();
  const Lock lock(lock_, std::adopt_lock);
  try {
    return failed_ == nullptr && poll();
  } catch (const std::exception& error) {
    log::warn("the transport failed: {}", error.what());
    fail(std::current_exception());
    return false;
  }
}

void Engine::fail(const std::exception_ptr& why) {
  failed_ = why;
  for (const auto& [slot, endpoint] : endpoints_) {
    endpoint->fail(why);
  }
}

/// Posted sends still leave; receives of packets are cancelled.
void Engine::end() {
  const Lock lock(lock_);
  const TimePoint patience = steady_now() + drain_limit;
  while (!operations_.empty() && steady_now() < patience) {
    test_operations();
  }
  for (Slot& slot : ring_) {
    calls_->cancel(slot.request);
    while (!calls_->test(slot.request)) {
    }
  }
  calls_->finalize();
}

void Engine::await(Calls::Request request, TimePoint deadline, const std::function<void()>& check) {
  WakeupEvent quiet;
  PollBackoff backoff(quiet, has_core_);
  while (true) {
    lock_.lock_after_others();
    {
      const Lock lock(lock_, std::adopt_lock);
      if (calls_->test(request)) {
        return;
      }
      if (check) {
        check();
      }
      if (failed_) {
        std::rethrow_exception(failed_);
      }
      if (poll()) {
        backoff.restart();
      }
    }
    if (steady_now() >= deadline) {
      throw TimedOut("not all ranks came before the deadline");
    }
    backoff.pause();
  }
}

std::uint16_t Engine::add(LocalEndpoint& endpoint, bool is_coordinator) {
  if (is_coordinator &&
      (calls_->rank() != coordinator_site.rank || endpoints_.contains(coordinator_site.slot))) {
    throw InternalError("node 0 of a job is on rank 0, one at a time");
  }
  if (failed_) {
    std::rethrow_exception(failed_);
  }
  const std::uint16_t slot = is_coordinator ? coordinator_site.slot : ++slots_;
  endpoints_[slot] = &endpoint;
  if (is_coordinator) {
    coordinator_was_here_ = true;
    for (const UnmatchedSender& sender : std::exchange(early_, {})) {
      endpoint.arrived(sender.from, sender.head, sender.payload);
    }
  }
  return slot;
}

void Engine::remove(std::uint16_t slot) {
  endpoints_.erase(slot);
}

std::uint32_t Engine::next_transfer() {
  transfers_ = transfers_ == calls_->greatest_tag() ? 0 : transfers_ + 1;
  return transfers_;
}

void Engine::send(const Site& to, const PacketHead& head, std::span<const std::byte> payload) {
  Operation operation;
  operation.owned = encode(head, payload);
  operation.request = calls_->send(Calls::Channel::packets, to.rank, packet_tag, operation.owned);
  if (!calls_->test(operation.request)) {
    keep(std::move(operation));
  }
}

OperationHandle Engine::send_piece(std::uint32_t to, std::uint32_t transfer,
                                   std::span<const std::byte> bytes,
                                   std::function<void(const Calls::Done&)> done) {
  return keep({.request = calls_->send(Calls::Channel::pieces, to, transfer, bytes),
               .done = std::move(done)});
}

OperationHandle Engine::receive_piece(std::uint32_t from, std::uint32_t transfer,
                                      std::span<std::byte> into,
                                      std::function<void(const Calls::Done&)> done) {
  return keep({.request = calls_->receive(Calls::Channel::pieces, from, transfer, into),
               .done = std::move(done)});
}

OperationHandle Engine::keep(Operation operation) {
  operations_.push_back(std::make_shared<Operation>(std::move(operation)));
  return operations_.back();
}

bool Engine::poll() {
  bool moved = false;
  while (take_packet()) {
    moved = true;
  }
  moved |= test_operations();
  for (const auto& [slot, endpoint] : endpoints_) {
    moved |= endpoint->work();
  }
  return moved;
}

void Engine::post_receives() {
  ring_.resize(ring_slots);
  for (std::size_t slot = 0; slot < ring_slots; ++slot) {
    ring_[slot].bytes.resize(packet_limit);
    post_receive(slot);
  }
}

void Engine::post_receive(std::size_t slot) {
  ring_[slot].request =
      calls_->receive(Calls::Channel::packets, std::nullopt, packet_tag, ring_[slot].bytes);
}

bool Engine::take_packet() {
  Slot& slot = ring_[next_];
  const auto done = calls_->test(slot.request);
  if (!done) {
    return false;
  }
  if (done->bytes < packet_head_bytes) {
    throw ProtocolError(
        fmt::format("expected a packet, found {} bytes from rank {}", done->bytes, done->from));
  }
  const auto packet = std::span<const std::byte>(slot.bytes).first(done->bytes);
  const PacketHead head = decode_packet_head(packet);
  deliver({done->from, head.from_slot}, head, packet.subspan(packet_head_bytes));
  post_receive(next_);
  next_ = (next_ + 1) % ring_.size();
  return true;
}

void Engine::deliver(const Site& from, const PacketHead& head, std::span<const std::byte> payload) {
  const auto found = endpoints_.find(head.to_slot);
  if (found != endpoints_.end()) {
    found->second->arrived(from, head, payload);
  } else {
    answer_for_absent(from, head, payload);
  }
}

/// Answers a packet to a node that is not here yet, or has gone.
void Engine::answer_for_absent(const Site& from, const PacketHead& head,
                               std::span<const std::byte> payload) {
  PacketHead answer{.from_slot = head.to_slot, .to_slot = head.from_slot};
  if (head.kind == PacketKind::hello) {
    if (head.to_slot == coordinator_site.slot && calls_->rank() == coordinator_site.rank &&
        !coordinator_was_here_) {
      early_.push_back({from, head, {payload.begin(), payload.end()}});
      return;
    }
    wire::Refused refused;
    refused.set_reason("the node has gone");
    answer.kind = PacketKind::refused;
    send(from, answer, wire::encode_frame(refused));
  } else if (head.kind == PacketKind::welcome) {
    answer.kind = PacketKind::goodbye;
    send(from, answer);
  }
}

bool Engine::test_operations() {
  bool moved = false;
  // An operation that ends may begin others, which go to the end; pieces keep their order.
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const OperationHandle operation = operations_[i];
    if (const auto done = calls_->test(operation->request)) {
      operations_[i] = nullptr;
      moved = true;
      if (operation->done) {
        operation->done(*done);
      }
    }
  }
  std::erase(operations_, nullptr);
  return moved;
}

}  // namespace syncopate::mpi
