#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace syncopate {

/// A node's request to a shard of a parameter server. The values of a push travel before the
/// request, under their own tag and straight into the shard's buffer: a shard that reads a request
/// has the values already, and a slow link to one worker delays no other. On one host they need not
/// be sent: the shard reads and writes the worker's shared memory.
struct Request {
  enum class Kind : std::uint8_t {
    upload = 1,  ///< one worker sends the model to continue from, while none has work under way
    start = 2,   ///< asks for parameters, buffers and its progress, once the shard has a model
    work = 3,    ///< a push, a pull, or both
    leave = 4,   ///< the worker has done its last step; with `pull` it will ask for the model
    verdict =
        5,  ///< from shard 0 to the others: the workers whose gradients make up a step of `backup`
    collect = 6,  ///< from shard 0 to the others: asks for the state of the shard
    finish = 7,   ///< from shard 0 to the others: it has asked for the last state
    model = 8,    ///< after `leave`: asks for parameters, and the mean of all buffers
    rest = 9,     ///< the worker holds nobody up until its next `work`, whenever that comes
  };

  Kind kind = Kind::work;
  bool push = false;
  bool pull = false;
  std::uint64_t step = 0;     ///< the worker's steps, with the pushed one; in a verdict, its step
  std::uint64_t samples = 0;  ///< on which the worker has trained since its previous push
  double loss_sum = 0;        ///< over those samples
  float weight = 1;           ///< of a gradient, relative to that of a batch of the mean size
  /// Offsets of the push and of the answer in the worker's shared memory, if their values are not
  /// sent.
  std::optional<std::uint64_t> push_offset{};
  std::optional<std::uint64_t> pull_offset{};
  std::vector<Rank> ranks{};  ///< of a verdict

  friend bool operator==(const Request&, const Request&) = default;
};

/// A shard's answer. The values of a pull follow it under their own tag.
struct Reply {
  enum class Kind : std::uint8_t {
    done = 1,
    held = 2,  ///< the answer has to wait for `ranks`; it comes later
  };

  Kind kind = Kind::done;
  bool reaches_memory = false;  ///< the shard reads and writes this worker's shared memory
  bool dropped = false;         ///< the pushed gradient arrived too late, and was dropped by design
  std::uint64_t version = 0;    ///< updates that the shard has applied
  std::uint64_t samples = 0;    ///< of the job, in the model
  double loss_sum = 0;          ///< over those samples
  std::uint64_t staleness = 0;  ///< of the pushed gradient
  std::uint64_t steps = 0;      ///< of the worker, in the model
  Duration training{};          ///< the job's training clock
  Duration paused{};            ///< subtracted from it so far
  std::vector<Rank> ranks{};    ///< a held answer waits for these: the first few

  friend bool operator==(const Reply&, const Reply&) = default;
};

std::vector<std::byte> encode(const Request& request);
std::vector<std::byte> encode(const Reply& reply);
/// Errors: ProtocolError if the bytes are no request.
Request decode_request(std::span<const std::byte> bytes);
/// Errors: ProtocolError if the bytes are no reply.
Reply decode_reply(std::span<const std::byte> bytes);

}  // namespace syncopate
