#pragma once

#include <syncopate.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/transport.hpp"

namespace syncopate::abi {

/// A sum over workers by a callback of the program, which begins it, and ends it by
/// `syncopate_sum_end` from any thread.
///
/// The program gets a copy of the values, which lives until it has ended the sum: a training that
/// fails meanwhile does not wait for it.
class CallbackAllreduce final : public NativeAllreduce {
 public:
  using Begin = void (*)(void* user, float* values, std::uint64_t count, syncopate_sum* sum);

  CallbackAllreduce(Begin begin, void* user, std::uint32_t members)
      : begin_(begin), user_(user), members_(members) {}

  std::uint32_t size() const override { return members_; }
  /// Errors: also Error, with the program's reason.
  void allreduce(std::span<float> values, TimePoint deadline) override;

 private:
  Begin begin_;
  void* user_;
  std::uint32_t members_;
  std::shared_ptr<syncopate_sum> under_way_;
  std::vector<float> memory_;  ///< of the last sum: first touches are slow
};

}  // namespace syncopate::abi
