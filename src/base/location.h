// The user's place while the library walks over programs, and what counts as the user's code.
#pragma once

#include "reprise/errors.h"

namespace reprise {

bool is_library_file(const char* file);  // the standard library or a public header of ours

// The equation being walked over stands for the user's place.
class AtEquation {
 public:
  explicit AtEquation(const Location& at);
  ~AtEquation();
  AtEquation(const AtEquation&) = delete;
  AtEquation& operator=(const AtEquation&) = delete;

 private:
  Location saved_;
  bool saved_set_;
};

}  // namespace reprise
