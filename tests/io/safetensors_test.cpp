#include "io/files.h"
#include "reprise/optim.h"

#include <cstring>

namespace reprise {
namespace {

using namespace io_test;

Dict load(const std::string& path) { return io::load_safetensors(path); }

// A file from the text of its header.
std::string with_header(const std::string& header, const std::string& data = "",
                        std::optional<std::uint64_t> length = std::nullopt) {
  const std::uint64_t n = length.value_or(header.size());
  std::string out(8, '\0');
  std::memcpy(out.data(), &n, 8);
  return out + header + data;
}

TEST_CASE("a file of the Python package is read") {
  check_python_file(load(test_file("python.safetensors")));
  const io::Metadata notes = io::load_safetensors_metadata(test_file("python.safetensors"));
  CHECK(notes == io::Metadata{{"format", "np"}, {"note", "made by Python"}});
}

TEST_CASE("all dtypes and shapes come back from .safetensors as they were") {
  const Folder folder;
  Dict tree;
  for (const Dtype dtype : all_dtypes())
    tree["dtypes"][std::string(short_name(dtype))] = sample(dtype);
  tree["scalar"] = full({}, 2.5, float32);
  tree["empty"] = zeros({3, 0, 2});
  tree["\"quoted\" \u00fc"] = array({1});
  io::save_safetensors(folder / "x.safetensors", tree, {.metadata = {{"step", "7"}}});
  const Dict back = load(folder / "x.safetensors");
  CHECK(named_leaves(back).paths == named_leaves(tree).paths);
  const Arrays ours = tree_leaves(tree), theirs = tree_leaves(back);
  for (std::size_t i = 0; i < ours.size(); ++i) CHECK(same(ours[i], theirs[i]));
  CHECK(io::load_safetensors_metadata(folder / "x.safetensors") == io::Metadata{{"step", "7"}});
}

TEST_CASE("data begins aligned and arrays lie without gaps, widest elements first") {
  const Folder folder;
  io::save_safetensors(folder / "x.safetensors", small_tree());
  const std::string bytes = read_bytes(folder / "x.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  CHECK(length % 8 == 0);
  CHECK(begins(bytes.substr(8), R"({"a/w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                                R"("n":{"dtype":"I32","shape":[1],"data_offsets":[16,20]},)"
                                R"("a/on":{"dtype":"BOOL","shape":[2],"data_offsets":[20,22]}})"));
  CHECK(bytes.size() == 8 + length + 22);
}

TEST_CASE("names are split at the separator of your choice") {
  const Folder folder;
  const std::string path = folder / "x.safetensors";
  io::save_safetensors(path, small_tree(), {.separator = "."});
  CHECK(io::load_safetensors(path).contains("a.w"));
  CHECK(io::load_safetensors(path, {.separator = "."}).dict("a").array("w").size() == 4);
  CHECK(io::load_safetensors(path, {.separator = ""}).contains("a.w"));
}

struct Layer {
  Array w, b;
  REPRISE_FIELDS(w, b)
};

TEST_CASE("trees of known structure are filled from a file") {
  const Folder folder;
  const std::string path = folder / "x.safetensors";
  const std::vector<Layer> model{{ones({2, 2}), zeros({2})}, {ones({2, 1}), zeros({1})}};
  io::save_safetensors(path, model);
  CHECK(load(path).dict("1").array("w").shape() == Shape{2, 1});
  const std::vector<Layer> like{{zeros({2, 2}), zeros({2})}, {zeros({2, 1}), zeros({1})}};
  CHECK(io::load_safetensors(path, like)[1].w.to_vector<float>() == std::vector<float>{1, 1});
  const std::vector<Layer> other{{zeros({2, 3}), zeros({2})}};
  CHECK(begins(error_of([&] { io::load_safetensors(path, other); }),
               "from_dict: the types of '0/w' differ, got f32[2,2] for f32[2,3]\n  at "
               "safetensors_test.cpp:"));
  const std::vector<Layer> longer(3, Layer{ones({1}), ones({1})});
  CHECK(begins(error_of([&] {
                 io::load_safetensors(path, std::vector<Layer>(longer.begin() + 2, longer.end()));
               }),
               "from_dict: the types of '0/w' differ"));
}

TEST_CASE("the state of an optimiser is saved and continued") {
  const Folder folder;
  Dict params = small_tree();
  const optim::GradientTransformation adam = optim::adam(0.1);
  auto [updates, state] = adam.update(params, adam.init(params), params);
  io::save_safetensors(folder / "state.safetensors", state);
  const Dict back = io::load_safetensors(folder / "state.safetensors", state);
  auto [first, a] = adam.update(params, state, params);
  auto [second, b] = adam.update(params, back, params);
  CHECK(same(first.dict("a").array("w"), second.dict("a").array("w")));
  CHECK(back.dict("0").array("count").item<int>() == 1);
}

TEST_CASE("saving replaces a file at once or leaves it") {
  const Folder folder;
  const std::string path = folder / "x.safetensors";
  io::save_safetensors(path, small_tree());
  std::filesystem::permissions(
      path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  Dict bigger = small_tree();
  bigger["more"] = ones({1000});
  io::save_safetensors(path, bigger);
  CHECK(load(path).array("more").size() == 1000);
  CHECK(folder.files() == 1);  // nothing left beside it
  CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::group_read) ==
        std::filesystem::perms::none);

  Dict unsavable = bigger;
  unsavable["key"] = random::key(0);
  CHECK_THROWS_AS(io::save_safetensors(path, unsavable), TypeError);
  auto traced = [&](Array x) {
    bigger["more"] = x;  // its numbers are not known inside jit
    io::save_safetensors(path, bigger);
    return x;
  };
  CHECK_THROWS_AS(jit(traced)(ones({2})), TraceError);
  CHECK(load(path).array("more").size() == 1000);
  CHECK(folder.files() == 1);
}

TEST_CASE("saving through a symbolic link replaces the file it points to") {
  const Folder folder;
  io::save_safetensors(folder / "real.safetensors", small_tree());
  std::filesystem::create_symlink(folder / "real.safetensors", folder / "link.safetensors");
  Dict other;
  other["x"] = array({1});
  io::save_safetensors(folder / "link.safetensors", other);
  CHECK(std::filesystem::is_symlink(folder / "link.safetensors"));
  CHECK(load(folder / "real.safetensors").contains("x"));
}

TEST_CASE("what cannot be saved is an error") {
  const Folder folder;
  const std::string path = folder / "x.safetensors";
  auto error = [&](const Dict& tree) {
    return error_of([&] { io::save_safetensors(path, tree); });
  };
  Dict tree;
  tree["key"] = random::key(0);
  const std::string key_error = error(tree);
  CHECK(begins(key_error,
               "save_safetensors: PRNG keys have no form in files, got key<fry>[] in 'key'\n"
               "  at safetensors_test.cpp:"));
  CHECK(key_error.find("hint: save rp::random::key_data(key)") != std::string::npos);
  Dict slash;
  slash["a/b"]["c"] = array({1});
  CHECK(begins(error(slash), "save_safetensors: a key must not hold the separator '/', got 'a/b'"));
  Dict reserved;
  reserved["__metadata__"] = array({1});
  CHECK(
      begins(error(reserved), "save_safetensors: the name '__metadata__' is taken by the format"));
  Dict latin;
  latin["\xE4"] = array({1});
  CHECK(begins(error(latin), "save_safetensors: names and metadata must be valid UTF-8"));
  CHECK(begins(error_of([&] { io::save_safetensors(path, Array(ones({2}))); }),
               "save_safetensors: a single array has no name, got f32[2]"));
  CHECK(begins(error_of([&] { io::save_safetensors(folder / "none/x.safetensors", small_tree()); }),
               "save_safetensors: cannot write '" + (folder / "none/x.safetensors") +
                   "', got No such file or directory"));
  CHECK(folder.files() == 0);
}

TEST_CASE("files that are not there or not files are errors") {
  const Folder folder;
  CHECK(begins(error_of([&] { load(folder / "none"); }), "load_safetensors: cannot open '" +
                                                             (folder / "none") +
                                                             "', got No such file or directory\n"));
  CHECK(begins(error_of([&] { load(folder.path().string()); }),
               "load_safetensors: not a regular file, got '" + folder.path().string() + "'"));
}

TEST_CASE("hostile headers are refused with a reason") {
  const Folder folder;
  auto error = [&](const std::string& bytes) {
    write_bytes(folder / "x", bytes);
    return error_of([&] { load(folder / "x"); }).substr(std::string("load_safetensors: ").size());
  };
  const std::string f32x2 = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  const std::string eight = "12345678";
  CHECK(begins(error(""), "the file ends too early, got 0 bytes where 8 are needed at 0"));
  CHECK(begins(
      error(with_header("{}", "", std::uint64_t{1} << 63)),
      "the header must lie inside the file, got a length of 9223372036854775808 in 10 bytes"));
  CHECK(begins(error(with_header("")), "the header must begin with {"));
  CHECK(begins(error(with_header("[]")), "the header must begin with {"));
  CHECK(begins(error(with_header("{\"a\":")), "the header is not JSON, got an error at its byte"));
  CHECK(begins(error(with_header("{} {}")), "the header is not JSON"));
  CHECK(begins(error(with_header("{\"\xFF\":1}")), "the header is not JSON"));
  CHECK(begins(error(with_header("{\"a\":" + f32x2 + ",\"a\":" + f32x2 + "}", eight)),
               "the header has the name 'a' twice"));
  CHECK(begins(error(with_header(R"({"a":{"dtype":"F32","dtype":"F32"}})")),
               "the header has the name 'dtype' twice"));
  CHECK(begins(error(with_header(R"({"a":{"dtype":"F32","shape":[2]}})")),
               "the header must give dtype, shape and data_offsets, got less for 'a'"));
  CHECK(begins(error(with_header(R"({"a":1})")),
               "the header does not have the form of the format, got a number at 'a'"));
  for (const char* value :
       {"null", "true", "-1", "1.5", "\"x\"", "[]", "{}", "[[1]]", "[\"x\"]", "[null]"}) {
    INFO(value);
    CHECK(begins(error(with_header(std::string(R"({"a":{"shape":)") + (*value == '[' ? "[" : "") +
                                   value + (*value == '[' ? "]" : "") + "}}")),
                 "the header does not have the form of the format"));
  }
  CHECK(
      begins(error(with_header(R"({"a":{"dtype":"F4","shape":[2],"data_offsets":[0,8]}})", eight)),
             "a dtype is not supported, got F4 for 'a'"));
  CHECK(
      begins(error(with_header(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", eight)),
             "the size of an array must follow from its shape, got 8 bytes for 'a'"));
  CHECK(begins(
      error(with_header(
          R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})", eight)),
      "the size of an array must follow from its shape"));
  CHECK(
      begins(error(with_header(
                 R"({"a":{"dtype":"F32","shape":[18446744073709551615,0],"data_offsets":[0,0]}})")),
             "the size of an array must follow from its shape"));
  CHECK(begins(
      error(with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,16]}})", eight)),
      "an array must lie inside the file, got bytes 0 to 16 of 8 for 'a'"));
  CHECK(
      begins(error(with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", eight)),
             "an array must lie inside the file, got bytes 8 to 0 of 8"));
  CHECK(begins(
      error(with_header(
          "{\"a\":" + f32x2 + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", eight)),
      "arrays must neither overlap nor leave gaps, got one from byte 4 after the end at 8 for "
      "'b'"));
  CHECK(
      begins(error(with_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", eight)),
             "arrays must neither overlap nor leave gaps, got one from byte 4 after the end at 0"));
  CHECK(begins(error(with_header("{\"a\":" + f32x2 + "}", eight + "9")),
               "the arrays must fill the file, got 1 bytes more"));
  CHECK(begins(
      error(with_header(R"({"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", "\1\2")),
      "a bool must be 0 or 1, got 2 in the array 'a'"));
  const std::string two = R"({"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  CHECK(begins(error(with_header("{\"a\":" + two + ",\"a/b\":" + two + "}")),
               "one name is the beginning of another"));
  CHECK(begins(error(with_header("{\"" + std::string(300, '/') + "\":" + two + "}")),
               "a name has more than 256 parts, got one of 300 bytes"));
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  CHECK(begins(error(with_header(R"({"a":{"shape":[)" + ones + "]}}")),
               "the header does not have the form of the format, got a list of more than 64 "
               "numbers at 'shape'"));
}

TEST_CASE("a damaged .safetensors file is an error or valid, at every byte") {
  const Folder folder;
  io::save_safetensors(folder / "x", small_tree(), {.metadata = {{"k", "v"}}});
  check_damaged(read_bytes(folder / "x"), folder / "y", load);
}

}  // namespace
}  // namespace reprise
