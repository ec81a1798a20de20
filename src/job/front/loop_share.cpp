#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/errors.hpp"
#include "job/front/divided_samples.hpp"
#include "job/front/leased_samples.hpp"
#include "job/front/loop_member.hpp"
#include "job/launch/loop_config.hpp"
#include "job/program/loop_site.hpp"
#include "spec/job_plan.hpp"

namespace syncopate {
namespace {

/// Of a share: no job comes to one behind it, and the steps of all before it are a number.
constexpr std::size_t last_epoch = std::numeric_limits<std::uint32_t>::max();

/// True if steps are parts of a round, as large as the pacer wants.
bool has_parts_of_rounds(const JobPlan& plan, Division division) {
  return division == Division::by_speed && traits_of(plan.config()).divides_batches;
}

}  // namespace

std::shared_ptr<LoopJob::Member> to_member(const std::weak_ptr<LoopJob::Member>& job) {
  auto member = job.lock();
  if (!member) {
    throw ConfigError("the program has left the job, whose coordinator leases its samples");
  }
  if (!member->is_of_this_process()) {
    throw ConfigError(
        "a forked process cannot ask for the samples that the coordinator leases to the process "
        "that forked it; ask before fork, or choose data-order fixed and a batch_size");
  }
  return member;
}

std::shared_ptr<LoopShare::Order> LoopJob::Member::share(std::uint64_t samples,
                                                         std::uint32_t batch_size,
                                                         Division division) {
  if (division == Division::by_speed) {
    expect_global_batch(samples, batch_size);
  }
  GivenOptions options = given_;
  set_batch(options, batch_size, division);
  const JobPlan plan(loop_config(options, size()));
  const bool balances = traits_of(plan.config()).balances;
  const std::vector<std::uint32_t> batches = plan.batch_sizes();
  const bool is_round = has_parts_of_rounds(plan, division);
  const std::uint32_t own = is_round ? batch_size / size() : batches[rank()];
  const ShareSizes sizes{.samples = samples,
                         .batch_size = batch_size,
                         .step_size = is_alone() ? own : samples_of_loop_step(plan.config(), own),
                         .division = division};
  const bool follows_speeds = is_round || balances;
  if (balances) {
    want_samples(0, batches);
  }
  auto order = std::make_shared<LoopShare::Order>(
      source(plan, sizes), sizes.step_size,
      follows_speeds ? next_samples_ : std::shared_ptr<NextSamples>());
  shares_.push_back({.order = order, .sizes = sizes});
  return order;
}

/// Errors: ConfigError.
void LoopJob::Member::expect_global_batch(std::uint64_t samples, std::uint32_t global_batch) const {
  const std::uint64_t least = std::uint64_t{least_part_of_batch} * size();
  if (global_batch < least || global_batch > samples) {
    throw ConfigError(fmt::format(
        "a global batch has at least {} samples for each of {} workers, {} in all, and at most the "
        "{} samples of the dataset; found {}",
        least_part_of_batch, size(), least, samples, global_batch));
  }
  if (share_by_speed() != nullptr) {
    throw ConfigError(
        "a job trains on one dataset with a global batch, and has one already: pass batch_size for "
        "other datasets, such as that of a test");
  }
}

const LoopJob::Member::Share* LoopJob::Member::share_by_speed() const {
  const auto found = std::ranges::find_if(shares_, [](const Share& share) {
    return share.sizes.division == Division::by_speed && !share.order.expired();
  });
  return found == shares_.end() ? nullptr : &*found;
}

std::optional<ShareSizes> LoopJob::Member::sizes() const {
  if (const Share* const trained = share_by_speed()) {
    return trained->sizes;
  }
  if (shares_.empty()) {
    return std::nullopt;
  }
  const auto in_use =
      std::ranges::find_if(shares_, [](const Share& share) { return !share.order.expired(); });
  return in_use == shares_.end() ? shares_.back().sizes : in_use->sizes;
}

std::unique_ptr<SampleSource> LoopJob::Member::source(const JobPlan& plan,
                                                      const ShareSizes& sizes) {
  const auto number = static_cast<std::uint32_t>(shares_.size());
  const Dataset dataset = samples_without_values(sizes.samples);
  const ProgramNode::SharedDataset shared{.number = number, .samples = sizes.samples};
  const DataOrder order = data_order_in(given_, plan.config());
  Partition whole(dataset.train.labels, {.seed = plan.config().seed, .shares = {1}});
  if (traits_of(plan.config()).balances) {
    const auto given = given_.find(std::string(data_order_option.name));
    if (given != given_.end() && given->second == "leased") {
      throw ConfigError(
          "under ssgd the steps of a global batch are the same at any speed, and no samples are "
          "leased: leave out --data-order leased, or pass batch_size");
    }
    return std::make_unique<DividedSamples>(
        weak_from_this(), std::move(whole),
        DividedSamples::Options{.dataset = shared, .global_batch = sizes.batch_size});
  }
  const bool is_round = has_parts_of_rounds(plan, sizes.division);
  if (is_round && order == DataOrder::fixed) {
    throw ConfigError(
        "the steps of a global batch follow the speeds of the devices, and a fixed data order has "
        "steps of fixed sizes: leave out --data-order fixed, or pass batch_size");
  }
  if (order == DataOrder::fixed) {
    return std::make_unique<FixedSamples>(plan.feed(dataset.train, Rank{rank()}));
  }
  return std::make_unique<LeasedSamples>(
      weak_from_this(), std::move(whole),
      LeasedSamples::Options{
          .dataset = shared, .step_size = sizes.step_size, .sizes_change = is_round});
}

LoopShare::LoopShare(std::shared_ptr<Order> order) : order_(std::move(order)) {}

std::size_t LoopShare::step_size() const {
  return order_->step_size();
}

std::vector<std::size_t> LoopShare::next() {
  return order_->next();
}

void LoopShare::next_epoch() {
  order_->next_epoch();
}

void LoopShare::resume(std::size_t epoch, std::size_t step) {
  order_->resume(epoch, step);
}

LoopShare::Length LoopShare::length() const {
  return order_->length();
}

std::size_t LoopShare::epoch() const {
  return order_->epoch();
}

std::size_t LoopShare::step() const {
  return order_->step();
}

std::span<const std::uint32_t> FixedSamples::next(Epoch epoch) {
  if (position_.epoch != epoch) {
    position_ = {.epoch = epoch};
  }
  while (position_.step < feed_.steps_per_epoch()) {
    const auto batch = feed_.batch(position_);
    ++position_.step;
    if (!batch.empty()) {
      return batch;
    }
  }
  return {};
}

std::optional<std::vector<std::size_t>> FixedSamples::run_sizes(Epoch epoch) {
  // The loop may be within a batch of `feed_`, which lasts until that is asked for another.
  BatchFeed feed = feed_;
  std::vector<std::size_t> sizes;
  for (std::uint64_t step = 0; step < feed.steps_per_epoch(); ++step) {
    sizes.push_back(feed.batch({.epoch = epoch, .step = step}).size());
  }
  return sizes;
}

bool FixedSamples::restart(Epoch epoch) {
  position_ = {.epoch = epoch};
  return true;
}

std::size_t LoopShare::Order::step_size() const {
  const std::size_t wanted = next_samples_ ? next_samples_->load() : 0;
  return wanted > 0 ? wanted : step_size_;
}

/// Those of the run under way. Where sizes change, a step goes on with the next run, and leaves no
/// single sample, of which BatchNorm takes no step.
std::vector<std::size_t> LoopShare::Order::take(std::size_t samples) {
  std::vector<std::size_t> taken;
  const auto take_left = [&] {
    const std::size_t wanted = samples - taken.size();
    const bool leaves_one = next_samples_ && left_.size() == wanted + 1;
    const auto more = left_.first(std::min(wanted + (leaves_one ? 1 : 0), left_.size()));
    taken.insert(taken.end(), more.begin(), more.end());
    left_ = left_.subspan(more.size());
  };
  take_left();
  while (next_samples_ && taken.size() < samples) {
    left_ = source_->next({epoch_});
    if (left_.empty()) {
      break;
    }
    take_left();
  }
  return taken;
}

std::vector<std::size_t> LoopShare::Order::next() {
  source_->step_ended();
  resumed_ = false;
  if (ended_) {
    next_epoch();
  }
  if (left_.empty()) {
    left_ = source_->next({epoch_});
  }
  if (left_.empty()) {
    ended_ = true;
    return {};
  }
  std::vector<std::size_t> samples = take(source_->steps_of_epoch() ? left_.size() : step_size());
  ++step_;
  source_->step_begins(samples.size(), left_.size());
  return samples;
}

LoopShare::Length LoopShare::Order::length() const {
  const std::optional<Length> length = length_of(epoch_);
  if (!length) {
    throw ConfigError(
        "an epoch of leased samples has no length, because faster workers take more of them: count "
        "steps as they come, or choose data-order fixed");
  }
  return *length;
}

/// None: samples are leased.
std::optional<LoopShare::Length> LoopShare::Order::length_of(std::size_t epoch) const {
  if (const auto steps = source_->steps_of_epoch()) {
    return Length{.steps = *steps, .samples = 0};
  }
  const auto runs = source_->run_sizes({epoch});
  if (!runs) {
    return std::nullopt;
  }
  Length length;
  for (const std::size_t samples : *runs) {
    length.steps += (samples + step_size_ - 1) / step_size_;
    length.samples += samples;
  }
  return length;
}

void LoopShare::Order::next_epoch() {
  if (resumed_ || (step_ == 0 && !ended_)) {
    return;
  }
  ++epoch_;
  step_ = 0;
  left_ = {};
  ended_ = false;
}

/// Errors: ConfigError, for a place that no job has come to. Of leased samples steps do not matter.
void LoopShare::Order::expect_place(std::size_t epoch, std::size_t step) const {
  if (epoch > last_epoch) {
    throw ConfigError(
        fmt::format("a share goes on in an epoch from 0 to {}, found epoch {}; pass the epoch of "
                    "the earlier job",
                    last_epoch, epoch));
  }
  const std::optional<Length> length = step > 0 ? length_of(epoch) : std::nullopt;
  if (length && step > length->steps) {
    throw ConfigError(
        fmt::format("a share goes on in epoch {} behind 0 to {} steps, as many as this worker has "
                    "there, found {}; pass the steps that the earlier job had taken in this epoch",
                    epoch, length->steps, step));
  }
}

void LoopShare::Order::resume(std::size_t epoch, std::size_t step) {
  expect_place(epoch, step);
  source_->step_ended();
  left_ = {};
  ended_ = false;
  epoch_ = epoch;
  step_ = 0;
  if (source_->restart({epoch})) {
    while (step_ < step && !next().empty()) {
    }
  }
  resumed_ = true;
}

}  // namespace syncopate
