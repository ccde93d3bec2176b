// Which layers are called with what, while a table is made.
#pragma once

#include "reprise/nnx/module.h"

#include <string>
#include <vector>

namespace reprise::nnx::detail {

struct LayerCall {
  const Module* module;
  Type input, output;
};

// Notes the calls of this thread while it lives.
class Recorder {
 public:
  Recorder();
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  const std::vector<LayerCall>& calls() const { return calls_; }

 private:
  friend const Array& recorded(const Module& module, const Array& input, const Array& output);
  std::vector<LayerCall> calls_;
  Recorder* outer_;
};

// The output; notes the call if somebody wants to know.
const Array& recorded(const Module& module, const Array& input, const Array& output);

}  // namespace reprise::nnx::detail
