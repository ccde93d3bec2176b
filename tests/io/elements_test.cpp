#include "io/elements.h"

#include "io/files.h"

#include <iostream>
#include <sstream>

namespace reprise {
namespace {

using namespace io_test;

// What is printed as a warning meanwhile.
class Warnings {
 public:
  Warnings() : before_(std::cerr.rdbuf(text_.rdbuf())) {}
  ~Warnings() { std::cerr.rdbuf(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::streambuf* before_;
};

Dict wide_tree() {
  Dict out;
  out["a"]["w"] = array({1.5, -2.25}).astype(float64);
  out["n"] = array({7, -8}).astype(int64);
  out["u"] = array({7, 8}).astype(uint64);
  out["x"] = array({1.0, 2.0});
  return out;
}

TEST_CASE("float64 in a file is told once, with the file and the array") {
  const Folder folder;
  const std::string path = folder / "wide.npz";
  io::save_npz(path, wide_tree());
  const Warnings warnings;
  CHECK(io::load_npz(path).dict("a").array("w").dtype() == float64);
  io::load_npz(path);
  CHECK(warnings.text() ==
        "reprise: warning: load_npz: '" + path +
            "' holds float64, first in 'a/w': what is computed with it becomes float64 too, where "
            "JAX would load float32; {.x64 = false} does as JAX, {.x64 = true} keeps it without "
            "this warning\n");
}

TEST_CASE("x64 chooses: as the file has it, or 32 bits as in JAX") {
  const Folder folder;
  io::save_npz(folder / "wide.npz", wide_tree());
  io::save_safetensors(folder / "wide.safetensors", wide_tree());
  const Warnings warnings;
  for (const bool npz : {false, true}) {
    const auto load = [&](bool x64) {
      return npz ? io::load_npz(folder / "wide.npz", {.x64 = x64})
                 : io::load_safetensors(folder / "wide.safetensors", {.x64 = x64});
    };
    const Dict wide = load(true), narrow = load(false);
    CHECK(same(wide.dict("a").array("w"), wide_tree().dict("a").array("w")));
    CHECK(same(wide.array("n"), wide_tree().array("n")));
    CHECK(same(narrow.dict("a").array("w"), array({1.5, -2.25})));
    CHECK(same(narrow.array("n"), array({7, -8})));
    CHECK(same(narrow.array("u"), array({7, 8}).astype(uint32)));
    CHECK(same(narrow.array("x"), array({1.0, 2.0})));
  }
  // Into a tree of known dtypes there is nothing to be surprised by.
  CHECK(same(io::load_npz(folder / "wide.npz", wide_tree()).array("n"), wide_tree().array("n")));
  CHECK(warnings.text() == "");
}

TEST_CASE("an integer that 32 bits do not hold is an error, not another number") {
  const Folder folder;
  Dict tree;
  tree["n"] = full({1}, 3e9, int64);
  io::save_npz(folder / "x.npz", tree);
  CHECK_THROWS_WITH_AS(
      io::load_npz(folder / "x.npz", {.x64 = false}),
      doctest::Contains("an integer does not fit 32 bits, which x64 = false asks for, got "
                        "3000000000 in the array 'n'"),
      RuntimeError);
}

TEST_CASE("shapes of files never wrap, not even of empty arrays") {
  const std::uint64_t big = std::uint64_t{1} << 40;
  CHECK(io::bytes_of(float32, {3, 4}) == 48);
  CHECK(io::bytes_of(float32, {0, 4}) == 0);
  CHECK(!io::bytes_of(float32, {big, big}));
  CHECK(!io::bytes_of(float32, {0, big, big}));
}

}  // namespace
}  // namespace reprise
