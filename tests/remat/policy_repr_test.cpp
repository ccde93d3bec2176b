// Checkpoints in the text of a program: their policies are read back.
#include "api/primitives.h"
#include "error_text.h"
#include "program/parse.h"
#include "program/print.h"
#include "remat/checkpoint.h"
#include "reprise/reprise.h"

#include <doctest/doctest.h>

using namespace reprise;
namespace policies = checkpoint_policies;

namespace {

std::string text_with(const std::string& policy) {
  return "{ lambda ; a:f32[3]. let\n    b:f32[3] = remat2[\n      differentiated=False\n"
         "      jaxpr={ lambda ; c:f32[3]. let\n"
         "          d:f32[3] = sin c\n          e:f32[3] = name[name=h] d\n          f:f32[3] = "
         "sin e\n"
         "        in (f,) }\n      policy=" +
         policy + "\n      prevent_cse=True\n    ] a\n  in (b,) }";
}

std::vector<std::string> saved_by(const std::string& text) {
  const Jaxpr program = parse_jaxpr(text);
  auto f = [&](Array x) { return program.eval({x})[0]; };
  std::vector<std::string> lines;
  for (const SavedResidual& r : saved_residuals(f, arg("x", ones({3})))) lines.push_back(r.origin);
  return lines;
}

}  // namespace

TEST_CASE("a policy that a program prints is read back") {
  const Policy all[] = {policies::everything_saveable,
                        policies::nothing_saveable,
                        policies::dots_saveable,
                        policies::dots_with_no_batch_dims_saveable,
                        policies::save_only_these_names("a", "b"),
                        policies::save_only_these_names_list({}),
                        policies::save_any_names_but_these("h")};
  for (const Policy& p : all) {
    const std::optional<Policy> read = policy_from_repr(p.jax_repr());
    REQUIRE(read);
    CHECK(read->str() == p.str());
    const std::string text = text_with(p.jax_repr());
    CHECK(to_text(parse_program(text, all_primitives())) == text);
  }
}

TEST_CASE("a function's address is another one in every process") {
  CHECK(policy_from_repr("<function everything_saveable at 0x7f01c0ffee00>")->str() ==
        "everything_saveable");
}

TEST_CASE("flags of prevent_cse are read back") {
  CHECK(parse_flags("(True, False)") == std::vector<bool>{true, false});
  CHECK(parse_flags("(False,)") == std::vector<bool>{false});
  CHECK(!parse_flags("(1, 2)"));
  CHECK(!parse_flags("True"));
}

TEST_CASE("a checkpoint that was read saves what its policy says") {
  CHECK(saved_by(text_with("None")) == std::vector<std::string>{"from the argument x"});
  CHECK(saved_by(text_with("SaveOnlyTheseNames(saveable_names=frozenset({'h'}))")).size() == 2);
}

TEST_CASE("a policy whose text does not tell what it saves can be printed but not used") {
  const std::string text = text_with("<function my_policy at 0xXXXXXXXXXXXX>");
  CHECK(parse_jaxpr(text).str() == text);
  CHECK(message<TypeError>([&] { saved_by(text); }) ==
        "checkpoint: the text of the program does not tell what its policy saves, got <function "
        "my_policy at 0xXXXXXXXXXXXX>");
}
