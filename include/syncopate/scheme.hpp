#pragma once

/// `syncopate::all_schemes`, the names, formulas and options of all schemes; and
/// `syncopate::SchemeSpec` and `syncopate::Scheme`, which a new scheme defines (`docs/hacking.md`).
#include "scheme/scheme.hpp"
#include "scheme/scheme_spec.hpp"
