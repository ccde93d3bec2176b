#include "dist/ranks.h"

#include "dist/elements.h"
#include "reprise/errors.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <thread>

namespace reprise::dist {
namespace {

constexpr std::int64_t most = INT_MAX / 2;  // elements of one call

// So many bytes as one element of MPI.
class Block {
 public:
  explicit Block(std::size_t bytes) {
    constexpr std::size_t chunk = std::size_t{1} << 20;
    MPI_Datatype large = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(static_cast<int>(chunk), MPI_BYTE, &large);
    const int lengths[] = {static_cast<int>(bytes / chunk), static_cast<int>(bytes % chunk)};
    const MPI_Aint places[] = {0, static_cast<MPI_Aint>(bytes / chunk * chunk)};
    const MPI_Datatype types[] = {large, MPI_BYTE};
    MPI_Type_create_struct(2, lengths, places, types, &type_);
    MPI_Type_commit(&type_);
    MPI_Type_free(&large);
  }
  ~Block() { MPI_Type_free(&type_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  MPI_Datatype type() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

MPI_Comm own_world() {
  MPI_Comm world = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &world);
  return world;
}

}  // namespace

Ranks::Ranks(double timeout_seconds)
    : timeout_seconds_(timeout_seconds), world_(own_world()), groups_(world_), notices_(world_) {
  int rank = 0, size = 1;
  MPI_Comm_rank(world_, &rank);
  MPI_Comm_size(world_, &size);
  rank_ = rank;
  size_ = size;
}

void Ranks::enter(const char* what) {
  if (has_failed_)
    fail<RuntimeError>(what, ": the ranks have parted after an error, got a collective");
  ++number_;
  std::snprintf(place_, sizeof place_, "%s, collective %llu", what,
                static_cast<unsigned long long>(number_));
}
MPI_Comm Ranks::begin(const char* what, const RankGroup& ranks) {
  enter(what);
  if (!groups_.has(ranks)) {  // making one waits without limit: all ranks must be here first
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(world_, &request);
    wait(what, &request, 1);
  }
  return groups_.of(ranks);
}

void Ranks::fail_here(const std::string& text) {
  has_failed_ = true;
  fail<RuntimeError>(text);
}

// Another rank may say why nothing comes.
void Ranks::look_at_notices(const char* what) {
  while (const auto n = notices_.receive()) {
    if (n->kind == Notice::Kind::fails)
      fail_here(str(what, ": rank ", n->rank, " failed after ", n->where, ", got rank ", rank_,
                    " in collective ", number_, "; its error: ", n->what));
    if (n->kind == Notice::Kind::leaves && !is_leaving_)
      fail_here(str(what, ": rank ", n->rank, " has ended after its collective ", n->number,
                    ", got rank ", rank_, " in collective ", number_));
    if (n->kind != Notice::Kind::waits) continue;
    heard_.push_back(*n);
    if (!is_leaving_) give_up(what, timeout_seconds_);
  }
}

// Asks who else waits, so that the error can name who does not.
void Ranks::give_up(const char* what, double waited) {
  Notice mine;
  mine.number = number_;
  std::snprintf(mine.where, sizeof mine.where, "%s", what);
  notices_.send_to_all(mine);
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::duration<double>(std::min(2.0, timeout_seconds_));
  while (std::chrono::steady_clock::now() < until &&
         static_cast<std::int64_t>(heard_.size()) < size_ - 1) {
    while (const auto n = notices_.receive()) {
      if (n->kind == Notice::Kind::waits) heard_.push_back(*n);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::vector<std::string> missing, elsewhere;
  for (std::int64_t r = 0; r < size_; ++r) {
    const auto of = [&](const Notice& n) { return n.rank == r; };
    const auto found = std::find_if(heard_.begin(), heard_.end(), of);
    if (r == rank_) continue;
    if (found == heard_.end())
      missing.push_back(std::to_string(r));
    else if (found->number != number_)
      elsewhere.push_back(
          str("rank ", r, " waits in ", found->where, " (collective ", found->number, ")"));
  }
  const std::string who = missing.empty()       ? "ranks wait for each other"
                          : missing.size() == 1 ? "rank " + missing[0] + " did not come"
                                                : "ranks " + join(missing, ", ") + " did not come";
  fail_here(str(what, ": ", who, " within ", timeout_seconds_, " s, got rank ", rank_,
                " waiting in collective ", number_, " for ", waited, " s",
                elsewhere.empty() ? "" : "; " + join(elsewhere, "; ")));
}

// Non-blocking calls and tests, so that a rank that never comes is noticed.
void Ranks::wait(const char* what, MPI_Request* requests, int count) {
  const auto begin = std::chrono::steady_clock::now();
  for (int tries = 0;; ++tries) {
    int done = 0;
    if (MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
      fail_here(str(what, ": MPI lost a rank, got rank ", rank_, " in collective ", number_));
    if (done != 0) return;
    if (tries < 64) continue;
    if (tries < 4096) {
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (tries % 64 != 0) continue;
    look_at_notices(what);
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    if (waited.count() > timeout_seconds_) give_up(what, waited.count());
  }
}

void Ranks::all_reduce(const RankGroup& ranks, Reduction how, Dtype dtype, const std::byte* from,
                       std::byte* to, std::int64_t count) {
  const std::lock_guard lock(mutex_);
  const MPI_Comm comm = begin("psum", ranks);
  const Elements e = elements_of(dtype, how);
  const std::size_t bytes = itemsize(dtype);
  for (std::int64_t first = 0; first < count; first += most) {
    const auto n = static_cast<int>(std::min(most, count - first));
    const std::size_t offset = static_cast<std::size_t>(first) * bytes;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(from == to ? MPI_IN_PLACE : from + offset, to + offset, n, e.type, e.op, comm,
                   &request);
    wait("psum", &request, 1);
  }
}
void Ranks::all_gather(const RankGroup& ranks, const std::byte* from, std::byte* to,
                       std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const MPI_Comm comm = begin("all_gather", ranks);
  const Block block(bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallgather(from, 1, block.type(), to, 1, block.type(), comm, &request);
  wait("all_gather", &request, 1);
}
void Ranks::reduce_scatter(const RankGroup& ranks, Dtype dtype, const std::byte* from,
                           std::byte* to, std::int64_t count) {
  const std::lock_guard lock(mutex_);
  const MPI_Comm comm = begin("psum_scatter", ranks);
  const Elements e = elements_of(dtype, Reduction::sum);
  if (count > most) fail<RuntimeError>("psum_scatter: a part is too large, got ", count);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ireduce_scatter_block(from, to, static_cast<int>(count), e.type, e.op, comm, &request);
  wait("psum_scatter", &request, 1);
}
void Ranks::all_to_all(const RankGroup& ranks, const std::byte* from, std::byte* to,
                       std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const MPI_Comm comm = begin("all_to_all", ranks);
  const Block block(bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ialltoall(from, 1, block.type(), to, 1, block.type(), comm, &request);
  wait("all_to_all", &request, 1);
}
void Ranks::permute(const RankGroup& ranks, const std::byte* from, std::byte* to, std::size_t bytes,
                    std::int64_t target, std::int64_t source) {
  const std::lock_guard lock(mutex_);
  const MPI_Comm comm = begin("ppermute", ranks);
  const Block block(bytes);
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  if (source >= 0) MPI_Irecv(to, 1, block.type(), static_cast<int>(source), 0, comm, &requests[0]);
  if (target >= 0)
    MPI_Isend(from, 1, block.type(), static_cast<int>(target), 0, comm, &requests[1]);
  wait("ppermute", requests, 2);
}
void Ranks::barrier() {
  const std::lock_guard lock(mutex_);
  enter("barrier");
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(world_, &request);
  wait("barrier", &request, 1);
}

void Ranks::forget_sent() {
  std::erase_if(leaving_, [](Leaving& l) {
    int done = 0;
    MPI_Test(&l.request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  });
}
void Ranks::send(const void* bytes, std::size_t count, std::int64_t to,
                 std::shared_ptr<const void> owner) {
  const std::lock_guard lock(mutex_);
  forget_sent();
  const Block block(count);
  Leaving l;
  l.owner = std::move(owner);
  MPI_Isend(bytes, 1, block.type(), static_cast<int>(to), 1, world_, &l.request);
  leaving_.push_back(std::move(l));
}
void Ranks::receive(void* bytes, std::size_t count, std::int64_t from) {
  const std::lock_guard lock(mutex_);
  enter("recv");
  const Block block(count);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(bytes, 1, block.type(), static_cast<int>(from), 1, world_, &request);
  wait("recv", &request, 1);
}

bool Ranks::leave() {
  if (has_failed_) return false;
  is_leaving_ = true;
  Notice mine;
  mine.kind = Notice::Kind::leaves;
  mine.number = number_;
  notices_.send_to_all(mine);
  try {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(world_, &request);
    wait("the end", &request, 1);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "reprise: %s\n", e.what());
    return false;
  }
  notices_.release();
  groups_.release();
  release_elements();
  MPI_Comm_free(&world_);
  return true;
}

void Ranks::tell_failure(const std::string& what) {
  if (has_failed_) return;
  has_failed_ = true;
  Notice mine;
  mine.kind = Notice::Kind::fails;
  mine.number = number_;
  std::snprintf(mine.where, sizeof mine.where, "%s", place_);
  std::snprintf(mine.what, sizeof mine.what, "%s", what.substr(0, what.find('\n')).c_str());
  notices_.send_to_all(mine);
}

}  // namespace reprise::dist
