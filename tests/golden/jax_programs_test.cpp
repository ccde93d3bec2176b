// Programs as JAX prints them: read, printed again, planned, and evaluated to the numbers that JAX
// computed. REPRISE_JAX_PROGRAMS=FOLDER takes the programs of another folder.
#include "api/primitives.h"
#include "program/check.h"
#include "program/parse.h"
#include "program/print.h"
#include "program/trace.h"
#include "runtime/compile.h"
#include "test_data.h"
#include <reprise/io.h>
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace reprise;

namespace {

std::filesystem::path folder() {
  const char* other = std::getenv("REPRISE_JAX_PROGRAMS");
  return other != nullptr ? other : golden_path("jaxprs");
}
std::vector<std::filesystem::path> programs() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() == ".jaxpr") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}
std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
bool needs_more(const std::string& text) {  // linear algebra, complex numbers
  for (const char* part : {" cholesky", " lu ", " fft[", "c64[", " triangular_solve[", " lu[",
                           " eigh[", " householder_product", " geqrf", " svd["}) {
    if (text.find(part) != std::string::npos) return true;
  }
  return false;
}

// Files hold keys as their words and bf16 as f32.
Array of_type(const Array& saved, const Type& wanted) {
  if (wanted.dtype == Dtype::key) return random::wrap_key_data(saved);
  return saved.astype(wanted.dtype);
}
Array as_saved(const Array& x) { return x.dtype() == Dtype::key ? random::key_data(x) : x; }

// 2e-5 of the largest magnitude, more for half precision; integers exactly. Some gradients are sums
// that cancel: of those JAX's numbers too are the rounding errors of what was added, which has the
// size of the other outputs.
double tolerance(Dtype d) {
  if (d == bfloat16) return 2e-2;
  return d == float16 ? 2e-3 : 2e-5;
}
double largest_magnitude(const Array& x) {
  double largest = 0;
  for (double v : x.to_vector<double>())
    largest = std::isfinite(v) ? std::max(largest, std::abs(v)) : largest;
  return largest;
}
void check_close(const Array& got, const Array& expected, double largest_of_all) {
  REQUIRE(got.shape() == expected.shape());
  const auto a = got.to_vector<double>(), b = expected.to_vector<double>();
  const double largest = largest_magnitude(expected);
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool is_same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    if (!is_same)
      worst = std::isfinite(a[i] - b[i]) ? std::max(worst, std::abs(a[i] - b[i])) : INFINITY;
  }
  const bool is_exact = !is_floating(got.dtype());
  const double rounding = 1e-6 * largest_of_all;
  CHECK(worst <= (is_exact ? 0 : std::max(tolerance(got.dtype()) * largest, rounding)));
}

Arrays inputs_of(const Program& p, const Dict& saved) {
  Arrays in;
  for (std::size_t i = 0; i < p.in.size(); ++i) {
    in.push_back(of_type(saved["in" + std::to_string(i)], p.in_types()[i]));
  }
  return in;
}
void check_outputs(const Arrays& got, const Dict& saved) {
  double largest = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!is_floating(got[i].dtype())) continue;
    largest = std::max(largest, largest_magnitude(saved["out" + std::to_string(i)]));
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    check_close(as_saved(got[i]), saved["out" + std::to_string(i)], largest);
  }
}

}  // namespace

TEST_CASE("programs that JAX printed compute what JAX computed") {
  int count = 0;
  for (const std::filesystem::path& path : programs()) {
    const std::string text = read_file(path), name = path.filename();
    if (needs_more(text)) continue;
    CAPTURE(name);
    try {
      const Program p = parse_program(text, all_primitives());
      check(p);
      const std::string printed = to_text(p);
      CHECK(to_text(parse_program(printed, all_primitives())) == printed);
      const auto compiled = compile(p);
      std::filesystem::path numbers = path;
      const Dict saved = io::load_npz(numbers.replace_extension(".npz").string());
      const Arrays in = inputs_of(p, saved);
      INFO("evaluated");
      check_outputs(eval(p, in), saved);
      INFO("compiled");
      check_outputs(compiled->run(in), saved);
    } catch (const std::exception& e) {
      const std::string what = e.what();
      FAIL_CHECK(what);
    }
    ++count;
  }
  CHECK(count > 20);
}

TEST_CASE("what JAX 0.10.2 printed is printed again as it was") {
  for (const std::filesystem::path& path : programs()) {
    const std::string name = path.filename();
    const std::string text = read_file(path);
    if (needs_more(text) || name.find("jax0.10.2") == std::string::npos) continue;
    // Here JAX prints variables of one program in another: the text does not say that they are the
    // same.
    if (name.starts_with("nnx_remat")) continue;
    CAPTURE(name);
    std::string printed, expected = text;
    constexpr std::string_view numpy = "np.int64(";
    for (std::size_t at = expected.find(numpy); at != std::string::npos;
         at = expected.find(numpy, at)) {
      expected.erase(expected.find(')', at), 1);
      expected.erase(at, numpy.size());
    }
    try {
      printed = to_text(parse_program(text, all_primitives()));
    } catch (const Error& e) {
      printed = e.what();
    }
    CHECK(printed + "\n" == expected);
  }
}

TEST_CASE("one error names all that a program needs and is not here") {
  std::string message;
  try {
    parse_program(
        "{ lambda ; a:c64[3] b:f32[3,3]. let\n    c:f32[3,3] = cholesky b\n    d:c64[3] = fft a\n"
        "    e:f32[3,3] = cholesky c\n    f:c64[3] = mul d (1+2j):c64[]\n  in (e, f) }",
        all_primitives());
  } catch (const ParseError& e) {
    message = e.reason;
    CHECK(e.line == 1);
  }
  CHECK(message ==
        "an unknown primitive, got `cholesky` (lines 2, 4), `fft` (line 3); a known dtype is "
        "expected, got "
        "`c64` (lines 1, 3, 5)");
}
