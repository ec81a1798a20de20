#include "train/model_keeper.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/errors.hpp"
#include "train/shard_messages.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

constexpr std::size_t checkpoints_kept = 3;

/// The whole of what shards have a contiguous part of each.
std::vector<float> joined(const std::vector<ShardState>& shards,
                          std::vector<float> ShardState::*part) {
  std::vector<float> whole;
  for (const ShardState& shard : shards) {
    whole.insert(whole.end(), (shard.*part).begin(), (shard.*part).end());
  }
  return whole;
}

}  // namespace

ModelKeeper::ModelKeeper(World& world, MemberLink& link, Options options)
    : world_(world),
      link_(link),
      options_(std::move(options)),
      wanted_(world.make_event()),
      kept_(world.make_event()) {
  if (options_.evaluator) {
    snapshots_.emplace(world.transport(), *options_.evaluator);
  }
  task_ = world.spawn("keeper", [this] { run(); });
}

ModelKeeper::~ModelKeeper() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  wanted_->notify();
  task_.reset();
}

void ModelKeeper::keep(Moment moment) {
  wait_while(&ModelKeeper::is_full);
  {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back(std::move(moment));
  }
  wanted_->notify();
}

void ModelKeeper::finish() {
  wait_while(&ModelKeeper::is_busy);
  if (snapshots_) {
    snapshots_->finish();
  }
}

void ModelKeeper::wait_while(bool (ModelKeeper::*condition)() const) {
  for (;;) {
    {
      const std::scoped_lock lock(mutex_);
      if (failure_) {
        std::rethrow_exception(failure_);
      }
      if (!(this->*condition)()) {
        return;
      }
    }
    kept_->wait(no_deadline);
  }
}

void ModelKeeper::run() {
  try {
    keep_for_ever();
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    failure_ = std::current_exception();
  }
  kept_->notify();
}

void ModelKeeper::keep_for_ever() {
  while (auto moment = next()) {
    keep_now(std::move(*moment));
    {
      const std::scoped_lock lock(mutex_);
      working_ = false;
    }
    kept_->notify();
  }
}

std::optional<ModelKeeper::Moment> ModelKeeper::next() {
  for (;;) {
    {
      const std::scoped_lock lock(mutex_);
      if (ending_) {
        return std::nullopt;
      }
      if (!waiting_.empty()) {
        Moment moment = std::move(waiting_.front());
        waiting_.pop_front();
        working_ = true;
        return moment;
      }
    }
    wanted_->wait(no_deadline);
  }
}

void ModelKeeper::keep_now(Moment moment) {
  std::vector<ShardState> shards{std::move(moment.first_shard)};
  for (std::size_t shard = 1; shard < options_.servers.size(); ++shard) {
    const Message message =
        world_.transport().receive(options_.servers[shard], tags::server_state, no_deadline);
    shards.push_back(decode_state(message.payload));
  }
  if (moment.evaluate && snapshots_) {
    snapshots_->send(moment.stamp, joined(shards, &ShardState::params),
                     joined(shards, &ShardState::buffers));
  }
  if (moment.checkpoint) {
    write_down(moment, std::move(shards));
  }
}

void ModelKeeper::write_down(const Moment& moment, std::vector<ShardState> shards) {
  const std::vector<float> params = joined(shards, &ShardState::params);
  const std::vector<float> buffers = joined(shards, &ShardState::buffers);
  ModelView model{.layout = options_.layout, .params = params, .buffers = buffers};
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    model.states[fmt::format("server.{}", shard)] = std::move(shards[shard].rest);
  }
  const auto path = options_.folder.checkpoints() / checkpoint_name(moment.progress.round);
  write_checkpoint(path, moment.progress, options_.network, model);
  prune_checkpoints(options_.folder.checkpoints(), checkpoints_kept);
  wire::Checkpoint written;
  written.set_path(path.string());
  written.set_round(moment.progress.round);
  link_.report(written);
}

}  // namespace syncopate
