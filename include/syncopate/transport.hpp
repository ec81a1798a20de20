#pragma once

/// `syncopate::Transport`, the contract of messages between numbered nodes, which every backend
/// fulfils; and the errors that its calls throw.
#include "base/errors.hpp"
#include "transport/transport.hpp"
