#include "ops/communicator.h"

#include "base/dtype.h"
#include "base/error.h"

#include <cstring>

namespace reprise {
namespace {

void copy(const std::byte* from, std::byte* to, std::size_t bytes) {
  if (from != to && bytes > 0) std::memcpy(to, from, bytes);
}

class OneRank : public Communicator {
 public:
  std::int64_t rank() const override { return 0; }
  std::int64_t size() const override { return 1; }
  void all_reduce(const RankGroup&, Reduction, Dtype dtype, const std::byte* from, std::byte* to,
                  std::int64_t count) override {
    copy(from, to, static_cast<std::size_t>(count) * itemsize(dtype));
  }
  void all_gather(const RankGroup&, const std::byte* from, std::byte* to,
                  std::size_t bytes) override {
    copy(from, to, bytes);
  }
  void reduce_scatter(const RankGroup&, Dtype dtype, const std::byte* from, std::byte* to,
                      std::int64_t count) override {
    copy(from, to, static_cast<std::size_t>(count) * itemsize(dtype));
  }
  void all_to_all(const RankGroup&, const std::byte* from, std::byte* to,
                  std::size_t bytes) override {
    copy(from, to, bytes);
  }
  void permute(const RankGroup&, const std::byte* from, std::byte* to, std::size_t bytes,
               std::int64_t, std::int64_t source) override {
    if (source >= 0) copy(from, to, bytes);
  }
};

Communicator* current = nullptr;

}  // namespace

Communicator& communicator() {
  static OneRank alone;
  return current == nullptr ? alone : *current;
}
void set_communicator(Communicator* c) { current = c; }

void check_mesh(const char* what, MeshPtr mesh) {
  if (mesh->is_abstract) {
    fail_with_hint<RuntimeError>("make a Mesh of the ranks that run", what,
                                 ": nothing runs on an abstract mesh, got ", mesh->text());
  }
  const std::int64_t ranks = communicator().size();
  if (mesh->size() == ranks) return;
  fail_with_hint<RuntimeError>(
      "start as many processes as the mesh has ranks (mpirun -np N) and call dist::init() first",
      what, ": the mesh must have all ranks, got ", mesh->text(), " for ", ranks,
      ranks == 1 ? " rank" : " ranks");
}

}  // namespace reprise
