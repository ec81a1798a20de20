#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/mpi/engine.hpp"
#include "transport/mpi/mpi_node.hpp"
#include "transport/mpi/mpi_session.hpp"

namespace syncopate::mpi {

/// A `Session` over a module that has been loaded.
class LoadedSession final : public Session {
 public:
  /// Errors: ConfigError if the library sees another number of ranks than expected.
  LoadedSession(const std::function<std::unique_ptr<Calls>()>& make, const SessionOptions& options);
  ~LoadedSession() override;
  LoadedSession(const LoadedSession&) = delete;
  LoadedSession& operator=(const LoadedSession&) = delete;

  std::uint32_t rank() const override { return rank_; }
  std::uint32_t size() const override { return size_; }
  std::string library() const override { return library_; }
  std::vector<std::uint32_t> hosts() const override { return hosts_; }
  std::unique_ptr<Transport> listen(const ListenOptions& options) override;
  std::unique_ptr<Transport> join(const JoinOptions& options) override;
  void barrier(TimePoint deadline) override;
  [[noreturn]] void abort(int status) override;

 private:
  void learn(const SessionOptions& options);

  Engine engine_;
  std::uint32_t rank_ = 0;
  std::uint32_t size_ = 1;
  std::string library_;
  std::vector<std::uint32_t> hosts_;
  std::unique_ptr<MpiAllreduce> allreduce_;  ///< null if this rank takes no part
  bool together_ = false;  ///< all ranks have started, and none has left a barrier early
};

}  // namespace syncopate::mpi
