// The module: MPI's calls behind `Calls`. The build compiles this source once for each library.

#include <fmt/format.h>
#include <mpi.h>

#include <array>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/errors.hpp"
#include "transport/mpi/calls.hpp"

namespace syncopate::mpi {
namespace {

static_assert(sizeof(MPI_Request) <= sizeof(std::uintptr_t));

void check(int status, const char* what) {
  if (status == MPI_SUCCESS) {
    return;
  }
  std::array<char, MPI_MAX_ERROR_STRING> words{};
  int length = 0;
  MPI_Error_string(status, words.data(), &length);
  throw InternalError(
      fmt::format("{} failed: {}", what, std::string_view(words.data(), std::size_t(length))));
}

Calls::Request wrap(MPI_Request request) {
  Calls::Request wrapped;
  std::memcpy(&wrapped.value, &request, sizeof(MPI_Request));
  return wrapped;
}

MPI_Request unwrap(const Calls::Request& wrapped) {
  MPI_Request request;
  std::memcpy(&request, &wrapped.value, sizeof(MPI_Request));
  return request;
}

MPI_Comm duplicate_world() {
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return comm;
}

/// "Open MPI v4.1.4, package: …" and "MPICH Version:      4.0.2\nMPICH …" in the same short form.
std::string short_name(std::string_view text) {
  const std::string_view name = text.substr(0, 5) == "MPICH" ? "MPICH" : "Open MPI";
  const std::size_t begin = text.find_first_of("0123456789");
  if (begin == std::string_view::npos) {
    return std::string(name);
  }
  const std::size_t end = text.find_first_not_of("0123456789.", begin);
  return fmt::format("{} {}", name, text.substr(begin, end - begin));
}

class LibraryCalls final : public Calls {
 public:
  LibraryCalls() {
    int level = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
    if (level < MPI_THREAD_MULTIPLE) {
      throw InternalError("it was built without threads: expected MPI_THREAD_MULTIPLE");
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    packets_ = duplicate_world();
    pieces_ = duplicate_world();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  std::uint32_t rank() const override { return static_cast<std::uint32_t>(rank_); }
  std::uint32_t size() const override { return static_cast<std::uint32_t>(size_); }

  std::string library() const override {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    return short_name({text.data(), static_cast<std::size_t>(length)});
  }

  std::uint32_t greatest_tag() const override {
    int* greatest = nullptr;
    int found = 0;
    MPI_Comm_get_attr(pieces_, MPI_TAG_UB, static_cast<void*>(&greatest), &found);
    return found != 0 ? static_cast<std::uint32_t>(*greatest) : 32767;
  }

  void gather(std::uint64_t mine, std::span<std::uint64_t> all) override {
    check(MPI_Allgather(&mine, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, packets_),
          "MPI_Allgather");
  }

  std::uint32_t form_reducing_group(bool takes_part) override {
    check(MPI_Comm_split(packets_, takes_part ? 0 : MPI_UNDEFINED, rank_, &reducing_),
          "MPI_Comm_split");
    int ranks = 0;
    if (reducing_ != MPI_COMM_NULL) {
      check(MPI_Comm_size(reducing_, &ranks), "MPI_Comm_size");
    }
    return static_cast<std::uint32_t>(ranks);
  }

  Request send(Channel channel, std::uint32_t to, std::uint32_t tag,
               std::span<const std::byte> bytes) override {
    MPI_Request request;
    check(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, static_cast<int>(to),
                    static_cast<int>(tag), comm(channel), &request),
          "MPI_Isend");
    return wrap(request);
  }

  Request receive(Channel channel, std::optional<std::uint32_t> from, std::uint32_t tag,
                  std::span<std::byte> into) override {
    MPI_Request request;
    const int source = from ? static_cast<int>(*from) : MPI_ANY_SOURCE;
    check(MPI_Irecv(into.data(), static_cast<int>(into.size()), MPI_BYTE, source,
                    static_cast<int>(tag), comm(channel), &request),
          "MPI_Irecv");
    return wrap(request);
  }

  Request barrier(Ranks ranks) override {
    MPI_Request request;
    check(MPI_Ibarrier(ranks == Ranks::all ? packets_ : reducing_, &request), "MPI_Ibarrier");
    return wrap(request);
  }

  void allreduce(std::span<float> values) override {
    check(MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT,
                        MPI_SUM, reducing_),
          "MPI_Allreduce");
  }

  std::optional<Done> test(Request& wrapped) override {
    MPI_Request request = unwrap(wrapped);
    MPI_Status status{};
    int done = 0;
    check(MPI_Test(&request, &done, &status), "MPI_Test");
    wrapped = wrap(request);
    if (done == 0) {
      return std::nullopt;
    }
    int cancelled = 0;
    MPI_Test_cancelled(&status, &cancelled);
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    return Done{.cancelled = cancelled != 0,
                .from = static_cast<std::uint32_t>(status.MPI_SOURCE),
                .bytes = static_cast<std::size_t>(bytes)};
  }

  void cancel(Request& wrapped) override {
    MPI_Request request = unwrap(wrapped);
    check(MPI_Cancel(&request), "MPI_Cancel");
  }

  void finalize() override { check(MPI_Finalize(), "MPI_Finalize"); }
  void abort(int status) noexcept override { MPI_Abort(MPI_COMM_WORLD, status); }

 private:
  MPI_Comm comm(Channel channel) const { return channel == Channel::packets ? packets_ : pieces_; }

  int rank_ = 0;
  int size_ = 1;
  MPI_Comm packets_ = MPI_COMM_NULL;
  MPI_Comm pieces_ = MPI_COMM_NULL;
  MPI_Comm reducing_ = MPI_COMM_NULL;
};

}  // namespace
}  // namespace syncopate::mpi

extern "C" __attribute__((visibility("default"))) syncopate::mpi::Calls* syncopate_mpi_calls() {
  return std::make_unique<syncopate::mpi::LibraryCalls>().release();
}
