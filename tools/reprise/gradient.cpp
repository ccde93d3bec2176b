#include "gradient.h"

#include "api/linear_map.h"
#include "program/trace.h"
#include "remat/set_policy.h"
#include "reprise/remat.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <sstream>

namespace reprise::cli {
namespace {

bool is_loss(const Types& out) {
  return out.size() == 1 && out[0].shape.empty() && is_floating(out[0].dtype);
}

std::size_t input_called(const Input& input, const std::string& word) {
  const std::size_t consts = input.program->num_consts;
  const std::size_t arguments = input.names.size() - consts;
  std::size_t number = 0;
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (!word.empty() && end == word.data() + word.size()) {
    if (code == std::errc() && number < arguments) return consts + number;
    throw UsageError(
        str("--wrt: ", input.file, " has ", arguments, " arguments, counted from 0, got ", word));
  }
  const auto it = std::find(input.names.begin(), input.names.end(), word);
  if (it == input.names.end()) {
    throw UsageError(str("--wrt: ", input.file, " has no argument `", word, "`, it has ",
                         join(input.names, ", ")));
  }
  return static_cast<std::size_t>(it - input.names.begin());
}

}  // namespace

TypedFunction as_function(const Input& input) {
  detail::Callee f;
  f.run = [program = input.program](const Arrays& x) { return eval(*program, x); };
  f.name = input.file;
  f.arg_names = input.names;
  f.identity = input.file;
  return {std::move(f), input.placeholders()};
}

TypedFunction checkpointed(Input input, const PolicyChoice& choice) {
  if (choice.kind == PolicyChoice::as_written) return as_function(input);
  const bool has_own = has_checkpoints(*input.program);
  if (choice.kind == PolicyChoice::none) {
    input.program = without_checkpoints(input.program);
  } else if (has_own) {
    input.program = with_policy(input.program, choice.policy);
  }
  TypedFunction result = as_function(input);
  if (choice.kind == PolicyChoice::none || has_own) return result;
  std::vector<std::size_t> argument_of(result.args.size());
  std::iota(argument_of.begin(), argument_of.end(), std::size_t{0});
  result.function.run = [f = result.function, argument_of,
                         policy = choice.policy](const Arrays& x) {
    return detail::checkpoint(f, x, argument_of, x.size(), {.policy = policy});
  };
  return result;
}

TypedFunction with_gradients(const Input& input, const PolicyChoice& choice,
                             const std::vector<bool>& wrt) {
  TypedFunction result = checkpointed(input, choice);
  const Types out = input.program->out_types();
  const std::size_t primals = result.args.size();
  for (std::size_t k = 0; k < out.size() && !is_loss(out); ++k) {
    if (!is_floating(out[k].dtype)) continue;
    result.args.push_back(make_traced(out[k], {}));
    result.function.arg_names.push_back(str("ct", k));
  }
  result.function.run = [f = result.function, out, wrt, primals](const Arrays& x) {
    const Arrays args(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(primals));
    const detail::VjpOutputs v = detail::vjp(f, args, wrt);
    Arrays cotangents;
    std::size_t next = primals;
    for (std::size_t k = 0; k < out.size(); ++k) {
      if (is_loss(out)) {
        cotangents.push_back(make_number(make_literal(out[k].dtype, 1)));
      } else {  // that of an integer carries nothing: any value stands for it
        cotangents.push_back(is_floating(out[k].dtype) ? x[next++] : v.out[k]);
      }
    }
    const Arrays gradients = v.map.transposed(cotangents, {});
    Arrays results = v.out;
    for (std::size_t i = 0; i < primals; ++i) {
      if (wrt[i]) results.push_back(gradients[i]);
    }
    return results;
  };
  return result;
}

std::vector<bool> wrt_mask(const Input& input, const std::string& chosen) {
  const Types in = input.program->in_types(), out = input.program->out_types();
  const auto floating = [](const Type& t) { return is_floating(t.dtype); };
  if (std::none_of(out.begin(), out.end(), floating)) {
    throw InputError(str(input.file, ": error: no output is a floating-point number, so there is ",
                         "no derivative; `reprise plan --forward` plans it as it is"));
  }
  std::vector<bool> mask(in.size());
  std::istringstream words(chosen);
  for (std::string word; std::getline(words, word, ',');) {
    const std::size_t i = input_called(input, word);
    if (!floating(in[i])) {
      throw UsageError(str("--wrt: `", input.names[i], "` is ", in[i],
                           ", only floating-point arguments have derivatives"));
    }
    mask[i] = true;
  }
  if (!chosen.empty()) return mask;
  for (std::size_t i = input.program->num_consts; i < in.size(); ++i) mask[i] = floating(in[i]);
  if (std::none_of(mask.begin(), mask.end(), [](bool is_chosen) { return is_chosen; })) {
    throw InputError(str(input.file, ": error: no argument is a floating-point number, so there ",
                         "is no derivative; `reprise plan --forward` plans it as it is"));
  }
  return mask;
}

std::vector<std::string> names_in(const Input& input, const std::vector<bool>& mask) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i]) names.push_back(input.names[i]);
  }
  return names;
}

}  // namespace reprise::cli
