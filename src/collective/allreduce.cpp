#include "collective/allreduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "base/errors.hpp"
#include "codec/frame.hpp"
#include "collective/binary_blocks.hpp"
#include "collective/butterfly.hpp"
#include "collective/links.hpp"
#include "collective/ring.hpp"
#include "collective/tree.hpp"
#include "collective/two_level.hpp"
#include "kernels/reduce.hpp"
#include "transport/transport.hpp"

namespace syncopate {
namespace {

/// Of a data centre's network, and of a processor that adds from memory.
constexpr Links usual_links{.within = {.latency = 20e-6, .seconds_per_byte = 1 / 5e9},
                            .between = {.latency = 50e-6, .seconds_per_byte = 1 / 1.25e9},
                            .seconds_per_added_byte = 1 / 5e9};
/// Of sums in shared memory: two meetings, of tasks that have to be woken on processors that are busy; and a pass
/// over memory to read, and one to write.
constexpr SumCost usual_in_memory{.fixed = 200e-6, .seconds_per_byte = 1 / 10e9};

/// To encode and decode, with error feedback, on a core.
constexpr double usual_seconds_per_coded_byte = 1 / 1.5e9;

/// Enough to tell a bandwidth, little enough to be over soon.
constexpr std::size_t longest_probe = 256 * 1024;

bool spans_hosts(const Group& group) {
  const std::size_t hosts = first_ranks(group.hosts()).size();
  return hosts > 1 && hosts < group.size();
}

std::string in_words(const Link& link) {
  const std::string latency = fmt::format("{:.0f} µs", link.latency * 1e6);
  return link.seconds_per_byte > 0
             ? fmt::format("{} and {:.2g} GB/s", latency, 1e-9 / link.seconds_per_byte)
             : latency;
}

std::string in_words(const Group& group, const Links& links) {
  if (spans_hosts(group)) {
    return fmt::format("links of {} on a host, {} between hosts", in_words(links.within),
                       in_words(links.between));
  }
  const bool on_one_host = first_ranks(group.hosts()).size() == 1;
  return "links of " + in_words(on_one_host ? links.within : links.between);
}

/// All ranks of the job but this one: which of them are late, the library below the transport does not say.
std::vector<Rank> others_of(const Group& group) {
  std::vector<Rank> others;
  for (std::uint32_t rank = 0; rank < group.size(); ++rank) {
    if (Rank{rank} != group.rank()) {
      others.push_back(group.rank_in_job(Rank{rank}));
    }
  }
  return others;
}

/// That of the library below the transport.
NativeAllreduce& native_of(Group& group) {
  NativeAllreduce* const native = group.transport().native_allreduce();
  if (native == nullptr) {
    throw ConfigError(
        "expected transport mpi, to add up by mpi; found another one: choose another way to add "
        "up, or auto");
  }
  if (native->size() != group.size()) {
    throw ConfigError(
        fmt::format("to add up by mpi takes all {} ranks that MPI knows to do so; found {}: choose "
                    "another way to add up, or auto",
                    native->size(), group.size()));
  }
  return *native;
}

void native_allreduce(Group& group, std::span<float> values, float factor) {
  scale(values, factor);
  NativeAllreduce& native = native_of(group);
  group.await([&](TimePoint until) { native.allreduce(values, until); },
              {.operation = "allreduce", .missing = [&] { return others_of(group); }});
}

/// The one place where the name of an algorithm becomes its call. `among_firsts`: for the upper of two levels.
void add_up(Group& group, std::span<float> values, float factor, Algorithm algorithm,
            const std::function<void(Group&, std::span<float>)>& among_firsts = {}) {
  switch (algorithm) {
    case Algorithm::ring: ring_allreduce(group, values, factor); return;
    case Algorithm::butterfly: butterfly_allreduce(group, values, factor); return;
    case Algorithm::binary_blocks: binary_blocks_allreduce(group, values, factor); return;
    case Algorithm::tree: tree_allreduce(group, values, factor); return;
    case Algorithm::two_level: two_level_allreduce(group, values, factor, among_firsts); return;
    case Algorithm::mpi: native_allreduce(group, values, factor); return;
    case Algorithm::shm:
    case Algorithm::automatic: break;
  }
  throw InternalError("an allreduce whose algorithm was not picked");
}

}  // namespace

Allreduce::Allreduce(Group& group, const Options& options) : group_(group), options_(options) {
  if (options.compression) {
    using Commits = CompressedSums::Commits;
    compressed_.emplace(options.compression, group.losses() ? Commits::when_told : Commits::at_once,
                        options.momentum);
  }
}

void Allreduce::sum(std::span<float> values) {
  run(values, 1);
}

void Allreduce::weighted_mean(std::span<float> values, double weight, double total_weight) {
  if (group_.size() == 1) {
    return;
  }
  if (weight == 0) {
    std::fill(values.begin(), values.end(), 0.0F);
  }
  run(values, static_cast<float>(weight == 0 ? 1 : weight / total_weight));
}

void Allreduce::compressed_mean(std::span<float> values, std::size_t first, double weight,
                                double total_weight) {
  if (!compresses() || values.empty()) {
    weighted_mean(values, weight, total_weight);
    return;
  }
  if (weight == 0) {
    std::fill(values.begin(), values.end(), 0.0F);
  }
  const auto factor = static_cast<float>(weight == 0 ? 1 : weight / total_weight);
  if (options_.compress_remote && spans_hosts(group_)) {
    two_level_allreduce(group_, values, factor, [&](Group& firsts, std::span<float> slice) {
      const auto place = static_cast<std::size_t>(slice.data() - values.data());
      compressed_->run(firsts, slice, 1, first + place);
    });
  } else {
    compressed_->run(group_, values, factor, first);
  }
  const std::scoped_lock lock(mutex_);
  compression_stats_ = compressed_->stats();
}

void Allreduce::commit() {
  if (compressed_) {
    compressed_->commit();
  }
}

bool Allreduce::compresses() const {
  const bool is_remote = first_ranks(group_.hosts()).size() > 1;
  return compressed_ && group_.size() > 1 && (is_remote || !options_.compress_remote);
}

CompressionStats Allreduce::compression() const {
  const std::scoped_lock lock(mutex_);
  return compression_stats_;
}

void Allreduce::forget_links() {
  prices_.reset();
}

void Allreduce::prepare(std::size_t values) {
  if (!compresses() || values == 0) {
    pick(values);
    return;
  }
  const std::size_t bytes = values * sizeof(float);
  measure(bytes);
  const bool by_hosts = options_.compress_remote && spans_hosts(group_);
  describe(to_string(options_.compression) + (by_hosts ? " between hosts" : ""), bytes,
           in_words(group_, links_));
}

void Allreduce::run(std::span<float> values, float factor) {
  if (group_.size() == 1 || values.empty()) {
    scale(values, factor);
    return;
  }
  const Algorithm algorithm = pick(values.size());
  if (algorithm == Algorithm::shm) {
    shared_->run(values, factor);
    return;
  }
  add_up(group_, values, factor, algorithm, [this](Group& firsts, auto slice) {
    if (firsts.size() > 1) {
      add_up(firsts, slice, 1, cheapest_among_firsts(slice.size_bytes()));
    }
  });
}

Algorithm Allreduce::pick(std::size_t values) {
  const std::size_t bytes = values * sizeof(float);
  Algorithm picked = options_.algorithm;
  if (group_.size() == 1 || values == 0) {
    return picked;
  }
  if (shares_memory()) {
    picked = Algorithm::shm;
  } else if (picked == Algorithm::automatic || picked == Algorithm::two_level) {
    measure(bytes);
  }
  if (picked == Algorithm::automatic) {
    picked = cheapest(bytes);
  } else if (picked == Algorithm::butterfly && !std::has_single_bit(group_.size())) {
    picked = Algorithm::binary_blocks;
  }
  describe(picked, bytes);
  return picked;
}

SumCost Allreduce::cost(std::size_t values) {
  if (compresses()) {
    prepare(values);
    return cost_compressed(values * sizeof(float));
  }
  const Algorithm algorithm = pick(values);
  if (group_.size() == 1 || algorithm == Algorithm::shm || algorithm == Algorithm::mpi) {
    return usual_in_memory;
  }
  const bool chose = options_.algorithm == Algorithm::automatic;
  const Prices prices = chose ? *prices_ : Prices(group_.hosts(), usual_links);
  const auto bytes = static_cast<double>(values * sizeof(float));
  const double fixed = *prices.of(algorithm, 0);
  return {.fixed = fixed, .seconds_per_byte = (*prices.of(algorithm, bytes) - fixed) / bytes};
}

SumCost Allreduce::cost_compressed(std::size_t bytes) {
  const bool on_one_host = first_ranks(group_.hosts()).size() == 1;
  const Link& link = on_one_host ? links_.within : links_.between;
  const auto codec = make_codec(options_.compression);
  const double smaller =
      static_cast<double>(frame_bytes(*codec, bytes / sizeof(float))) / static_cast<double>(bytes);
  const double share = 2.0 * (group_.size() - 1) / group_.size();
  return {
      .fixed = 2 * link.latency,
      .seconds_per_byte = share * smaller * link.seconds_per_byte + usual_seconds_per_coded_byte};
}

/// Whether sums are made in shared memory: what is asked for, or what nothing else comes near. All ranks
/// come to the same answer.
bool Allreduce::shares_memory() {
  const bool wanted =
      options_.algorithm == Algorithm::shm ||
      (options_.algorithm == Algorithm::automatic && first_ranks(group_.hosts()).size() == 1);
  if (wanted && sharing_since_ != group_.generation()) {
    sharing_since_ = group_.generation();
    shared_ = SharedAllreduce::make(group_);
  }
  if (!shared_ && options_.algorithm == Algorithm::shm) {
    throw ConfigError(
        "expected all workers to share memory, to add up by shm, which takes one host, one user "
        "and transport shm; found some that do not: choose another way to add up, or auto");
  }
  return wanted && shared_ != nullptr;
}

/// Who has measured is the same on all ranks: where it broke off for some, all are of another generation by
/// the time they try again.
void Allreduce::measure(std::size_t bytes) {
  const std::size_t wanted = std::min(bytes, longest_probe);
  if (prices_ && measured_in_ == group_.generation() && wanted <= 2 * measured_with_) {
    return;
  }
  links_ = measure_links(group_, wanted);
  prices_.emplace(group_.hosts(), links_);
  picked_.clear();
  picked_among_firsts_.clear();
  measured_in_ = group_.generation();
  measured_with_ = wanted;
}

Algorithm Allreduce::cheapest(std::size_t bytes) {
  const auto [pick, fresh] = picked_.try_emplace(bytes);
  if (fresh) {
    pick->second = prices_->cheapest(static_cast<double>(bytes));
  }
  return pick->second;
}

Algorithm Allreduce::cheapest_among_firsts(std::size_t bytes) {
  const auto [pick, fresh] = picked_among_firsts_.try_emplace(bytes);
  if (fresh) {
    pick->second = prices_->among_firsts().cheapest(static_cast<double>(bytes));
  }
  return pick->second;
}

void Allreduce::describe(Algorithm algorithm, std::size_t bytes) {
  describe(name_of(algorithm), bytes,
           algorithm == Algorithm::shm                  ? "one host"
           : options_.algorithm == Algorithm::automatic ? in_words(group_, links_)
                                                        : "as the configuration says");
}

void Allreduce::describe(std::string_view by, std::size_t bytes, const std::string& why) {
  if (bytes <= longest_ && described_in_ == group_.generation()) {
    return;
  }
  longest_ = bytes;
  described_in_ = group_.generation();
  std::string text = fmt::format("{}: {} ranks, {:.3g} MB, {}", by, group_.size(),
                                 static_cast<double>(bytes) * 1e-6, why);
  const std::scoped_lock lock(mutex_);
  description_ = std::move(text);
}

std::string Allreduce::description() const {
  const std::scoped_lock lock(mutex_);
  return description_;
}

}  // namespace syncopate
