#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace syncopate {

/// Writes text for a reader that may be slow, suspended or gone, and never waits for it: text that
/// the reader has not taken yet is queued.
///
/// The descriptor keeps its flags, since other processes may share it: each write is so short that
/// it does not block after `poll` has found room. A broken pipe raises no signal. After another
/// error, such as a full disk, the text is lost, and the next text is tried again.
///
/// Memory: at most `most_queued`; text beyond it is lost.
class LineWriter {
 public:
  static constexpr std::size_t most_queued = std::size_t{8} << 20;

  /// Borrows the descriptor.
  explicit LineWriter(int descriptor);

  /// Writes the text, or queues it.
  void write(std::string_view text);
  /// Writes the text, or drops it if the reader is behind.
  void offer(std::string_view text);
  /// Writes as much of the queue as the reader has room for. Notices that the reader of a pipe has
  /// gone even if there is nothing to write.
  void flush();
  /// Waits until the reader has taken everything, for at most `limit`. Returns false if text is
  /// left.
  bool finish(Duration limit);

  /// True if the reader is behind: text is queued, or half of the pipe is full. The other half is
  /// left for text that must not be lost when this process ends.
  bool is_behind() const;
  /// True once the reader has gone forever.
  bool is_closed() const { return closed_; }
  /// True if text was lost because there was too much of it.
  bool has_lost() const { return lost_; }

 private:
  bool write_some();

  const int descriptor_;
  const unsigned kind_;      ///< of the file, as `stat` reports it
  const std::size_t piece_;  ///< bytes of one write; zero: any number
  std::deque<std::string> queue_;
  std::size_t written_ = 0;  ///< bytes of the first text in the queue
  std::size_t queued_ = 0;   ///< bytes in the queue
  bool closed_ = false;
  bool lost_ = false;
};

}  // namespace syncopate
