#include "server/parameter_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// The largest number of workers that a held reply names.
constexpr std::size_t ranks_named = 8;

/// Errors: ProtocolError.
void expect_possible(const Request& request) {
  constexpr std::uint64_t most_samples = std::uint64_t{1} << 40;
  if (request.samples > most_samples || !std::isfinite(request.weight)) {
    throw ProtocolError(fmt::format(
        "a request with {} samples and weight {:g}; expected at most {}, and a finite weight",
        request.samples, request.weight, most_samples));
  }
}

}  // namespace

ParameterServer::ParameterServer(World& world, ShardStore& store, Consistency& consistency,
                                 Options options)
    : world_(world),
      store_(store),
      consistency_(consistency),
      options_(std::move(options)),
      codec_(options_.compression ? make_codec(options_.compression) : nullptr) {
  connections_.reserve(options_.workers.size());
  for (std::uint32_t rank = 0; rank < options_.workers.size(); ++rank) {
    connections_.emplace_back(world_, store_.slot(Rank{rank}),
                              WorkerConnection::Options{.worker = options_.workers[rank],
                                                        .wait_limit = options_.wait_limit,
                                                        .rank = Rank{rank},
                                                        .arbiter = options_.arbiter,
                                                        .codec = codec_.get(),
                                                        .keeps_answers = store_.keeps_answers()});
  }
}

ParameterServer::ShardRequests ParameterServer::serve(TimePoint deadline) {
  receive_requests(deadline);
  if (requests_.empty()) {
    return {};
  }
  queue_length_.add(requests_.size());
  const TimePoint begun = world_.now();
  const Message message = std::move(requests_.front());
  requests_.pop_front();
  const ShardRequests for_caller = handle(message);
  busy_ += world_.now() - begun;
  return for_caller;
}

/// Receives every request that has arrived, so that the length of the queue is known.
void ParameterServer::receive_requests(TimePoint deadline) {
  try {
    const auto next = [&] {
      const TimePoint until = requests_.empty() ? deadline : world_.now();
      return world_.transport().try_receive(std::nullopt, tags::server_request, until);
    };
    while (auto request = next()) {
      requests_.push_back(std::move(*request));
    }
  } catch (const PeerLost& loss) {
    lost(loss);
  }
}

/// Drops a lost worker. The loss of another server needs no action here: it has finished its work,
/// or else the coordinator ends the job.
void ParameterServer::lost(const PeerLost& loss) {
  if (const auto worker = rank_of(loss.peer())) {
    drop(*worker);
  }
}

ParameterServer::ShardRequests ParameterServer::handle(const Message& message) {
  if (const auto worker = rank_of(message.from)) {
    const bool ended = gone_.contains(*worker) && !taking_.contains(*worker);
    return ended ? ShardRequests{} : handle_or_reject(*worker, message);
  }
  const auto& servers = options_.servers;
  if (std::find(servers.begin(), servers.end(), message.from) == servers.end()) {
    ignore(message.from);
    return {};
  }
  return handle_server(decode_request(message.payload));
}

/// Drops a worker that sends an invalid message; the server continues with the others.
ParameterServer::ShardRequests ParameterServer::handle_or_reject(Rank worker,
                                                                 const Message& message) {
  try {
    const Request request = decode_request(message.payload);
    expect_possible(request);
    handle_worker(worker, request);
    return {};
  } catch (const ProtocolError& error) {
    drop(worker);
    return {.rejected = Rejection{message.from, error.what()}};
  }
}

void ParameterServer::ignore(NodeId sender) {
  if (ignored_.insert(sender).second) {
    log::warn(
        "node {}, which is no worker of this job, sent a server a request; its requests are "
        "dropped",
        sender.value);
  }
}

void ParameterServer::handle_worker(Rank worker, const Request& request) {
  if (taking_.contains(worker) != (request.kind == Request::Kind::model)) {
    throw ProtocolError(
        fmt::format("worker {} asked a server for the model before it had left, or "
                    "for something else afterwards",
                    worker.value));
  }
  try {
    switch (request.kind) {
      case Request::Kind::upload: return upload(worker);
      case Request::Kind::start: return start(worker);
      case Request::Kind::work: return work(worker, request);
      case Request::Kind::rest: return rest(worker);
      case Request::Kind::leave: return leave(worker, request.pull);
      case Request::Kind::model: return send_model(worker);
      default: break;
    }
  } catch (const PeerLost& loss) {
    return lost(loss);
  }
  throw ProtocolError(
      fmt::format("worker {} sent a server a request that only servers send", worker.value));
}

