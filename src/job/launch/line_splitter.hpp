#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace syncopate::cli {

/// Makes lines of bytes that come in pieces.
class LineSplitter {
 public:
  using Sink = std::function<void(std::string_view)>;

  /// `sink` takes each line, without its end.
  explicit LineSplitter(Sink sink) : sink_(std::move(sink)) {}

  void add(std::string_view bytes);
  /// Gives what came after the last line end, if anything.
  void finish();

 private:
  Sink sink_;
  std::string rest_;
};

}  // namespace syncopate::cli
