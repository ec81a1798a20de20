#include "train/loader.hpp"

#include <algorithm>
#include <utility>

namespace syncopate {
namespace {

template <class Value>
void append_rows(std::vector<Value>& into, const std::vector<Value>& from, std::size_t first,
                 std::size_t count) {
  const auto begin = from.begin() + static_cast<std::ptrdiff_t>(first);
  into.insert(into.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
}

std::optional<std::size_t> take_first(std::deque<std::size_t>& queue) {
  if (queue.empty()) {
    return std::nullopt;
  }
  const std::size_t batch = queue.front();
  queue.pop_front();
  return batch;
}

}  // namespace

Loader::Loader(World& world, Options options)
    : world_(world),
      options_(std::move(options)),
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
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  became_empty_->notify();
}

const Batch& Loader::next() {
  if (in_use_) {
    put_empty(*std::exchange(in_use_, std::nullopt));
  }
  in_use_ = wait_for_ready();
  return batches_[*in_use_];
}

std::size_t Loader::wait_for_ready() {
  while (true) {
    if (const auto batch = take_ready()) {
      return *batch;
    }
    rethrow_failure();
    became_ready_->wait(no_deadline);
  }
}

void Loader::run() {
  try {
    prepare_batches();
  } catch (const std::exception&) {
    const MutexLock lock(mutex_);
    failure_ = std::current_exception();
  }
  became_ready_->notify();
}

void Loader::prepare_batches() {
  FeedPosition position = options_.start;
  while (!ending()) {
    const auto batch = take_empty();
    if (!batch) {
      became_empty_->wait(no_deadline);
      continue;
    }
    const TimePoint begun = world_.now();
    fill(position, batches_[*batch]);
    if (options_.prepared) {
      options_.prepared(begun, world_.now());
    }
    position = options_.feed.next(position);
    put_ready(*batch);
  }
}

void Loader::fill(FeedPosition position, Batch& batch) {
  const Dataset& dataset = options_.dataset;
  const auto samples = options_.feed.batch(position);
  if (options_.augmentation == Augmentation::none) {
    gather(dataset, dataset.train, samples, batch);
    return;
  }
  const Epoch pass = options_.feed.pass_of(position);
  const auto change_of = [&](std::uint32_t sample) {
    return draw_change(options_.augmentation, options_.seed, pass, sample);
  };
  gather(dataset, dataset.train, samples, change_of, batch);
}

std::optional<std::size_t> Loader::take_empty() {
  const MutexLock lock(mutex_);
  return take_first(empty_);
}

void Loader::put_empty(std::size_t batch) {
  {
    const MutexLock lock(mutex_);
    empty_.push_back(batch);
  }
  became_empty_->notify();
}

std::optional<std::size_t> Loader::take_ready() {
  const MutexLock lock(mutex_);
  return take_first(ready_);
}

void Loader::put_ready(std::size_t batch) {
  {
    const MutexLock lock(mutex_);
    ready_.push_back(batch);
  }
  became_ready_->notify();
}

bool Loader::ending() {
  const MutexLock lock(mutex_);
  return ending_;
}

void Loader::rethrow_failure() {
  const MutexLock lock(mutex_);
  if (failure_) {
    std::rethrow_exception(failure_);
  }
}

const Batch& MicroBatcher::next(std::uint32_t samples) {
  if (left() == 0) {
    begin_next();
  }
  const bool untouched = taken_ == 0;
  if (untouched && (samples == 0 || samples == whole_->samples())) {
    taken_ = whole_->samples();
    return *whole_;
  }
  part_.features.clear();
  part_.labels.clear();
  part_.weights.clear();
  const std::size_t rest = left() < whole_->samples() / 2 ? whole_->samples() : left();
  const std::size_t wanted = samples == 0 ? rest : samples;
  append(std::min(wanted, left()));
  while (part_.samples() < wanted) {
    begin_next();
    append(std::min(wanted - part_.samples(), left()));
  }
  return part_;
}

DataPosition MicroBatcher::position() const {
  if (!whole_) {
    return {.batch = batch_, .taken = skipped_};
  }
  return left() > 0 ? DataPosition{.batch = batch_, .taken = taken_}
                    : DataPosition{.batch = batch_ + 1};
}

void MicroBatcher::begin_next() {
  do {
    batch_ += whole_ ? 1 : 0;
    whole_ = &loader_.next();
  } while (whole_->samples() == 0 && empty_ == Empty::skipped);
  taken_ = std::min<std::size_t>(std::exchange(skipped_, 0), whole_->samples());
}

void MicroBatcher::append(std::size_t samples) {
  const std::size_t values = whole_->shape.values();
  part_.shape = whole_->shape;
  append_rows(part_.features, whole_->features, taken_ * values, samples * values);
  append_rows(part_.labels, whole_->labels, taken_, samples);
  if (!whole_->weights.empty()) {
    append_rows(part_.weights, whole_->weights, taken_, samples);
  }
  taken_ += samples;
}

}  // namespace syncopate
