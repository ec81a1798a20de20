#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/job_view.hpp"
#include "transport/transport.hpp"
#include "wire/control.hpp"

namespace syncopate {

/// The programs that one launcher starts.
struct ProgramRange {
  std::uint32_t first = 0;  ///< rank
  std::uint32_t count = 0;

  bool contains(std::uint32_t rank) const { return rank >= first && rank - first < count; }
};

/// What the launchers of a job have reported to its coordinator about the processes of programs:
/// the launcher of this host, and `syncopate run` on others, which are nodes.
class Launchers {
 public:
  /// `here`: the programs of this host.
  Launchers(std::uint32_t programs, ProgramRange here) : programs_(programs), here_(here) {}

  /// A launcher on another host. Errors: ConfigError for a job of another size, and for programs
  /// that another launcher starts.
  void joined(NodeId launcher, const wire::LauncherHello& hello);
  /// Its programs that run count as ended. No effect for a node that is no launcher.
  void lost(NodeId launcher);

  void ended(std::uint32_t rank, int wait_status);
  /// Errors: ProtocolError for a program that the launcher has not started.
  void ended(NodeId launcher, const wire::ProgramEnded& end);
  /// How programs have ended, by rank: "ended with exit status 3".
  const std::map<std::uint32_t, std::string>& ends() const { return ends_; }
  /// The program that has failed first, and how; empty while none has. Only for a job on several
  /// hosts: within one, the supervisor sees it.
  const std::string& failure() const { return failure_; }
  /// The programs of hosts whose launchers have not come.
  std::vector<std::uint32_t> missing() const;
  /// Every program has ended, of the launchers that have come.
  bool all_ended() const;

  struct Launcher {
    ProgramRange programs;
    std::string host;
    bool gone = false;
  };
  const std::map<NodeId, Launcher>& others() const { return others_; }

 private:
  bool all_ended(const ProgramRange& range) const;
  void note_failure(std::uint32_t rank);

  const std::uint32_t programs_;
  const ProgramRange here_;
  std::map<NodeId, Launcher> others_;
  std::map<std::uint32_t, std::string> ends_;
  std::string failure_;
};

}  // namespace syncopate
