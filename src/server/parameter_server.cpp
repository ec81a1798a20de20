#include "server/parameter_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"
#include "codec/frame.hpp"
#include "transport/shared_memory.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// Names enough to say whom an answer waits for.
constexpr std::size_t ranks_named = 8;

}  // namespace

ParameterServer::ParameterServer(World& world, ShardStore& store, Consistency& consistency,
                                 Options options)
    : world_(world),
      store_(store),
      consistency_(consistency),
      options_(std::move(options)),
      lines_(options_.workers.size()),
      codec_(options_.compression ? make_codec(options_.compression) : nullptr) {
  for (std::uint32_t rank = 0; rank < lines_.size(); ++rank) {
    expect_push(Rank{rank});
  }
}

ParameterServer::Asked ParameterServer::serve(TimePoint deadline) {
  look_for_requests(deadline);
  if (requests_.empty()) {
    return {};
  }
  queue_length_.add(requests_.size());
  const TimePoint begun = world_.now();
  const Message message = std::move(requests_.front());
  requests_.pop_front();
  const Asked asked = handle(message);
  busy_ += world_.now() - begun;
  return asked;
}

/// Takes in all that has come, so that the length of the queue is known.
void ParameterServer::look_for_requests(TimePoint deadline) {
  try {
    for (;;) {
      const TimePoint until = requests_.empty() ? deadline : world_.now();
      requests_.push_back(world_.transport().receive(std::nullopt, tags::server_request, until));
    }
  } catch (const TimedOut&) {
    return;  // there is no more
  } catch (const PeerLost& loss) {
    lost(loss);
  }
}

/// Another server that is gone has done its work, or else the coordinator ends the job.
void ParameterServer::lost(const PeerLost& loss) {
  if (const auto worker = rank_of(loss.peer())) {
    drop(*worker);
  }
}

ParameterServer::Asked ParameterServer::handle(const Message& message) {
  const Request request = decode_request(message.payload);
  if (const auto worker = rank_of(message.from)) {
    if (!gone_.contains(*worker)) {
      handle_worker(*worker, request);
    }
    return {};
  }
  return handle_server(request);
}

void ParameterServer::handle_worker(Rank worker, const Request& request) {
  try {
    switch (request.kind) {
      case Request::Kind::upload: return upload(worker);
      case Request::Kind::start: return start(worker);
      case Request::Kind::work: return work(worker, request);
      case Request::Kind::leave: return leave(worker);
      default: break;
    }
  } catch (const PeerLost& loss) {
    return lost(loss);
  }
  throw ProtocolError(
      fmt::format("worker {} asks a server for what only servers ask", worker.value));
}

ParameterServer::Asked ParameterServer::handle_server(const Request& request) {
  switch (request.kind) {
    case Request::Kind::verdict: answer(consistency_.told(request.step, request.ranks)); return {};
    case Request::Kind::collect: return {.state = true};
    case Request::Kind::finish: return {.finish = true};
    default: throw ProtocolError("a server asks another for what only workers ask");
  }
}

void ParameterServer::upload(Rank worker) {
  Desk& desk = store_.desk(worker);
  std::vector<float> params(desk.own_in.size());
  receive_into(world_.transport(), options_.workers[worker.value], tags::server_values,
               std::as_writable_bytes(std::span(params)), world_.now() + options_.wait_limit);
  receive_buffers(worker);
  store_.load(params, std::vector<float>(desk.buffers));
  for (const Rank starter : std::exchange(starters_, {})) {
    answer_start(starter);
  }
}

void ParameterServer::start(Rank worker) {
  if (store_.has_model()) {
    answer_start(worker);
  } else {
    starters_.insert(worker);
  }
}

void ParameterServer::answer_start(Rank worker) {
  started_.insert(worker);
  store_.read(worker);
  Reply reply = reply_to(worker);
  const std::span<const float> params = store_.desk(worker).own_out;
  if (codec_) {
    lines_[worker.value].shadow.reset(params);
  }
  send_values(worker, std::as_bytes(params));
  const auto buffers = std::as_bytes(std::span(store_.desk(worker).buffers));
  world_.transport().post(options_.workers[worker.value], tags::server_reply, encode(reply));
  world_.transport().post(options_.workers[worker.value], tags::server_buffers,
                          {buffers.begin(), buffers.end()});
}

void ParameterServer::work(Rank worker, const Request& request) {
  Line& line = lines_[worker.value];
  line.pushed = request.push;
  line.pulls = request.pull;
  borrow(worker, request);
  if (request.push) {
    take_push(worker, request);
  }
  // A worker that was resumed from an older moment than this shard pushes again what is in already.
  const bool is_new = request.push && request.step > store_.desk(worker).steps;
  const std::vector<Rank> released = consistency_.asked(worker, is_new, request.pull || !is_new);
  answer(released);
  if (std::find(released.begin(), released.end(), worker) == released.end()) {
    say_held(worker);
  }
}

void ParameterServer::take_push(Rank worker, const Request& request) {
  Desk& desk = store_.desk(worker);
  if (!request.push_place) {
    Line& line = lines_[worker.value];
    line.arriving->wait(world_.now() + options_.wait_limit);
    if (codec_) {
      decode_frame(*codec_, line.frame, desk.own_in);
    }
  }
  receive_buffers(worker);
  if (request.step > desk.steps) {
    store_.take_facts(worker, {.step = request.step,
                               .samples = request.samples,
                               .loss_sum = request.loss_sum,
                               .weight = request.weight});
  }
}

