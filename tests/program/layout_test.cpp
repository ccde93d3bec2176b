#include "program/layout.h"

#include <doctest/doctest.h>

#include <functional>
#include <initializer_list>

using namespace reprise;

namespace {

// [a b c] or one item per line
void bracketed(Layout& doc, std::initializer_list<const char*> items) {
  doc.group([&] {
    doc.nest(2, [&] {
      doc.text("[");
      doc.brk("");
      for (const char* item : items) {
        if (item != *items.begin()) doc.brk();
        doc.text(item);
      }
    });
    doc.brk("");
    doc.text("]");
  });
}

}  // namespace

TEST_CASE("an empty document is an empty text") { CHECK(Layout().render(80) == ""); }

TEST_CASE("a group that fits is flat") {
  Layout doc;
  bracketed(doc, {"axis=0", "sizes=(3, 3)"});
  CHECK(doc.render(80) == "[axis=0 sizes=(3, 3)]");
}

TEST_CASE("a group may end exactly in the last column") {
  Layout doc;
  bracketed(doc, {"ab", "cd"});
  CHECK(doc.render(7) == "[ab cd]");
  CHECK(doc.render(6) == "[\n  ab\n  cd\n]");
}

TEST_CASE("a break outside of every group ends the line") {
  Layout doc;
  doc.text("a");
  doc.brk();
  doc.text("b");
  CHECK(doc.render(80) == "a\nb");
}

TEST_CASE("text after a group is not counted") {
  Layout doc;
  bracketed(doc, {"ab", "cd"});
  doc.text(" and more");
  CHECK(doc.render(7) == "[ab cd] and more");
}

TEST_CASE("text before a group is counted") {
  Layout doc;
  doc.text("x = ");
  bracketed(doc, {"ab", "cd"});
  CHECK(doc.render(11) == "x = [ab cd]");
  CHECK(doc.render(10) == "x = [\n  ab\n  cd\n]");
}

TEST_CASE("a group in a broken group decides for itself") {
  Layout doc;
  doc.group([&] {
    doc.text("{");
    doc.nest(4, [&] {
      doc.brk();
      bracketed(doc, {"a", "b"});
      doc.brk();
      bracketed(doc, {"long", "items"});
    });
    doc.text("}");
  });
  CHECK(doc.render(10) == "{\n    [a b]\n    [\n      long\n      items\n    ]}");
}

TEST_CASE("a break that is a group of its own fills the line") {
  Layout doc;
  doc.nest(2, [&] {
    for (int i = 0; i < 6; ++i) {
      if (i > 0) doc.group([&] { doc.brk(); });
      doc.text("abc");
    }
  });
  CHECK(doc.render(8) == "abc abc abc\n  abc abc\n  abc");
}

TEST_CASE("trailing spaces stay") {
  Layout doc;
  doc.text("iota ");
  doc.brk();
  doc.nest(2, [&] { doc.brk(); });
  CHECK(doc.render(80) == "iota \n\n  ");
}

TEST_CASE("notes begin in one column after the longest line") {
  Layout doc;
  doc.text("a = ", "first");
  doc.text("sin");
  doc.brk();
  doc.text("a longer line");
  doc.brk();
  doc.text("b", "second");
  CHECK(doc.render(80) == "a = sin       # first\na longer line\nb             # second");
}

TEST_CASE("a second note of a line has a line of its own") {
  Layout doc;
  doc.group([&] {
    doc.text("a", "first");
    doc.brk();
    doc.text("b", "second");
  });
  CHECK(doc.render(80) == "a b # first\n    # second");
}

TEST_CASE("many nested groups are laid out in linear time") {
  Layout doc;
  const std::function<void(int)> deeper = [&](int depth) {
    doc.text("(");
    if (depth > 0) doc.group([&] { deeper(depth - 1); });
    doc.text(")");
  };
  for (int i = 0; i < 1000; ++i) deeper(100);
  CHECK(doc.render(80).size() == 202000);
}
