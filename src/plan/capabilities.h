// What an engine can do, as far as plans depend on it.
#pragma once

#include "plan/matmul_spec.h"
#include "program/primitive.h"

namespace reprise::plan {

struct Capabilities {
  // Whether an elementwise primitive has vector code; one without is evaluated. Null: all have.
  bool (*has_vector_code)(const Primitive&) = nullptr;
  bool knows(const Primitive& p) const {
    return p.kind != Kind::elementwise || has_vector_code == nullptr || has_vector_code(p);
  }
  // Products of its own code, to which something can be added before the result is rounded, and of
  // which slices are computed alike. Null: it has none.
  bool (*tiles)(const MatmulSpec&) = nullptr;
  bool tile(const MatmulSpec& s) const { return tiles != nullptr && tiles(s); }
  // Products that are one call that shares its parts among threads by itself. Null: none is.
  bool (*shares_threads)(const MatmulSpec&) = nullptr;
  bool share_threads(const MatmulSpec& s) const {
    return shares_threads != nullptr && shares_threads(s);
  }
};

}  // namespace reprise::plan
