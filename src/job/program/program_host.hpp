#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "data/lease_book.hpp"
#include "data/step_book.hpp"
#include "job/launch/own_place.hpp"
#include "job/launch/program_ends.hpp"
#include "job/program/launchers.hpp"
#include "job/program/loop_definition.hpp"
#include "membership/coordinator.hpp"
#include "membership/liveness.hpp"
#include "report/recorder.hpp"
#include "runtime/world.hpp"

namespace syncopate {

/// Coordinates programs with a loop of their own: introduces them to each other, and waits until
/// all have said what they train. Then the node is that of the training's coordinator, and the
/// programs are its workers; the servers are tasks of this process. From the first program to the
/// last it leases samples to those that ask for them. The job is over when every program has gone.
///
/// Programs may then join another job, with a run folder of its own. A program is in one at a time.
///
/// Thread: one.
class ProgramHost : private NodeService {
 public:
  using Json = Recorder::Json;

  struct Options {
    std::uint32_t programs = 1;
    /// The programs whose ends `ended` reports; empty: all.
    std::optional<ProgramRange> here = {};
    /// Serves one job after another, until every program has ended (`ended`).
    bool several_jobs = false;
    /// For all programs to call `init`, from the first call on, and for all to join the training.
    Duration gather_limit = std::chrono::seconds(600);
    /// Takes each event of the job (`report/events.hpp`).
    std::function<void(const Json&)> emit = [](const Json&) {};
    /// A program that sends no heartbeat for longer no longer answers, in a training or outside.
    Duration wait_limit = from_seconds(TrainConfig{}.wait_limit);
    std::function<bool()> interrupted = [] { return false; };  ///< the user has requested the end
    /// The programs whose processes have ended since the last call, also those that never came.
    std::function<std::vector<ProgramEnd>()> ended = [] { return std::vector<ProgramEnd>(); };
    std::string name = "the coordinator";               ///< as `Coordinator::Options::name`
    std::function<void(const std::string&)> hung = {};  ///< as `Coordinator::Options::hung`
    double wall_time = 0;                               ///< seconds since 1970, for TensorBoard
    std::string key;  ///< of the world's transport, for the servers of a training
    /// HOST:PORT where these listen; port 0: a free one.
    std::string address = "127.0.0.1:0";
    OwnPlace place = {};       ///< their interface, in place of that address, and ports
    bool encrypted = false;    ///< the key is one that the user has given to all hosts
    bool unencrypted = false;  ///< that may be beyond loopback: the network is trusted
  };

  /// `world` is node 0 of a transport that takes control messages alone, and outlives this.
  ProgramHost(World& world, Options options);

  /// Serves until every program has gone. Errors: the error that ended the job, after a `failed`
  /// event; every program gets it, too.
  void run();

 private:
  struct Program {
    Member who;
    std::optional<LoopDefinition> definition{};
    bool met = false;     ///< it has reached all others
    bool trains = false;  ///< it has joined the training, whose coordinator judges its silence
    bool gone = false;
    std::string failure{};  ///< why it has not met them; empty: it has said nothing of that
  };

  /// A program that has joined again while others are still in the job before.
  struct Waiting {
    Member who;
    TimePoint since;
  };

  void serve();
  bool begin_next();
  void fail(const std::exception& error);
  bool prepare();
  void take_events();
  void handle(const Message& message);
  bool take(NodeId from, const wire::ToCoordinator& message) override;
  std::optional<std::string> lost(NodeId node) override;
  void turn() override;
  void greet(NodeId node, const wire::ProgramHello& hello);
  void admit(const Member& who);
  void refuse_waiting();
  void lease(NodeId node, const wire::LeaseRequest& request);
  void request_end(NodeId launcher);
  void refuse(NodeId node, const std::exception& error);
  void introduce_all();
  bool is_over() const;
  bool all_defined() const;
  void check_time() const;
  void check_ends() const;
  void check_failures() const;
  void note_missing();
  void greet_launcher(NodeId launcher, const wire::LauncherHello& hello);
  std::optional<std::string> missing_program() const;
  void check_gone() const;
  bool note_heartbeat(NodeId from, const wire::Heartbeat& heartbeat);
  bool note_failure(NodeId from, const wire::Abort& abort);
  void mark_as_training(NodeId node, bool trains);
  void check_silence() const;
  void check_definitions() const;
  void train();
  void send(NodeId node, const wire::FromCoordinator& message);
  void send_to_all(const wire::FromCoordinator& message);
  void send_to_launchers(const wire::FromCoordinator& message);
  void relay(const Json& event);
  bool interrupted() const { return end_requested_ || options_.interrupted(); }
  void wait_until_all_have_gone();
  std::map<std::uint32_t, NodeId> nodes_by_rank() const;
  const Program& program_of(std::uint32_t rank) const;
  Program& program_at(NodeId node);

  World& world_;
  Options options_;
  std::map<NodeId, Program> programs_;
  Liveness liveness_;  ///< of the programs
  AbsenceWatch absence_;
  std::vector<Waiting> waiting_;
  Launchers launchers_;
  bool end_requested_ = false;              ///< by the user of another host
  std::optional<TimePoint> begun_waiting_;  ///< for launchers of other hosts
  bool noted_missing_ = false;
  std::optional<TimePoint> first_came_;
  std::optional<wire::FromCoordinator> failure_;  ///< that has ended the job
  std::uint32_t trainings_ = 0;                   ///< so far
  bool introduced_ = false;
  bool trains_ = false;                           ///< or has trained
  bool training_failed_ = false;                  ///< or goes on: its own record shows how it ends
  std::map<std::uint32_t, LeaseBook> books_;      ///< by the number of the dataset
  std::map<std::uint32_t, StepBook> step_books_;  ///< by the same
};

}  // namespace syncopate
