#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.hpp"
#include "transport/steady_time.hpp"

namespace syncopate {

/// A file descriptor that its owner closes. It is also closed in every program that this process
/// becomes.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;

  int get() const { return value_; }
  void close();

 private:
  int value_ = -1;
};

struct Pipe {
  Descriptor read;  ///< does not block
  Descriptor write;
};

/// Errors: Error.
Pipe make_pipe();

/// A socket that accepts connections on loopback, and its address for others.
struct ListeningSocket {
  Descriptor socket;
  std::string address;  ///< "127.0.0.1:40001"
};

/// Listens on a port that the system chooses. Errors: Error.
ListeningSocket listen_on_loopback();

/// A port that nothing uses now, for a process that will listen there. It is none of those that the
/// system gives to sockets without a port of their own: one of these might get it in the meantime.
/// Errors: Error.
std::uint16_t port_for_another();

/// Throws Error: "cannot <action>: <the system's reason>".
[[noreturn]] void throw_system_error(const char* action);

/// Splits a stream of bytes into lines. Of lines that the program overwrites, as progress bars do,
/// one passes every ten seconds. These are lines that end with a carriage return, and lines from
/// which the cursor moves up (`ESC [ n A`), as below another bar.
class LineSplitter {
 public:
  using Sink = std::function<void(std::string_view)>;
  using Now = std::function<TimePoint()>;

  /// `sink` receives each line, without its end; a line of over 1 MiB arrives in parts.
  explicit LineSplitter(Sink sink, Now now = steady_now)
      : sink_(std::move(sink)), now_(std::move(now)) {}

  void add(std::string_view bytes);
  /// Passes the bytes after the last line end to the sink, if there are any.
  void finish();

 private:
  enum class Ends { line, return_to_begin, up };
  /// The end of a line: bytes of `rest_`.
  struct LineEnd {
    std::size_t begin = 0;
    std::size_t size = 0;  ///< 0: more bytes must arrive before it is clear if a line ends here
    Ends kind = Ends::line;
    std::size_t rows = 0;  ///< by which the cursor moves up
  };

  LineEnd first_end(std::size_t from) const;
  std::optional<LineEnd> end_at(std::size_t begin) const;
  std::optional<LineEnd> cursor_up_at(std::size_t begin) const;
  void take_line(std::string_view line, const LineEnd& end);
  void take_fed_line(std::string_view line);
  void overwritten(std::string_view line);
  void pass_held();

  Sink sink_;
  Now now_;
  std::optional<TimePoint> last_overwritten_;  ///< when the last overwritten line passed
  std::string rest_;
  std::size_t searched_ = 0;  ///< bytes of `rest_` in which no line ends
  Ends last_end_ = Ends::line;
  bool has_moved_up_ = false;
  std::size_t rows_below_ = 0;  ///< rows below the cursor that the program has written
  /// A bar above others, whose line may be final or drawn again: the next bytes show which.
  std::optional<std::string> held_;
};

}  // namespace syncopate
