#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "pacer/pacer.hpp"

namespace syncopate {

/// Devices that do steps, report them to a pacer and obey it, in a virtual time of their own; and
/// the promises of the pacer, checked as they go.
///
/// Messages take `latency`. A synchronization is complete when all present have entered it, and its
/// result arrives `synchronization` later. A device that is to enter a synchronization while the
/// last result is on its way, waits.
class PacedDevices {
 public:
  struct Device {
    Duration sample{};    ///< computing time of a sample
    Duration overhead{};  ///< of every step
    std::uint32_t batch_size = 64;
  };
  struct Options {
    std::vector<Device> devices;
    PaceRule rule = PaceRule::timed;
    std::optional<Duration> round_time = {};
    bool overlap = true;
    Duration latency{};
    Duration synchronization{};
    double jitter = 0;     ///< a step takes up to this share more, or less
    double hiccups = 0;    ///< how likely a step is to take twenty times as long
    double deaths = 0;     ///< how likely a step is a device's last
    double returns = 0;    ///< how likely one that is gone is back after any step of another
    Duration detection{};  ///< of a death, by the pacer
  };
  /// A synchronization, as it took place.
  struct Held {
    TimePoint first;
    TimePoint last;
    std::uint32_t last_rank = 0;
    std::map<std::uint32_t, std::uint64_t> steps = {};  ///< of the round, by rank
  };

  PacedDevices(Options options, std::uint64_t seed);

  /// Until that many synchronizations are complete, or everybody is dead, or a promise is broken.
  void run(std::uint64_t synchronizations);
  void slow_down(std::uint32_t rank, int times);

  const std::vector<Held>& held() const { return held_; }  ///< from round 1 on
  const Pacer& pacer() const { return pacer_; }
  std::string broken() const { return broken_; }  ///< the first broken promise; empty: none
  std::size_t alive() const;
  /// The share of its time that a device was not waiting for a sum, since it began.
  double busy_share(std::uint32_t rank) const;

 private:
  struct Life {
    bool alive = true;       ///< it computes, or waits
    bool present = true;     ///< the pacer counts it in
    std::uint64_t life = 0;  ///< events of an earlier one are void
    std::uint64_t round = 1;
    std::uint64_t steps = 0;
    std::uint32_t size = 0;
    std::uint32_t in_hand = 0;  ///< samples
    std::optional<std::uint64_t> sync_after = {};
    std::uint64_t reduced = 0;  ///< the last round whose result it has
    Duration communicated{};
    std::optional<TimePoint> waits_since = {};
    StepReport report{};  ///< of the step after which it waits
    TimePoint born{};
    Duration waited{};
  };
  struct Mark {
    std::uint32_t rank;
    std::uint64_t life;
    std::uint64_t round;
    friend auto operator<=>(const Mark&, const Mark&) = default;
  };

  void promise(bool holds, const std::string& what);
  void after(Duration delay, std::function<void()> event);
  void live(std::uint32_t rank, std::function<void(Life&)> event, Duration delay);

  void begin_life(std::uint32_t rank);
  void begin_step(std::uint32_t rank);
  void end_step(std::uint32_t rank, Duration took);
  void enter(std::uint32_t rank);
  void wait(std::uint32_t rank);
  void go_on(std::uint32_t rank);
  void send(std::uint32_t rank, const StepReport& report);
  void die(std::uint32_t rank);
  void revive();

  void deliver_all(const Paces& paces);
  void deliver(const Pace& pace);
  void complete_synchronizations();
  void deliver_result(std::uint64_t round);
  Duration draw(const Device& device, std::uint32_t samples);

  Options options_;
  Random random_;
  Pacer pacer_;
  std::vector<Life> lives_;
  std::multimap<TimePoint, std::function<void()>> events_;  ///< equal times: in order of insertion
  TimePoint now_{};
  std::uint64_t open_ =
      1;  ///< the round whose synchronization is next, as the synchronizations show
  std::set<std::uint32_t> entered_;  ///< the open synchronization, as far as the pacer knows
  Held holding_{};
  std::vector<Held> held_;
  std::set<Mark> decided_;
  std::string broken_;
};

}  // namespace syncopate
