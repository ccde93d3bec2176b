"""Tests of tools/api_reference.py and of tools/check_names.py, which reads headers with it."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import api_reference  # noqa: E402
import check_names  # noqa: E402


def header(text):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "include" / "reprise" / "h.h"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        return api_reference.Header(path, Path(folder))


class Reading(unittest.TestCase):
    def names(self, text):
        return [d.name for d in header(text).declarations]

    def test_names_of_all_kinds_of_declarations(self):
        self.assertEqual(["f", "g", "S", "E", "h", "A", "c", "operator+", "M", "k", "C"], self.names("""
Array f(Array x, std::function<int(int)> y = {});
template <class T, class U = std::vector<T>>
std::vector<T> g(T t) { return {t}; }
struct S { int a = 0; };
enum class E : int { a, b };
template <class F>
  requires(!std::is_convertible_v<F, int>)
auto h(F f) -> decltype(f()) { return f(); }
using A = std::vector<int>;
inline constexpr S c{};
Array operator+(Array x, Array y);
// Lists members.
#define M(...) \\
  f(__VA_ARGS__)
template <int N> class k : public S { int hidden; };
template <class T>
concept C = requires(T t) { t.size(); };
"""))

    def test_what_users_do_not_write_is_left_out(self):
        self.assertEqual(["Open"], self.names("""
struct Forward;
namespace reprise {
namespace detail {
void inside();
}
class Open {
 public:
  Open(int a) : a_(a) {}
  ~Open();
  Open(const Open&) = delete;
  friend struct Other;
  int visible() const { return a_; }

 private:
  int a_;
};
static_assert(true, "text; with { brackets");
template <class T>
void Open::outside() {}
}
"""))
        (declaration,) = header("class Open {\n public:\n  int a() { return 1; }\n private:\n  int b_;\n};\n").declarations
        self.assertEqual(["a"], [m.name for m in declaration.members])

    def test_a_comment_belongs_to_the_group_below_it(self):
        first, second, third = header("// Head.\n#pragma once\n\n// Both.\nvoid f();\nvoid g();  // last\n\nvoid h();\n").declarations
        self.assertEqual((["Both."], True), (first.comment, first.starts_group))
        self.assertEqual(([], "last", False), (second.comment, second.trailing, second.starts_group))
        self.assertTrue(third.starts_group)

    def test_a_definition_of_a_declared_template_is_shown_once(self):
        self.assertEqual(["f"], self.names("template <class T>\nvoid f(T t, int n = 1);\n\ntemplate <class T>\nvoid f(T t, int n) {}\n"))


class Writing(unittest.TestCase):
    TEXT = """// What it is for. And more:
//
//   example();
#pragma once

// ------------------------------------------------------------------------------ first part
// Adds one.
int f(int x) {
  return x + 1;
}
struct S {
  int a = 0;  // how many
};
"""

    def test_a_page_has_head_sections_comments_and_code_without_bodies(self):
        page = api_reference.page_text(header(self.TEXT))
        self.assertEqual("""# reprise/h.h

What it is for. And more:

```cpp
example();
```

## First part

Adds one.

```cpp
int f(int x);
struct S {
  int a = 0;  // how many
};
```
""", page)

    def test_the_summary_is_the_first_sentence(self):
        self.assertEqual("What it is for", header(self.TEXT).summary())

    def test_names_without_a_word_are_found(self):
        found = list(api_reference.undocumented([header("// Head.\n\nvoid f();\n\n// Said.\nvoid g();\n\nvoid h();  // said\n")]))
        self.assertEqual([("include/reprise/h.h", "f")], found)


class Names(unittest.TestCase):
    def offences(self, page):
        names, members = check_names.declared([header("void grad();\nstruct FOptions {};\nclass A {\n public:\n  void init();\n};\n")])
        return list(check_names.offences(page, names, members))

    def test_a_page_with_all_names_is_fine(self):
        self.assertEqual([], self.offences("| `jax.grad` | `rp::grad(f)` | `rp::A`, `rp::A::init` |"))

    def test_missing_and_invented_names_are_offences(self):
        self.assertEqual(["A of include/reprise/h.h is missing", "nn::Made_up is not declared in a public header"],
                         self.offences("| `rp::grad` | `nn::Made_up` | A |"))


if __name__ == "__main__":
    unittest.main()
