#include "train/loader.hpp"

#include <algorithm>
#include <utility>

namespace syncopate {

Loader::Loader(World& world, Options options)
    : options_(std::move(options)),
      batches_(std::max<std::size_t>(options_.ahead, 2) + 1),
      became_empty_(world.make_event()),
      became_ready_(world.make_event()) {
  for (std::size_t batch = 0; batch < batches_.size(); ++batch) {
    empty_.push_back(batch);
  }
  task_ = world.spawn("loader", [this] { run(); });
}

Loader::~Loader() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  became_empty_->notify();
}

const Batch& Loader::next() {
  if (lent_) {
    put(empty_, *std::exchange(lent_, std::nullopt), *became_empty_);
  }
  lent_ = wait_for_ready();
  return batches_[*lent_];
}

std::size_t Loader::wait_for_ready() {
  while (true) {
    if (const auto batch = take(ready_)) {
      return *batch;
    }
    rethrow_failure();
    became_ready_->wait(no_deadline);
  }
}

void Loader::run() {
  try {
    prepare_for_ever();
  } catch (const std::exception&) {
    const std::scoped_lock lock(mutex_);
    failure_ = std::current_exception();
  }
  became_ready_->notify();
}

void Loader::prepare_for_ever() {
  auto& [dataset, feed, position, ahead] = options_;
  while (!ending()) {
    const auto batch = take(empty_);
    if (!batch) {
      became_empty_->wait(no_deadline);
      continue;
    }
    gather(dataset, dataset.train, feed.batch(position), batches_[*batch]);
    position = feed.next(position);
    put(ready_, *batch, *became_ready_);
  }
}

std::optional<std::size_t> Loader::take(Queue& queue) {
  const std::scoped_lock lock(mutex_);
  if (queue.empty()) {
    return std::nullopt;
  }
  const std::size_t batch = queue.front();
  queue.pop_front();
  return batch;
}

void Loader::put(Queue& queue, std::size_t batch, Event& changed) {
  {
    const std::scoped_lock lock(mutex_);
    queue.push_back(batch);
  }
  changed.notify();
}

bool Loader::ending() {
  const std::scoped_lock lock(mutex_);
  return ending_;
}

void Loader::rethrow_failure() {
  const std::scoped_lock lock(mutex_);
  if (failure_) {
    std::rethrow_exception(failure_);
  }
}

}  // namespace syncopate