ParameterServer::ShardRequests ParameterServer::handle_server(const Request& request) {
  switch (request.kind) {
    case Request::Kind::verdict:
      answer(consistency_.on_admitted(request.step, request.ranks));
      return {};
    case Request::Kind::collect: return {.state = true};
    case Request::Kind::finish: return {.finish = true};
    default: throw ProtocolError("a server sent another a request that only workers send");
  }
}

void ParameterServer::upload(Rank worker) {
  const std::vector<float> params = connection(worker).receive_model();
  store_.load(params, std::vector<float>(store_.slot(worker).buffers));
  for (const Rank waiting : std::exchange(starting_, {})) {
    answer_start(waiting);
  }
}

void ParameterServer::start(Rank worker) {
  if (store_.has_model()) {
    answer_start(worker);
  } else {
    starting_.insert(worker);
  }
}

void ParameterServer::answer_start(Rank worker) {
  started_.insert(worker);
  store_.read(worker);
  connection(worker).send_model(reply_to(worker), store_.slot(worker).buffers);
}

void ParameterServer::work(Rank worker, const Request& request) {
  if (resting_.erase(worker) > 0) {
    consistency_.on_return(worker);
  }
  connection(worker).begin(request);
  // A worker that was resumed from an older moment than this shard repeats pushes that are in the
  // model already.
  const bool is_new = request.push && request.step > store_.slot(worker).steps;
  if (request.push) {
    connection(worker).receive_push(request);
  }
  if (is_new) {
    store_.record_push(worker, {.step = request.step,
                                .samples = request.samples,
                                .loss_sum = request.loss_sum,
                                .weight = request.weight});
  }
  const std::vector<Rank> released =
      consistency_.on_request(worker, is_new, request.pull || !is_new);
  answer(released);
  if (std::find(released.begin(), released.end(), worker) == released.end()) {
    send_held(worker);
  }
}

void ParameterServer::rest(Rank worker) {
  if (resting_.insert(worker).second) {
    answer(consistency_.on_rest(worker));
  }
}

void ParameterServer::leave(Rank worker, bool takes_model) {
  gone_.insert(worker);
  if (takes_model) {
    taking_.insert(worker);
  }
  connection(worker).close();
  answer(consistency_.on_gone(worker));
}

void ParameterServer::send_model(Rank worker) {
  store_.read(worker);
  connection(worker).send_model(reply_to(worker), store_.mean_buffers());
  taking_.erase(worker);
}

void ParameterServer::drop(Rank worker) {
  taking_.erase(worker);
  if (!gone_.contains(worker)) {
    leave(worker, /*takes_model=*/false);
  }
}

void ParameterServer::send(std::uint32_t shard, const Request& request) {
  world_.transport().post(options_.servers[shard], tags::server_request, encode(request));
}

void ParameterServer::set_clock(Duration training, Duration paused) {
  training_ = training;
  paused_ = paused;
}

void ParameterServer::answer(const std::vector<Rank>& workers) {
  for (const Rank worker : workers) {
    if (!gone_.contains(worker)) {
      answer(worker);
    }
  }
}

void ParameterServer::answer(Rank worker) {
  WorkerSlot& slot = store_.slot(worker);
  if (connection(worker).pushed()) {
    slot.steps = std::max(slot.steps, slot.facts.step);
  }
  connection(worker).answer(reply_to(worker));
}

void ParameterServer::send_held(Rank worker) {
  Reply held = reply_to(worker);
  held.kind = Reply::Kind::held;
  held.ranks = consistency_.waited_for(worker);
  held.ranks.resize(std::min(held.ranks.size(), ranks_named));
  connection(worker).send(held);
}

Reply ParameterServer::reply_to(Rank worker) {
  const WorkerSlot& slot = store_.slot(worker);
  return {.reaches_memory = connection(worker).reaches_memory(),
          .dropped = slot.dropped,
          .version = store_.version(),
          .samples = store_.samples(),
          .loss_sum = store_.loss_sum(),
          .staleness = slot.staleness,
          .steps = slot.steps,
          .training = training_,
          .paused = paused_};
}

std::optional<Rank> ParameterServer::rank_of(NodeId node) const {
  const auto& workers = options_.workers;
  const auto found = std::find(workers.begin(), workers.end(), node);
  if (found == workers.end()) {
    return std::nullopt;
  }
  return Rank{static_cast<std::uint32_t>(found - workers.begin())};
}

}  // namespace syncopate
