// What a rank asks of the other ranks. reprise/dist.h has the one that talks by MPI; whoever has
// other means of transport implements this and sets it before the first Mesh.
#pragma once

#include "reprise/array.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise {

// How ranks combine their numbers.
enum class Reduction : std::uint8_t { sum, max, min };

// Some ranks in order, this one among them.
struct RankGroup {
  std::vector<std::int64_t> ranks;
  std::int64_t position = 0;  // of this rank
};

// All ranks call the same functions in the same order, each with its own group; groups are disjoint.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual std::int64_t rank() const = 0;
  virtual std::int64_t size() const = 0;
  // to = from combined over the group
  virtual void all_reduce(const RankGroup&, Reduction, Dtype, const std::byte* from, std::byte* to,
                          std::int64_t count) = 0;
  // to = from of every rank of the group, `bytes` each, in order
  virtual void all_gather(const RankGroup&, const std::byte* from, std::byte* to,
                          std::size_t bytes) = 0;
  // from has a block of `count` elements for each rank of the group; to = the sum of this rank's
  virtual void reduce_scatter(const RankGroup&, Dtype, const std::byte* from, std::byte* to,
                              std::int64_t count) = 0;
  // from has a block of `bytes` for each rank of the group; to = the blocks for this rank
  virtual void all_to_all(const RankGroup&, const std::byte* from, std::byte* to,
                          std::size_t bytes) = 0;
  // Sends to and receives from positions in the group; -1: nobody, then `to` is not written.
  virtual void permute(const RankGroup&, const std::byte* from, std::byte* to, std::size_t bytes,
                       std::int64_t target, std::int64_t source) = 0;
};

Communicator& communicator();          // of this process; a single rank if none was set
void set_communicator(Communicator*);  // null: a single rank again

}  // namespace reprise
#pragma GCC visibility pop
