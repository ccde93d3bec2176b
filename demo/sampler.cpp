#include "sampler.h"

#include <algorithm>
#include <vector>

namespace demo {

void write_text(const Transformer& model, const rp::Dict& params, const Corpus& corpus,
                std::int64_t characters, std::int64_t seed, const std::function<bool(char)>& show) {
  constexpr double temperature = 0.7;
  constexpr std::int64_t prompt_length = 16;
  // The key of a step depends on its number, so the text depends on the seed alone.
  const auto next = rp::jit([&model](rp::Dict at, Array window, Array last, Array key, Array step) {
    const Array logits = model.apply(at, window)(0, last);
    return rp::random::categorical(rp::random::fold_in(key, step), logits / temperature);
  });

  const std::int64_t length = model.sizes.length;
  const Array key = rp::random::key(seed);
  std::vector<std::int32_t> text;
  for (const std::int32_t c : corpus.opening(std::min({prompt_length, length, characters}))) {
    text.push_back(c);
    if (!show(corpus.decode(c))) return;
  }
  while (static_cast<std::int64_t>(text.size()) < characters) {
    // The last characters, as many as the model can see; behind them what its mask hides.
    const std::int64_t seen = std::min(length, static_cast<std::int64_t>(text.size()));
    std::vector<std::int32_t> window(text.end() - seen, text.end());
    window.resize(static_cast<std::size_t>(length));
    const Array numbers = rp::array(window, rp::Shape{1, length});
    const Array last = rp::array(seen - 1, rp::int32),
                step = rp::array(static_cast<std::int64_t>(text.size()), rp::int32);
    text.push_back(next(params, numbers, last, key, step).item<std::int32_t>());
    if (!show(corpus.decode(text.back()))) return;
  }
}

}  // namespace demo
