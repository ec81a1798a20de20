#include "collective/allreduce_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/errors.hpp"
#include "codec/codec_frame.hpp"

namespace syncopate {
namespace {

/// Assumed links: the network of a data centre, and a processor that adds from memory.
constexpr Links usual_links{.within = {.latency = 20e-6, .seconds_per_byte = 1 / 5e9},
                            .between = {.latency = 50e-6, .seconds_per_byte = 1 / 1.25e9},
                            .seconds_per_added_byte = 1 / 5e9};
/// An allreduce in shared memory: two barriers of tasks that are woken on busy processors, and one
/// pass over memory to read and one to write.
constexpr AllreduceCost usual_in_memory{.fixed = 200e-6, .seconds_per_byte = 1 / 10e9};

/// Assumed time to encode and decode a byte, with error feedback, on one core.
constexpr double usual_seconds_per_coded_byte = 1 / 1.5e9;

/// Long enough to show the bandwidth, short enough to take little time.
constexpr std::size_t longest_probe = 256 * 1024;

std::string in_words(const Link& link) {
  const std::string latency = fmt::format("{:.0f} µs", link.latency * 1e6);
  return link.seconds_per_byte > 0
             ? fmt::format("{} and {:.2g} GB/s", latency, 1e-9 / link.seconds_per_byte)
             : latency;
}

std::string description(std::string_view name, std::uint32_t ranks, std::size_t bytes,
                        std::string_view reason) {
  return fmt::format("{}: {} ranks, {:.3g} MB, {}", name, ranks, static_cast<double>(bytes) * 1e-6,
                     reason);
}

}  // namespace

AllreducePlan::AllreducePlan(const Options& options, Hosts hosts)
    : options_(options), hosts_(std::move(hosts)), on_one_host_(host_leaders(hosts_).size() == 1) {}

const ReducerSpec& AllreducePlan::in_memory() {
  return **std::ranges::find_if(all_reducers(), [](auto* reducer) { return reducer->in_memory; });
}

bool AllreducePlan::wants_shared_memory() const {
  return requests_memory() || (on_one_host_ && shares_memory_first());
}

bool AllreducePlan::wants_links() const {
  return !shares_memory_ && (options_.requested == nullptr || options_.requested->has_two_levels);
}

std::optional<std::size_t> AllreducePlan::probe_bytes(std::size_t bytes) const {
  const std::size_t wanted = std::min(bytes, longest_probe);
  return links_ && wanted <= 2 * links_probe_bytes_ ? std::nullopt : std::optional(wanted);
}

void AllreducePlan::set_links(const Links& links, std::size_t probe_bytes) {
  links_ = links;
  links_probe_bytes_ = probe_bytes;
  cheapest_.clear();
  cheapest_among_leaders_.clear();
}

void AllreducePlan::forget_links() {
  links_.reset();
}

const ReducerSpec& AllreducePlan::reducer(std::size_t bytes) {
  if (shares_memory_) {
    return in_memory();
  }
  if (requests_memory()) {
    throw ConfigError(
        "--aggregate shm requires that all workers share memory: one host, one user and "
        "--transport shm; choose another aggregate or auto");
  }
  if (const ReducerSpec* const requested = options_.requested) {
    if (requested->among_hosts && syncopate::has_two_levels(hosts_)) {
      return *find_reducer("two-level");
    }
    const ReducerSpec* const other = requested->stand_in ? requested->stand_in(size()) : nullptr;
    return other != nullptr ? *other : *requested;
  }
  const auto [entry, is_new] = cheapest_.try_emplace(bytes);
  if (is_new) {
    entry->second = &CostModel(hosts_, links_.value()).cheapest(static_cast<double>(bytes));
  }
  return *entry->second;
}

const ReducerSpec& AllreducePlan::reducer_among_leaders(std::size_t bytes) {
  if (options_.requested != nullptr && options_.requested->among_hosts) {
    return *options_.requested;
  }
  const auto [entry, is_new] = cheapest_among_leaders_.try_emplace(bytes);
  if (is_new) {
    const CostModel leaders = CostModel(hosts_, links_.value()).among_leaders();
    entry->second = &leaders.cheapest(static_cast<double>(bytes));
  }
  return *entry->second;
}

bool AllreducePlan::compresses() const {
  return options_.compression && size() > 1 && !(options_.compress_remote && on_one_host_);
}

bool AllreducePlan::compresses_among_leaders() const {
  return compresses() && options_.compress_remote && has_two_levels(hosts_);
}

AllreduceCost AllreducePlan::cost(std::size_t bytes) {
  if (compresses()) {
    return compressed_cost(bytes);
  }
  if (size() == 1) {
    return usual_in_memory;
  }
  // What sums among hosts for the program most likely is a ring.
  const ReducerSpec& planned = reducer(bytes);
  const ReducerSpec& chosen = planned.among_hosts ? *find_reducer("ring") : planned;
  if (!chosen.seconds) {
    return usual_in_memory;
  }
  const CostModel model(hosts_, options_.requested != nullptr ? usual_links : links_.value());
  const auto fixed = model.seconds(chosen, 0);
  const auto all = model.seconds(chosen, static_cast<double>(bytes));
  if (!fixed || !all) {
    return usual_in_memory;
  }
  return {.fixed = *fixed, .seconds_per_byte = (*all - *fixed) / static_cast<double>(bytes)};
}

AllreduceCost AllreducePlan::compressed_cost(std::size_t bytes) const {
  const Links& links = links_.value();
  const Link& link = on_one_host_ ? links.within : links.between;
  const auto codec = make_codec(options_.compression);
  const double smaller =
      static_cast<double>(frame_bytes(*codec, bytes / sizeof(float))) / static_cast<double>(bytes);
  const double share = 2.0 * (size() - 1) / size();
  return {
      .fixed = 2 * link.latency,
      .seconds_per_byte = share * smaller * link.seconds_per_byte + usual_seconds_per_coded_byte};
}

std::string AllreducePlan::describe(const ReducerSpec& reducer, std::size_t bytes) const {
  const ReducerSpec* const requested = options_.requested;
  const std::string reason = reducer.in_memory      ? "one host"
                             : requested == nullptr ? links_in_words()
                                                    : "as the configuration says";
  if (reducer.has_two_levels && requested != nullptr && requested->among_hosts) {
    return description(fmt::format("{} between hosts", requested->name), size(), bytes, reason);
  }
  return description(reducer.name, size(), bytes, reason);
}

std::string AllreducePlan::describe_compressed(std::size_t bytes) const {
  const std::string where = compresses_among_leaders() ? " between hosts" : "";
  return description(to_string(options_.compression) + where, size(), bytes, links_in_words());
}

std::string AllreducePlan::links_in_words() const {
  const Links& links = links_.value();
  if (has_two_levels(hosts_)) {
    return fmt::format("links of {} on a host, {} between hosts", in_words(links.within),
                       in_words(links.between));
  }
  return "links of " + in_words(on_one_host_ ? links.within : links.between);
}

}  // namespace syncopate
