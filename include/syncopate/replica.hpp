#pragma once

/// `syncopate::Replica`, the interface of one copy of a model: three flat vectors (parameters,
/// gradients, buffers), a backward pass, and a local step. Derive from it to train a model of any
/// library; `syncopate/torch.hpp` makes one of a `torch::nn::Module`.
#include "data/batch.hpp"
#include "scheme/replica.hpp"
