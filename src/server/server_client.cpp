#include "server/server_client.hpp"

#include <algorithm>
#include <limits>

#include "base/errors.hpp"
#include "codec/codec_frame.hpp"
#include "optim/rule_state.hpp"
#include "transport/shared_memory.hpp"
#include "transport/tags.hpp"

namespace syncopate {

ServerClient::ServerClient(World& world, Options options)
    : world_(world),
      options_(std::move(options)),
      waits_({.limit = options_.wait_limit, .arbiter = options_.arbiter}),
      reaches_memory_(options_.servers.size(), false),
      push_frames_(options_.servers.size()),
      copies_(options_.servers.size()) {
  if (options_.compression) {
    feedback_.emplace(options_.compression);
  }
}

void ServerClient::upload(std::span<const float> params, std::span<const float> buffers) {
  Transfers sent;
  for (std::size_t shard = 0; shard < options_.servers.size(); ++shard) {
    const NodeId node = options_.servers[shard];
    sent.push_back(world_.transport().start_send(node, tags::server_values,
                                                 std::as_bytes(part_of(params, shard))));
    send_buffers(part_of(buffers, shard), node, sent);
    send(node, {.kind = Request::Kind::upload});
  }
  finish(sent);
}

Reply ServerClient::start(std::span<float> params, std::span<float> buffers) {
  download(Request::Kind::start, params, buffers);
  if (feedback_) {
    for (std::size_t shard = 0; shard < options_.servers.size(); ++shard) {
      copies_[shard].reset(part_of(params, shard));
    }
  }
  return last_;
}

void ServerClient::take_model(std::span<float> params, std::span<float> buffers) {
  download(Request::Kind::model, params, buffers);
}

void ServerClient::download(Request::Kind kind, std::span<float> params, std::span<float> buffers) {
  Transfers pulled;
  for (std::size_t shard = 0; shard < options_.servers.size(); ++shard) {
    const auto values = std::as_writable_bytes(part_of(params, shard));
    bytes_received_ += values.size();
    pulled.push_back(
        world_.transport().start_receive(options_.servers[shard], tags::server_values, values));
    send(options_.servers[shard], {.kind = kind});
  }
  await_answers();
  await_values(pulled, all_shards());
  for (std::size_t shard = 0; shard < options_.servers.size(); ++shard) {
    receive_buffers(shard, part_of(buffers, shard));
  }
}

ServerClient::Result ServerClient::work(const Work& work) {
  const TimePoint begun = world_.now();
  held_ = Duration::zero();
  const std::optional<Reply> owed = await_owed();
  std::vector<Request> requests;
  for (std::size_t shard = 0; shard < options_.servers.size(); ++shard) {
    requests.push_back(request_for(shard, work));
  }
  const Transfers pulled = begin_pull(work.pull, requests);
  const Transfers pushed = begin_push(work, requests);
  for (std::size_t shard = 0; shard < options_.servers.size(); ++shard) {
    send(options_.servers[shard], requests[shard]);
  }
  owes_answers_ = true;
  if (!work.pull.empty()) {
    await_answers();
  }
  finish(pushed);
  await_values(pulled, all_shards());
  take_pulled(work.pull, requests);
  return {
      .reply = last_, .owed = owed, .communicated = world_.now() - begun - held_, .waited = held_};
}

void ServerClient::leave() {
  await_owed();
  for (const NodeId shard : options_.servers) {
    send(shard, {.kind = Request::Kind::leave, .pull = options_.takes_model});
  }
}

void ServerClient::rest() {
  await_owed();
  for (const NodeId shard : options_.servers) {
    send(shard, {.kind = Request::Kind::rest});
  }
}

template <class Value>
std::span<Value> ServerClient::part_of(std::span<Value> values, std::size_t shard) const {
  return part(values, range_of_shard(values.size(), static_cast<std::uint32_t>(shard),
                                     static_cast<std::uint32_t>(options_.servers.size())));
}

void ServerClient::send(NodeId shard, const Request& request) {
  world_.transport().post(shard, tags::server_request, encode(request));
}

/// Values in shared memory are neither copied nor compressed.
bool ServerClient::shares_memory(std::size_t shard) const {
  return reaches_memory_[shard] && (!options_.compression || options_.compress_remote);
}

/// Only a request with a pull refers to shared memory: the caller waits for its answer, so the
/// values do not change before.
Request ServerClient::request_for(std::size_t shard, const Work& work) const {
  Request request{.kind = Request::Kind::work,
                  .push = !work.push.empty(),
                  .pull = !work.pull.empty(),
                  .step = work.facts.step,
                  .samples = work.facts.samples,
                  .loss_sum = work.facts.loss_sum,
                  .weight = work.facts.weight};
  if (request.pull && shares_memory(shard)) {
    const SharedMemory& memory = *world_.transport().shared_memory();
    request.pull_offset = memory.offset_of(std::as_bytes(part_of(work.pull, shard)));
    if (request.push) {
      request.push_offset = memory.offset_of(std::as_bytes(part_of(work.push, shard)));
    }
  }
  if (request.push_offset) {
    world_.transport().shared_memory()->count_zero_copy(part_of(work.push, shard).size_bytes());
  }
  return request;
}

ServerClient::Transfers ServerClient::begin_pull(std::span<float> into,
                                                 const std::vector<Request>& requests) {
  Transfers transfers;
  for (std::size_t shard = 0; !into.empty() && shard < options_.servers.size(); ++shard) {
    if (requests[shard].pull_offset) {
      continue;
    }
    const std::span<std::byte> values = expected(shard, part_of(into, shard));
    bytes_received_ += values.size();
    transfers.push_back(
        world_.transport().start_receive(options_.servers[shard], tags::server_values, values));
  }
  return transfers;
}

std::span<std::byte> ServerClient::expected(std::size_t shard, std::span<float> part) {
  return feedback_ ? copies_[shard].frame_buffer(feedback_->codec()) : std::as_writable_bytes(part);
}

void ServerClient::take_pulled(std::span<float> into, const std::vector<Request>& requests) {
  for (std::size_t shard = 0; !into.empty() && shard < options_.servers.size(); ++shard) {
    if (feedback_ && !requests[shard].pull_offset) {
      copies_[shard].decode(feedback_->codec(), part_of(into, shard));
    }
  }
}

ServerClient::Transfers ServerClient::begin_push(const Work& work,
                                                 const std::vector<Request>& requests) {
  Transfers transfers;
  for (std::size_t shard = 0; !work.push.empty() && shard < options_.servers.size(); ++shard) {
    const NodeId node = options_.servers[shard];
    if (!requests[shard].push_offset) {
      transfers.push_back(
          world_.transport().start_send(node, tags::server_push, encoded(work.push, shard)));
    }
    send_buffers(part_of(work.buffers, shard), node, transfers);
  }
  return transfers;
}

/// The bytes of a push: its own values, or a frame that is valid until the next push.
std::span<const std::byte> ServerClient::encoded(std::span<const float> push, std::size_t shard) {
  const std::span<const float> part = part_of(push, shard);
  if (!feedback_) {
    return std::as_bytes(part);
  }
  feedback_->reserve(push.size());
  std::vector<std::byte>& frame = push_frames_[shard];
  frame.resize(frame_bytes(feedback_->codec(), part.size()));
  feedback_->encode(part, 1, static_cast<std::size_t>(part.data() - push.data()), frame);
  return frame;
}

void ServerClient::send_buffers(std::span<const float> buffers, NodeId node, Transfers& transfers) {
  if (!buffers.empty()) {
    transfers.push_back(
        world_.transport().start_send(node, tags::server_buffers, std::as_bytes(buffers)));
  }
}

void ServerClient::receive_buffers(std::size_t shard, std::span<float> into) {
  Transfers buffers;
  buffers.push_back(world_.transport().start_receive(options_.servers[shard], tags::server_buffers,
                                                     std::as_writable_bytes(into)));
  await_values(buffers, {Rank{static_cast<std::uint32_t>(shard)}});
}

std::optional<Reply> ServerClient::await_owed() {
  if (!owes_answers_) {
    return std::nullopt;
  }
  await_answers();
  return last_;
}

void ServerClient::await_answers() {
  owes_answers_ = false;
  std::uint64_t fewest = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t shard = 0; shard < options_.servers.size(); ++shard) {
    const Reply reply = await_answer(options_.servers[shard]);
    reaches_memory_[shard] = reply.reaches_memory && world_.transport().shared_memory() != nullptr;
    fewest = std::min(fewest, reply.steps);
    if (shard == 0) {
      last_ = reply;
    }
  }
  last_.steps = fewest;
}

