// Sharded files: saved by all ranks, loaded by as many or by others, never half there.
#include "error_text.h"
#include <reprise/communicator.h>
#include <reprise/dist.h>
#include <reprise/io_sharded.h>
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

using namespace reprise;
using P = PartitionSpec;
namespace fs = std::filesystem;

namespace {

// One of `size` ranks that have nothing to say to each other.
class Alone : public Communicator {
 public:
  Alone(std::int64_t rank, std::int64_t size) : rank_(rank), size_(size), before_(&communicator()) {
    set_communicator(this);
  }
  ~Alone() override { set_communicator(before_); }
  std::int64_t rank() const override { return rank_; }
  std::int64_t size() const override { return size_; }
  void all_reduce(const RankGroup&, Reduction, Dtype, const std::byte*, std::byte*,
                  std::int64_t) override {}
  void all_gather(const RankGroup&, const std::byte*, std::byte*, std::size_t) override {}
  void reduce_scatter(const RankGroup&, Dtype, const std::byte*, std::byte*,
                      std::int64_t) override {}
  void all_to_all(const RankGroup&, const std::byte*, std::byte*, std::size_t) override {}
  void permute(const RankGroup&, const std::byte*, std::byte*, std::size_t, std::int64_t,
               std::int64_t) override {}

 private:
  std::int64_t rank_, size_;
  Communicator* before_;
};

struct State {
  Array kernel, bias, mu, count;
  REPRISE_FIELDS(kernel, bias, mu, count)
};
State state() {
  return {arange(64).astype(float32).reshape({8, 8}), arange(8).astype(float32),
          arange(32).astype(bfloat16).reshape({4, 8}), array({7}, int32)};
}
const std::vector<P>& specs() {
  static const std::vector<P> each{P("x"), P("x"), P(none, "x"), P()};
  return each;
}
std::string folder() { return fs::temp_directory_path() / "reprise_sharded_test"; }
void check_same(const State& got, const State& wanted) {
  const Arrays a = tree_leaves(got), b = tree_leaves(wanted);
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].shape() == b[i].shape());
    CHECK(a[i].dtype() == b[i].dtype());
    CHECK(a[i].to_vector<double>() == b[i].to_vector<double>());
  }
}
State cut(const Mesh& mesh) {
  const Arrays whole = tree_leaves(state());
  Arrays parts;
  for (std::size_t i = 0; i < whole.size(); ++i) parts.push_back(shard(whole[i], mesh, specs()[i]));
  return tree_unflatten(state(), parts);
}

}  // namespace

TEST_CASE("what ranks saved is loaded by as many, by fewer, by one, and divided otherwise") {
  const Mesh mesh({{"x", dist::size()}});
  io::save_sharded(folder(), cut(mesh), mesh, specs());
  io::save_sharded(folder(), state(), mesh, specs());  // in the place of the first, of whole arrays
  dist::barrier();
  CHECK(!fs::exists(folder() + ".tmp"));
  check_same(io::load_sharded(folder(), state(), mesh, specs()), cut(mesh));
  check_same(io::load_sharded(folder(), state(), mesh, P()), state());
  for (std::int64_t size : {1, 2}) {
    for (std::int64_t rank = 0; rank < size; ++rank) {
      const Alone one(rank, size);
      const Mesh other({{"x", size}});
      check_same(io::load_sharded(folder(), state(), other, specs()), cut(other));
      const std::vector<P> otherwise{P(none, "x"), P(), P("x"), P()};
      const State parts = io::load_sharded(folder(), state(), other, otherwise);
      CHECK(parts.kernel.shape() == Shape{8, 8 / size});
      const auto first = parts.kernel(0, 0).item<std::int64_t>();
      CHECK(first == rank * 8 / size);
    }
  }
  dist::barrier();
}

TEST_CASE("a rank that cannot write leaves what was there") {
  const Mesh mesh({{"x", dist::size()}});
  io::save_sharded(folder(), state(), mesh, specs());
  State broken = state();
  if (dist::rank() == 0) broken.bias = Array(random::key(0));  // keys have no form in files
  const std::string text =
      error_of<RuntimeError>([&] { io::save_sharded(folder(), broken, mesh, P()); });
  CHECK_MENTIONS(text, "save_sharded: ");
  if (dist::rank() != 0) CHECK_MENTIONS(text, "got an error on rank 0");
  check_same(io::load_sharded(folder(), state(), mesh, P()), state());
  dist::barrier();
}

TEST_CASE("what is not there, or not such a folder, is said") {
  const Mesh mesh({{"x", dist::size()}});
  io::save_sharded(folder(), state(), mesh, specs());
  struct Other {
    Array weight;
    REPRISE_FIELDS(weight)
  };
  CHECK_MENTIONS(
      message<TypeError>([&] { io::load_sharded(folder(), Other{ones({2})}, mesh, P()); }),
      "load_sharded: no array has this name, got weight in ");
  CHECK_MENTIONS(message<TypeError>([&] {
                   io::load_sharded(folder(), state(), mesh, std::vector<P>{P("x"), P()});
                 }),
                 "one spec, or one for each array is needed, got 2 for 4");
  CHECK_MENTIONS(
      message<RuntimeError>([&] { io::load_sharded(folder() + "_missing", state(), mesh, P()); }),
      "index.safetensors");
  dist::barrier();
  if (dist::rank() == 0) {
    for (const auto& entry : fs::directory_iterator(folder())) {
      if (entry.path().filename().string().starts_with("rank-00000")) fs::remove(entry.path());
    }
  }
  dist::barrier();
  CHECK_MENTIONS(message<RuntimeError>([&] { io::load_sharded(folder(), state(), mesh, P()); }),
                 "load_sharded: kernel: ");
  dist::barrier();
  if (dist::rank() == 0) fs::remove_all(folder());
}
