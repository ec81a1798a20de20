#include "job/launch/key_file.hpp"

#include <system_error>

#include "base/file.hpp"
#include "base/random.hpp"

namespace syncopate {

KeyFile::KeyFile(const std::filesystem::path& folder)
    : key_(unguessable_token()), path_(std::filesystem::absolute(folder / "job.key")) {
  write_file(path_, key_ + "\n", readable_by_owner);
}

KeyFile::~KeyFile() {
  std::error_code ignored;  // a file that cannot be removed opens no other job
  std::filesystem::remove(path_, ignored);
}

}  // namespace syncopate
