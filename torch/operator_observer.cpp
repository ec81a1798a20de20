#include "torch/operator_observer.hpp"

#include <memory>
#include <utility>

namespace syncopate::torch_backend {
namespace {

/// libtorch calls plain functions back, so the observer of a thread is found through this.
thread_local const std::function<void()>* observing = nullptr;

std::unique_ptr<at::ObserverContext> operator_begins(const at::RecordFunction&) {
  if (observing != nullptr) (*observing)();
  return nullptr;
}

}  // namespace

OperatorObserver::OperatorObserver(const std::function<void()>& ran)
    : before_(std::exchange(observing, &ran)),
      callback_(at::addThreadLocalCallback(
          at::RecordFunctionCallback(&operator_begins).scopes({at::RecordScope::FUNCTION}))) {}

OperatorObserver::~OperatorObserver() {
  at::removeCallback(callback_);
  observing = before_;
}

}  // namespace syncopate::torch_backend
