#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "job/launch/program_ends.hpp"
#include "job/program/program_messages.hpp"
#include "report/recorder.hpp"
#include "runtime/world.hpp"

namespace syncopate {

/// Coordinates programs with a loop of their own: introduces them to each other, waits until all
/// have said what they train, and then coordinates that training, whose servers are tasks of this
/// process. From the first program to the last it leases samples to those that ask for them. The
/// job is over when every program has gone.
///
/// Programs may then join another job, with a run folder of its own. A program is in one at a time.
///
/// The programs reach it by the transport of its world. Training has a transport of its own, and is
/// a job as any other.
///
/// Thread: one; training runs in a task beside it.
class ProgramHost {
 public:
  using Json = Recorder::Json;

  struct Options {
    std::uint32_t programs = 1;
    /// Serves one job after another, until every program has ended (`ended`).
    bool several_jobs = false;
    /// For all programs to call `init`, from the first call on, and for all to join the training.
    Duration gather_limit = std::chrono::seconds(600);
    /// Takes each event of the job (`report/events.hpp`).
    std::function<void(const Json&)> emit = [](const Json&) {};
    std::function<bool()> interrupted = [] { return false; };  ///< the user has requested the end
    /// The programs whose processes have ended since the last call, also those that never came.
    std::function<std::vector<ProgramEnd>()> ended = [] { return std::vector<ProgramEnd>(); };
    std::string name = "the coordinator";               ///< as `Coordinator::Options::name`
    std::function<void(const std::string&)> hung = {};  ///< as `Coordinator::Options::hung`
    double wall_time = 0;                               ///< seconds since 1970, for TensorBoard
    /// HOST:PORT where training listens, its servers among them; port 0: a free one.
    std::string address = "127.0.0.1:0";
    bool unencrypted = false;  ///< that may be beyond loopback: the network is trusted
  };

  /// `world` is node 0 of a transport that takes control messages alone, and outlives this.
  ProgramHost(World& world, Options options);

  /// Serves until every program has gone. Errors: the error that ended the job, after a `failed`
  /// event; every program gets it, too.
  void run();

 private:
  struct Program {
    std::uint32_t rank = 0;
    wire::ProgramHello hello;
    std::optional<LoopDefinition> definition{};
    bool gone = false;
  };

  /// A program that has joined again while others are still in the job before.
  struct Waiting {
    NodeId node;
    wire::ProgramHello hello;
    TimePoint since;
  };

  void serve();
  bool begin_next();
  void fail(const std::exception& error);
  bool prepare();
  void take_events();
  void take(const Message& message);
  void greet(NodeId node, const wire::ProgramHello& hello);
  void admit(NodeId node, const wire::ProgramHello& hello);
  void refuse_waiting();
  void lease(NodeId node, const wire::LeaseRequest& request);
  void refuse(NodeId node, const std::exception& error);
  void lose(NodeId node);
  void introduce_all();
  bool is_over() const;
  bool all_ended() const { return ended_.size() == options_.programs; }
  bool all_defined() const;
  void check_time() const;
  void check_ends() const;
  void check_gone() const;
  void check_definitions() const;
  void train();
  void send_to_all(const wire::ToProgram& message);
  void wait_until_all_have_gone();
  std::map<std::uint32_t, NodeId> nodes_by_rank() const;
  const Program& program_of(std::uint32_t rank) const;
  Program& program_at(NodeId node);

  World& world_;
  Options options_;
  std::map<NodeId, Program> programs_;
  std::vector<Waiting> waiting_;
  std::map<std::uint32_t, int> ended_;  ///< the wait status of programs that have ended, by rank
  std::optional<TimePoint> first_came_;
  std::optional<wire::ToProgram> failure_;  ///< that has ended the job
  std::uint32_t trainings_ = 0;             ///< so far
  bool introduced_ = false;
  bool trains_ = false;  ///< or has trained: its own record shows how the training ends
  std::map<std::uint32_t, LeaseBook> books_;  ///< by the number of the dataset
};

}  // namespace syncopate