/// Until it is answered the worker waits, and what it lends stays as it is.
void ParameterServer::borrow(Rank worker, const Request& request) {
  Line& line = lines_[worker.value];
  Desk& desk = store_.desk(worker);
  line.wanted = {};
  if (request.push_place) {
    desk.in = memory_at(worker, *request.push_place);
  }
  if (request.pull_place) {
    line.wanted = memory_at(worker, *request.pull_place);
    desk.out = store_.keeps_answers() ? desk.out : line.wanted;
  }
}

void ParameterServer::give_back(Rank worker) {
  Line& line = lines_[worker.value];
  Desk& desk = store_.desk(worker);
  if (line.pulls && !line.wanted.empty()) {
    if (desk.out.data() != line.wanted.data()) {
      std::copy(desk.out.begin(), desk.out.end(), line.wanted.begin());
    }
    world_.transport().shared_memory()->count_zero_copy(line.wanted.size_bytes());
  }
  desk.in = desk.own_in;
  desk.out = desk.own_out;
}

std::span<float> ParameterServer::memory_at(Rank worker, std::uint64_t place) {
  if (!reaches(worker)) {
    throw ProtocolError(
        fmt::format("worker {} hands over memory that is out of reach", worker.value));
  }
  const std::size_t values = store_.params().size();
  const std::span<std::byte> bytes = world_.transport().shared_memory()->at(
      options_.workers[worker.value], place, values * sizeof(float));
  return {reinterpret_cast<float*>(bytes.data()), values};
}

bool ParameterServer::reaches(Rank worker) {
  SharedMemory* const memory = world_.transport().shared_memory();
  return memory != nullptr && memory->reaches(options_.workers[worker.value]);
}

void ParameterServer::leave(Rank worker) {
  gone_.insert(worker);
  lines_[worker.value].arriving.reset();
  answer(consistency_.gone(worker));
}

void ParameterServer::drop(Rank worker) {
  if (!gone_.contains(worker)) {
    leave(worker);
  }
}

void ParameterServer::tell(std::uint32_t shard, const Request& request) {
  world_.transport().post(options_.servers[shard], tags::server_request, encode(request));
}

void ParameterServer::show_clock(Duration training, Duration paused) {
  training_ = training;
  paused_ = paused;
}

/// A receive that waits before its message comes saves a copy.
void ParameterServer::expect_push(Rank worker) {
  Line& line = lines_[worker.value];
  const std::span<float> values = store_.desk(worker).own_in;
  line.frame.resize(codec_ ? frame_bytes(*codec_, values.size()) : 0);
  line.arriving = world_.transport().start_receive(
      options_.workers[worker.value], tags::server_push,
      codec_ ? std::span(line.frame) : std::as_writable_bytes(values));
}

void ParameterServer::receive_buffers(Rank worker) {
  std::vector<float>& buffers = store_.desk(worker).buffers;
  if (!buffers.empty()) {
    receive_into(world_.transport(), options_.workers[worker.value], tags::server_buffers,
                 std::as_writable_bytes(std::span(buffers)), world_.now() + options_.wait_limit);
  }
}

void ParameterServer::answer(const std::vector<Rank>& workers) {
  for (const Rank worker : workers) {
    if (!gone_.contains(worker)) {
      answer(worker);
    }
  }
}

void ParameterServer::answer(Rank worker) {
  Line& line = lines_[worker.value];
  Desk& desk = store_.desk(worker);
  const bool sends = line.pulls && line.wanted.empty();
  if (line.pushed) {
    desk.steps = std::max(desk.steps, desk.facts.step);
    if (desk.in.data() == desk.own_in.data()) {
      expect_push(worker);
    }
  }
  give_back(worker);
  world_.transport().post(options_.workers[worker.value], tags::server_reply,
                          encode(reply_to(worker)));
  if (sends) {
    send_out(worker);
  }
}

void ParameterServer::say_held(Rank worker) {
  Reply held = reply_to(worker);
  held.kind = Reply::Kind::held;
  held.ranks = consistency_.waited_for(worker);
  held.ranks.resize(std::min(held.ranks.size(), ranks_named));
  world_.transport().post(options_.workers[worker.value], tags::server_reply, encode(held));
}

void ParameterServer::send_out(Rank worker) {
  const std::span<float> values = store_.desk(worker).own_out;
  send_values(worker,
              codec_ ? lines_[worker.value].shadow.bring(*codec_, values) : std::as_bytes(values));
}

void ParameterServer::send_values(Rank worker, std::span<const std::byte> values) {
  // What was sent before has arrived, since the worker asks again only then.
  auto& leaving = lines_[worker.value].leaving;
  leaving.clear();
  leaving.push_back(
      world_.transport().start_send(options_.workers[worker.value], tags::server_values, values));
}

Reply ParameterServer::reply_to(Rank worker) {
  const Desk& desk = store_.desk(worker);
  return {.reaches_memory = reaches(worker),
          .dropped = desk.dropped,
          .version = store_.version(),
          .samples = store_.samples(),
          .loss_sum = store_.loss_sum(),
          .staleness = desk.staleness,
          .steps = desk.steps,
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
