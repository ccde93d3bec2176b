#include "io/files.h"
#include "io/npy.h"
#include "io/zip.h"

namespace reprise {
namespace {

using namespace io_test;

Dict load(const std::string& path) { return io::load_npz(path); }

// An archive with one entry of the given content.
void write_archive(const std::string& path, const std::string& name, const std::string& content,
                   bool deflate) {
  io::OutputFile file("test", path);
  io::ZipWriter archive(file);
  archive.add(name, content, nullptr, 0, deflate);
  archive.finish();
  file.commit();
}
std::string npy(const std::string& dictionary, const std::string& data) {
  std::string out(io::npy_magic);
  out += {'\1', '\0', static_cast<char>(dictionary.size()), '\0'};
  return out + dictionary + data;
}

TEST_CASE("files of numpy.savez and savez_compressed are read") {
  for (const char* name : {"numpy.npz", "numpy_compressed.npz"}) {
    INFO(name);
    const Dict file = load(test_file(name));
    check_python_file(file);
    CHECK(same(file.array("fortran"), arange(6).astype(float64).reshape({3, 2})));
    CHECK(same(file.array("big_endian"), arange(5)));
    CHECK(same(file.array("cube"), arange(24).reshape({2, 3, 4})));
  }
}

TEST_CASE("all dtypes and shapes come back from .npz as they were") {
  for (const bool compressed : {false, true}) {
    const Folder folder;
    Dict tree;
    for (const Dtype dtype : all_dtypes())
      tree["dtypes"][std::string(short_name(dtype))] = sample(dtype);
    tree["scalar"] = full({}, 2.5, float32);
    tree["empty"] = zeros({3, 0, 2});
    tree["long"] = random::normal(random::key(0), {100, 200});
    tree["zeros"] = zeros({300, 300});
    io::save_npz(folder / "x.npz", tree, {.compressed = compressed});
    const Dict back = load(folder / "x.npz");
    CHECK(named_leaves(back).paths == named_leaves(tree).paths);
    const Arrays ours = tree_leaves(tree), theirs = tree_leaves(back);
    for (std::size_t i = 0; i < ours.size(); ++i) CHECK(same(ours[i], theirs[i]));
    CHECK(folder.files() == 1);
    CHECK((std::filesystem::file_size(folder / "x.npz") < 200000) == compressed);
  }
}

TEST_CASE("equal trees give equal .npz files") {
  const Folder folder;
  io::save_npz(folder / "a.npz", small_tree());
  io::save_npz(folder / "b.npz", small_tree());
  CHECK(read_bytes(folder / "a.npz") == read_bytes(folder / "b.npz"));
}

TEST_CASE("headers of .npy are those of numpy") {
  const std::string one = io::npy_header({float32, {3}});
  CHECK(one.size() == 128);
  CHECK(begins(one.substr(10), "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }   "));
  CHECK(one.back() == '\n');
  CHECK(begins(io::npy_header({bool_, {}}).substr(10),
               "{'descr': '|b1', 'fortran_order': False, 'shape': (), }"));
  CHECK(begins(io::npy_header({bfloat16, {2, 3}}).substr(10),
               "{'descr': '<V2', 'fortran_order': False, 'shape': (2, 3), }"));
}

TEST_CASE("archives with wide numbers, and with many entries, are written and read") {
  const Folder folder;
  {
    io::OutputFile file("test", folder / "wide.npz");
    io::ZipWriter archive(file, /*wide_from=*/10);
    for (const char* name : {"a.npy", "b.npy"}) {
      archive.add(name, npy("{'descr': '<i4', 'fortran_order': False, 'shape': (1,)}", ""),
                  "\7\0\0\0", 4, false);
    }
    archive.finish();
    file.commit();
  }
  CHECK(load(folder / "wide.npz").array("b").item<int>() == 7);
  {
    io::OutputFile file("test", folder / "many.npz");
    io::ZipWriter archive(file);
    const std::string content = npy("{'descr':'|u1','fortran_order':False,'shape':()}", "x");
    for (int i = 0; i < 66000; ++i)
      archive.add(std::to_string(i) + ".npy", content, nullptr, 0, false);
    archive.finish();
    file.commit();
  }
  CHECK(load(folder / "many.npz").size() == 66000);
}

TEST_CASE("a .npy header that cannot be understood is refused with a reason") {
  const Folder folder;
  auto error = [&](const std::string& content) {
    write_archive(folder / "x", "a.npy", content, true);
    return error_of([&] { load(folder / "x"); }).substr(std::string("load_npz: ").size());
  };
  auto dictionary_error = [&](const std::string& text) {
    const std::string full_text = error(npy(text, "1234"));
    const std::string start = "a .npy header cannot be understood, got ";
    return begins(full_text, start) ? full_text.substr(start.size()) : full_text;
  };
  CHECK(begins(error("hello world"), "an entry is not a .npy file, got 'a.npy'"));
  CHECK(begins(error(std::string(io::npy_magic) + '\4' + std::string(20, '\0')),
               "an entry is not a .npy file"));
  CHECK(begins(error("short"), "an entry ends too early, got 'a.npy'"));
  CHECK(begins(error(std::string(io::npy_magic) + std::string("\2\0\xFF\xFF\xFF\x7F", 6)),
               "a .npy header is too long, got 2147483647 bytes in 'a.npy'"));
  CHECK(begins(dictionary_error("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"),
               "the dtype |O, which is not supported in 'a.npy'"));
  CHECK(begins(dictionary_error("{'descr': '<U3', 'fortran_order': False, 'shape': (1,)}"),
               "the dtype <U3"));
  CHECK(begins(dictionary_error("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}"),
               "the dtype <c8"));
  CHECK(begins(dictionary_error("{'descr': '', 'fortran_order': False, 'shape': (1,)}"),
               "the dtype ,"));
  CHECK(begins(dictionary_error("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}"),
               "no \" where it must be"));
  CHECK(begins(dictionary_error("{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}"),
               "neither True nor False"));
  CHECK(begins(dictionary_error("{'descr': '<f4', 'fortran_order': False, 'shape': (x,)}"),
               "a dimension that is no number"));
  CHECK(begins(dictionary_error("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"),
               "a dimension that is no number"));
  CHECK(begins(
      dictionary_error("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'descr': '<f4'}"),
      "a key twice or an unknown one"));
  CHECK(begins(dictionary_error("{'descr': '<f4', 'other': False, 'shape': (1,)}"),
               "a key twice or an unknown one"));
  CHECK(begins(dictionary_error("{'descr': '<f4', 'shape': (1,)}"),
               "descr, fortran_order or shape missing"));
  CHECK(begins(dictionary_error("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x"),
               "more text after the dictionary"));
  CHECK(begins(dictionary_error("{'descr"), "a text without its end"));
  CHECK(begins(dictionary_error(""), "no { where it must be"));
  std::string ones;
  for (int i = 0; i < 65; ++i) ones += "1,";
  CHECK(begins(dictionary_error("{'descr':'<f4','fortran_order':True,'shape':(" + ones + ")}"),
               "more than 64 dimensions"));
  for (const char* shape :
       {"(2,)", "(0,)", "(9999999999999999999,)", "(4294967296, 4294967296, 4294967296)"}) {
    INFO(shape);
    CHECK(
        begins(dictionary_error(std::string("{'descr': '<f4', 'fortran_order': False, 'shape': ") +
                                shape + "}"),
               "the size of an array must follow from its shape, got 4 bytes in 'a.npy'"));
  }
  CHECK(begins(error(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", "2")),
               "a bool must be 0 or 1, got 50 in the array 'a.npy'"));
}

TEST_CASE("hostile archives are refused with a reason") {
  const Folder folder;
  const std::string path = folder / "x";
  auto error = [&](const std::string& bytes) {
    write_bytes(path, bytes);
    return error_of([&] { load(path); }).substr(std::string("load_npz: ").size());
  };
  CHECK(begins(error(""), "not a zip archive, or truncated: no end record"));
  CHECK(begins(error(std::string(1000, 'x')), "not a zip archive, or truncated: no end record"));
  write_archive(path, "a.txt", "hello", false);
  CHECK(begins(error(read_bytes(path)), "an entry is not a .npy file, got 'a.txt'"));

  const std::string content =
      npy("{'descr': '<i4', 'fortran_order': False, 'shape': (1,)}", "1234");
  write_archive(path, "a.npy", content, false);
  const std::string good = read_bytes(path);
  const std::size_t central = good.find("PK\1\2"), end = good.find("PK\5\6");
  auto changed = [&](std::size_t at, char value) {
    std::string bytes = good;
    bytes[at] = value;
    return bytes;
  };
  CHECK(load(path).array("a").size() == 1);
  CHECK(begins(error(changed(central + 8, 1)), "an entry is encrypted, got 'a.npy'"));
  CHECK(begins(error(changed(central + 10, 14)),
               "a compression is not supported, got method 14 for 'a.npy'"));
  CHECK(begins(error(changed(central + 16, good[central + 16] + 1)),
               "the checksum of an entry is wrong, got 'a.npy'"));
  CHECK(begins(error(changed(central - 1, 'x')), "the checksum of an entry is wrong"));
  CHECK(begins(error(changed(central + 24, 1)),
               "an entry cannot have the size it claims, got 1 bytes for 'a.npy'"));
  CHECK(begins(error(changed(central + 23, 1)), "an entry must lie inside the file, got 'a.npy'"));
  CHECK(begins(error(changed(central + 42, 1)), "the two headers of an entry differ, got 'a.npy'"));
  CHECK(
      begins(error(changed(central + 46, 'b')), "the two headers of an entry differ, got 'b.npy'"));
  CHECK(
      begins(error(changed(central + 28, 100)), "an entry of the directory does not fit into it"));
  CHECK(begins(error(changed(end + 10, 2)),
               "the directory does not hold the entries it counts, got 2"));
  CHECK(begins(error(changed(end + 19, 1)), "the directory must lie inside the file"));
  // The same entry twice in the directory: its bytes would be used twice.
  std::string twice = good.substr(0, end) + good.substr(central, end - central) + good.substr(end);
  const std::size_t new_end = twice.find("PK\5\6");
  twice[new_end + 8] = twice[new_end + 10] = 2;
  twice[new_end + 12] = static_cast<char>(2 * (end - central));
  CHECK(begins(error(twice), "entries overlap, got 'a.npy' and 'a.npy'"));
  // Two entries of one name.
  {
    io::OutputFile file("test", path);
    io::ZipWriter archive(file);
    archive.add("a.npy", content, nullptr, 0, false);
    archive.add("a.npy", content, nullptr, 0, false);
    archive.finish();
    file.commit();
  }
  CHECK(begins(error(read_bytes(path)), "an entry stands twice, got 'a.npy'"));
}

TEST_CASE("packed data that is not what the directory says is refused") {
  const Folder folder;
  const std::string path = folder / "x";
  const std::string content =
      npy("{'descr': '|u1', 'fortran_order': False, 'shape': (999,)}", std::string(999, 'x'));
  write_archive(path, "a.npy", content, true);
  const std::string good = read_bytes(path);
  const std::size_t central = good.find("PK\1\2");
  auto error = [&](const std::string& bytes) {
    write_bytes(path, bytes);
    return error_of([&] { load(path); }).substr(std::string("load_npz: ").size());
  };
  auto with_size = [&](std::uint32_t size) {
    std::string bytes = good;
    for (int i = 0; i < 4; ++i)
      bytes[central + 24 + static_cast<std::size_t>(i)] = static_cast<char>(size >> (8 * i));
    return bytes;
  };
  const auto size = static_cast<std::uint32_t>(content.size());
  CHECK(load(path).array("a").size() == 999);
  CHECK(begins(error(with_size(size + 1)),
               "the size of an array must follow from its shape, got 1000 bytes"));
  CHECK(begins(error(with_size(0x7FFFFFFF)),
               "an entry cannot have the size it claims, got 2147483647 bytes"));
  std::string broken = good;
  broken[central - 8] = static_cast<char>(broken[central - 8] ^ 0xFF);
  CHECK(!begins(error(broken), "no error"));
  // The data is one byte longer or shorter than the array.
  for (const int more : {1, -1}) {
    const std::string shape = std::to_string(999 - more);
    const std::string other =
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': (" + shape + ",)}",
            std::string(999, 'x'));
    write_archive(path, "a.npy", other, true);
    std::string bytes = read_bytes(path);
    const std::size_t at = bytes.find("PK\1\2") + 24;
    const auto claimed =
        static_cast<std::uint32_t>(other.size()) - static_cast<std::uint32_t>(more);
    for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(claimed >> (8 * i));
    CHECK(!begins(error(bytes), "no error"));
  }
}

TEST_CASE("data that inflates beyond measure needs permission") {
  const Folder folder;
  const std::string path = folder / "x.npz";
  Dict tree;
  tree["zeros"] = zeros({20, 1024, 1024});
  io::save_npz(path, tree, {.compressed = true});
  CHECK(begins(error_of([&] { load(path); }), "load_npz: the compressed data is "));
  CHECK(error_of([&] { load(path); }).find("more than .max_inflation allows") != std::string::npos);
  CHECK(io::load_npz(path, {.max_inflation = 2000}).array("zeros").size() == 20 << 20);
}

TEST_CASE("a damaged .npz file is an error or valid, at every byte") {
  const Folder folder;
  for (const bool compressed : {false, true}) {
    io::save_npz(folder / "x", small_tree(), {.compressed = compressed});
    check_damaged(read_bytes(folder / "x"), folder / "y", load);
  }
}

}  // namespace
}  // namespace reprise
