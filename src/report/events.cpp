#include "report/events.hpp"

#include <fmt/format.h>

#include <limits>

#include "base/errors.hpp"
#include "base/printable.hpp"

namespace syncopate::events {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t letters_of_an_event = 80;

double number(const Json& object, const char* name) {
  const Json& value = object.at(name);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

std::optional<double> optional_number(const Json& object, const char* name) {
  const Json& value = object.at(name);
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

Started::Worker started_worker(const Json& object) {
  return {.rank = object.at("rank"),
          .device = object.at("device"),
          .host = object.at("host"),
          .pid = object.at("pid")};
}

std::optional<Status::Pace> pace_in(const Json& worker) {
  const auto found = worker.find("pace");
  if (found == worker.end()) {
    return std::nullopt;
  }
  const Json& meet_after = found->at("meet_after");
  const Json& reason = found->at("reason");
  return Status::Pace{.step_seconds = number(*found, "step_seconds"),
                      .step_samples = found->at("step_samples"),
                      .period = found->value("period", 1U),
                      .round = found->value("round", std::uint64_t{0}),
                      .steps = found->at("steps"),
                      .meet_after = meet_after.is_null()
                                        ? std::nullopt
                                        : std::optional(meet_after.get<std::uint64_t>()),
                      .reason = reason.is_null() ? "" : reason.get<std::string>(),
                      .overdue = found->at("overdue")};
}

Status::Worker worker_status(const Json& object) {
  return {.rank = object.at("rank"),
          .samples = object.at("samples"),
          .steps = object.at("steps"),
          .round = object.at("round"),
          .phase = object.at("phase"),
          .compute = number(object, "compute"),
          .communicate = number(object, "communicate"),
          .wait = number(object, "wait"),
          .samples_per_second = number(object, "samples_per_second"),
          .pace = pace_in(object)};
}

template <class Worker>
std::vector<Worker> workers_of(const Json& object, Worker (*read)(const Json&)) {
  std::vector<Worker> workers;
  for (const Json& worker : object.at("workers")) {
    workers.push_back(read(worker));
  }
  return workers;
}

Started started(const Json& object) {
  return {.run_dir = object.at("run_dir"),
          .scheme = object.at("scheme"),
          .network = object.at("network"),
          .data = object.at("data"),
          .epochs = number(object, "epochs"),
          .target_accuracy = optional_number(object, "target_accuracy"),
          .virtual_time = object.at("virtual_time"),
          .workers = workers_of(object, started_worker)};
}

Status status(const Json& object) {
  return {.training_seconds = number(object, "training_seconds"),
          .samples = object.at("samples"),
          .epoch = number(object, "epoch"),
          .round = object.at("round"),
          .loss = number(object, "loss"),
          .throughput = number(object, "throughput"),
          .round_seconds = object.contains("round_seconds")
                               ? optional_number(object, "round_seconds")
                               : std::nullopt,
          .workers = workers_of(object, worker_status)};
}

Event event_in(const Json& object) {
  const std::string kind = object.at("event");
  if (kind == "started") {
    return started(object);
  }
  if (kind == "status") {
    return status(object);
  }
  if (kind == "evaluation") {
    return evaluation_from(object);
  }
  if (kind == "checkpoint") {
    return Checkpoint{object.at("path"), object.at("round")};
  }
  if (kind == "note") {
    return Note{object.at("text")};
  }
  if (kind == "finished") {
    return Finished{object.at("reason"), object.at("summary")};
  }
  if (kind == "failed") {
    return Failed{object.at("kind"), object.at("error")};
  }
  throw ProtocolError(
      fmt::format("an event of unknown kind '{}'", excerpt(kind, letters_of_an_event)));
}

}  // namespace

Event parse_event(std::string_view line) {
  try {
    return event_in(Json::parse(line));
  } catch (const nlohmann::json::exception&) {
    throw ProtocolError(fmt::format(
        "expected an event of the coordinator as JSON, found '{}'; run one build of Syncopate",
        excerpt(line, letters_of_an_event)));
  }
}

nlohmann::ordered_json left(std::uint32_t worker) {
  return {{"event", "left"}, {"worker", worker}};
}

std::optional<std::uint32_t> left_in(std::string_view line) {
  if (!line.starts_with(R"({"event":"left",)")) {
    return std::nullopt;
  }
  const Json event = Json::parse(line, /*cb=*/nullptr, /*allow_exceptions=*/false);
  const auto worker = event.find("worker");
  if (worker == event.end() || !worker->is_number_unsigned()) {
    return std::nullopt;
  }
  const auto number = worker->get<std::uint64_t>();
  return number <= std::numeric_limits<std::uint32_t>::max()
             ? std::optional(static_cast<std::uint32_t>(number))
             : std::nullopt;
}

std::optional<bool> end_in(std::string_view line) {
  if (line.starts_with(R"({"event":"finished",)")) {
    return true;
  }
  return line.starts_with(R"({"event":"failed",)") ? std::optional(false) : std::nullopt;
}

}  // namespace syncopate::events
