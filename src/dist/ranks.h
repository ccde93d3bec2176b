// The ranks of an MPI run, as collectives see them.
#pragma once

#include "dist/groups.h"
#include "dist/notices.h"
#include "reprise/communicator.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace reprise::dist {

class Ranks : public Communicator {
 public:
  explicit Ranks(double timeout_seconds);
  std::int64_t rank() const override { return rank_; }
  std::int64_t size() const override { return size_; }
  void all_reduce(const RankGroup&, Reduction, Dtype, const std::byte* from, std::byte* to,
                  std::int64_t count) override;
  void all_gather(const RankGroup&, const std::byte* from, std::byte* to,
                  std::size_t bytes) override;
  void reduce_scatter(const RankGroup&, Dtype, const std::byte* from, std::byte* to,
                      std::int64_t count) override;
  void all_to_all(const RankGroup&, const std::byte* from, std::byte* to,
                  std::size_t bytes) override;
  void permute(const RankGroup&, const std::byte* from, std::byte* to, std::size_t bytes,
               std::int64_t target, std::int64_t source) override;
  void barrier();
  // `owner` keeps the bytes until they have left.
  void send(const void* bytes, std::size_t count, std::int64_t to,
            std::shared_ptr<const void> owner);
  void receive(void* bytes, std::size_t count, std::int64_t from);
  // This rank parts from the others: true if they came to the same point.
  bool leave();
  // Tells the others that an error ends this rank, and gives them time to hear it.
  void tell_failure(const std::string& what);
  // "psum, collective 12", for the handler of a signal
  const char* place() const { return place_; }

 private:
  MPI_Comm begin(const char* what, const RankGroup&);
  void enter(const char* what);
  void wait(const char* what, MPI_Request* requests, int count);
  void look_at_notices(const char* what);
  [[noreturn]] void give_up(const char* what, double waited);
  [[noreturn]] void fail_here(const std::string& text);

  struct Leaving {
    MPI_Request request = MPI_REQUEST_NULL;
    std::shared_ptr<const void> owner;
  };
  void forget_sent();
  std::vector<Leaving> leaving_;
  std::mutex mutex_;  // one collective at a time
  std::int64_t rank_ = 0, size_ = 1;
  double timeout_seconds_;
  MPI_Comm world_ = MPI_COMM_NULL;
  Groups groups_;
  Notices notices_;
  std::uint64_t number_ = 0;  // of collectives so far
  bool has_failed_ = false, is_leaving_ = false;
  std::vector<Notice> heard_;  // of ranks that wait in vain
  char place_[80] = "no collective yet";
};

}  // namespace reprise::dist
