#include "server/worker_connection.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.hpp"
#include "codec/codec_frame.hpp"
#include "transport/shared_memory.hpp"
#include "transport/tags.hpp"

namespace syncopate {

WorkerConnection::WorkerConnection(World& world, WorkerSlot& slot, const Options& options)
    : world_(world), slot_(slot), options_(options) {
  expect_push();
}

void WorkerConnection::expect_push() {
  const std::span<float> values = slot_.own_in;
  frame_.resize(options_.codec ? frame_bytes(*options_.codec, values.size()) : 0);
  arriving_ = world_.transport().start_receive(
      options_.worker, tags::server_push,
      options_.codec ? std::span(frame_) : std::as_writable_bytes(values));
}

void WorkerConnection::begin(const Request& request) {
  pushed_ = request.push;
  pulls_ = request.pull;
  wanted_ = {};
  if (request.push_offset) {
    slot_.in = memory_at(*request.push_offset);
  }
  if (request.pull_offset) {
    wanted_ = memory_at(*request.pull_offset);
    slot_.out = options_.keeps_answers ? slot_.out : wanted_;
  }
}

std::span<float> WorkerConnection::memory_at(std::uint64_t offset) const {
  if (!reaches_memory()) {
    throw ProtocolError(fmt::format("node {} offers shared memory that this server does not reach",
                                    options_.worker.value));
  }
  const std::size_t values = slot_.own_in.size();
  const std::span<std::byte> bytes =
      world_.transport().shared_memory()->at(options_.worker, offset, values * sizeof(float));
  return {reinterpret_cast<float*>(bytes.data()), values};
}

bool WorkerConnection::reaches_memory() const {
  SharedMemory* const memory = world_.transport().shared_memory();
  return memory != nullptr && memory->reaches(options_.worker);
}

void WorkerConnection::receive_push(const Request& request) {
  if (!request.push_offset) {
    await(*arriving_);
    if (options_.codec) {
      decode_frame(*options_.codec, frame_, slot_.own_in);
    }
  }
  receive_buffers();
}

std::vector<float> WorkerConnection::receive_model() {
  std::vector<float> params(slot_.own_in.size());
  receive(tags::server_values, params);
  receive_buffers();
  return params;
}

void WorkerConnection::receive_buffers() {
  if (!slot_.buffers.empty()) {
    receive(tags::server_buffers, slot_.buffers);
  }
}

void WorkerConnection::receive(Tag tag, std::span<float> into) {
  const auto values =
      world_.transport().start_receive(options_.worker, tag, std::as_writable_bytes(into));
  await(*values);
}

void WorkerConnection::await(Transfer& values) {
  Waits({.limit = options_.wait_limit, .arbiter = options_.arbiter})
      .run(world_, [&](TimePoint until) { values.wait(until); },
           {.operation = "values that a worker has announced",
            .missing = [this] { return std::vector{options_.rank}; }});
}

void WorkerConnection::answer(const Reply& reply) {
  const bool sends = pulls_ && wanted_.empty();
  if (pushed_ && slot_.in.data() == slot_.own_in.data()) {
    expect_push();
  }
  return_memory();
  send(reply);
  if (sends) {
    const std::span<float> values = slot_.own_out;
    send_values(options_.codec ? copy_.encode(*options_.codec, values) : std::as_bytes(values));
  }
}

void WorkerConnection::return_memory() {
  if (pulls_ && !wanted_.empty()) {
    if (slot_.out.data() != wanted_.data()) {
      std::copy(slot_.out.begin(), slot_.out.end(), wanted_.begin());
    }
    world_.transport().shared_memory()->count_zero_copy(wanted_.size_bytes());
  }
  slot_.in = slot_.own_in;
  slot_.out = slot_.own_out;
}

void WorkerConnection::send(const Reply& reply) {
  world_.transport().post(options_.worker, tags::server_reply, encode(reply));
}

void WorkerConnection::send_model(const Reply& reply, std::span<const float> buffers) {
  const std::span<const float> params = slot_.own_out;
  if (options_.codec) {
    copy_.reset(params);
  }
  send_values(std::as_bytes(params));
  send(reply);
  const auto bytes = std::as_bytes(buffers);
  world_.transport().post(options_.worker, tags::server_buffers, {bytes.begin(), bytes.end()});
}

void WorkerConnection::send_values(std::span<const std::byte> values) {
  // The previous values have arrived, since the worker requests again only then.
  leaving_.clear();
  leaving_.push_back(world_.transport().start_send(options_.worker, tags::server_values, values));
}

}  // namespace syncopate
