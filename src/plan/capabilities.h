// What an engine can do, as far as plans depend on it.
#pragma once

#include "program/primitive.h"

namespace reprise::plan {

struct Capabilities {
  // Whether an elementwise primitive has vector code; one without is evaluated. Null: all have.
  bool (*has_vector_code)(const Primitive&) = nullptr;
  bool knows(const Primitive& p) const {
    return p.kind != Kind::elementwise || has_vector_code == nullptr || has_vector_code(p);
  }
};

}  // namespace reprise::plan
