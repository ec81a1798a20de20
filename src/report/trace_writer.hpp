#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/time.hpp"
#include "report/gzip_file.hpp"

namespace syncopate {

/// Writes a trace in Chrome's JSON format ("Trace Event Format"), gzipped, which Perfetto opens.
///
/// Times count from the beginning of the trace. Order: processes and threads are named before their
/// events.
class TraceWriter {
 public:
  using Json = nlohmann::ordered_json;

  /// A thread of a process, by the numbers that the trace gives them.
  struct Track {
    std::uint32_t process = 0;
    std::uint32_t thread = 0;
  };
  struct SliceEnd {
    Track track;
    Duration at;
  };

  /// Errors of all calls: DataError.
  explicit TraceWriter(const std::filesystem::path& path) : file_(path) {}

  /// Processes are shown in the order of their numbers. `label`: shown beside the name.
  void process(std::uint32_t process, const std::string& name, const std::string& label);
  void thread(Track track, const std::string& name);
  void slice(Track track, const std::string& name, Duration begin, Duration duration,
             const Json& args);
  /// An arrow from the end of one slice to the end of another; `id` is that of no other flow.
  void flow(std::uint64_t id, SliceEnd from, SliceEnd to, const Json& args);
  void instant(Track track, const std::string& name, Duration at, const Json& args);
  void counter(std::uint32_t process, const std::string& name, Duration at, double value);
  /// Ends the trace; `facts` are its metadata.
  void finish(const Json& facts);

  std::uint64_t events() const { return events_; }

 private:
  void write(const Json& event);

  GzipFile file_;
  std::uint64_t events_ = 0;
};

}  // namespace syncopate
