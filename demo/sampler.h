// Text from a trained model, character by character.
#pragma once

#include "corpus.h"
#include "model.h"

#include <cstdint>
#include <functional>

namespace demo {

// Begins like the corpus and goes on as the model likes, up to so many characters. `show` is given
// each one and says whether to continue.
void write_text(const Transformer& model, const rp::Dict& params, const Corpus& corpus,
                std::int64_t characters, std::int64_t seed, const std::function<bool(char)>& show);

}  // namespace demo