Reply ServerClient::await_answer(NodeId shard) {
  const TimePoint begun = world_.now();
  TimePoint held_since = no_deadline;
  Reply reply;
  do {
    const Message message = next_reply(shard, reply.ranks);
    reply = decode_reply(message.payload);
    bytes_received_ += message.payload.size();
    if (reply.kind == Reply::Kind::held) {
      held_since = world_.now();
    }
  } while (reply.kind == Reply::Kind::held);
  waits_.observed(world_.now() - begun);
  if (held_since != no_deadline) {
    held_ += world_.now() - held_since;
  }
  return reply;
}

Message ServerClient::next_reply(NodeId shard, const std::vector<Rank>& blamed) {
  Message reply;
  waits_.run(world_,
             [&](TimePoint until) {
               reply = world_.transport().receive(shard, tags::server_reply, until);
             },
             {.operation = "the answer of a parameter server",
              .missing = [&] { return blamed; },
              .servers = {rank_of(shard)}});
  return reply;
}

void ServerClient::finish(const Transfers& sent) {
  for (const auto& transfer : sent) {
    transfer->wait(deadline());
  }
}

void ServerClient::await_values(const Transfers& pulled, const std::vector<Rank>& shards) {
  for (const auto& transfer : pulled) {
    waits_.run(world_, [&](TimePoint until) { transfer->wait(until); },
               {.operation = "the values of a parameter server",
                .missing = [] { return std::vector<Rank>{}; },
                .servers = shards});
  }
}

Rank ServerClient::rank_of(NodeId shard) const {
  const auto found = std::find(options_.servers.begin(), options_.servers.end(), shard);
  return Rank{static_cast<std::uint32_t>(found - options_.servers.begin())};
}

std::vector<Rank> ServerClient::all_shards() const {
  std::vector<Rank> shards;
  for (const NodeId node : options_.servers) {
    shards.push_back(rank_of(node));
  }
  return shards;
}

/// A send is waited for only once, so it gets twice the limit: the coordinator has time to find the
/// failed node first.
TimePoint ServerClient::deadline() const {
  return world_.now() + 2 * waits_.limit();
}

}  // namespace syncopate
