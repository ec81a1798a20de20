#pragma once

#include <map>
#include <string>
#include <utility>

namespace syncopate {

/// The names of the functions on a stack. Caches them: a search in a large library takes a
/// millisecond, and threads of one kind are in the same functions.
///
/// Thread: one.
class FrameNames {
 public:
  /// "syncopate::Group::receive(…) (syncopate-torch+0x1f2e3)", for `addr2line -e syncopate-torch
  /// 0x1f2e3`; "(syncopate-torch+0x1f2e3)" for a function that its file does not export; else only
  /// the address. `call`: the address follows a call, which may be the last instruction of its
  /// function.
  const std::string& of(void* address, bool call);

 private:
  std::map<std::pair<void*, bool>, std::string> known_;
};

}  // namespace syncopate
