// Where offloaded values of one run lie, and the thread that carries them there and back.
#pragma once

#include "runtime/spill_file.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace reprise {

// Transfers are carried out one after the other, in the order in which they were begun. Memory
// handed to one must be left alone until wait() has returned or the spill is gone.
class Spill {
 public:
  using Ticket = std::uint64_t;

  // In memory, or in a file of this directory. Throws RuntimeError when there is no room.
  Spill(const std::string& directory, std::size_t bytes);
  ~Spill();  // what is under way is completed, what waits is dropped
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;

  Ticket begin_write(const std::byte* from, std::size_t position, std::size_t bytes);
  Ticket begin_read(std::size_t position, std::byte* to, std::size_t bytes);
  // a hint for values that are read soon
  void expect_read(std::size_t position, std::size_t bytes);
  void wait(Ticket);  // throws RuntimeError when this transfer or one before it failed

 private:
  struct Job {
    const std::byte* from = nullptr;  // of a write
    std::byte* to = nullptr;          // of a read; neither: a hint
    std::size_t position = 0, bytes = 0;
  };
  Ticket begin(const Job&);
  void work();
  std::optional<TransferFailure> carry_out(const Job&);

  std::shared_ptr<std::byte> memory_;
  std::unique_ptr<SpillFile> file_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  Ticket begun_ = 0, ended_ = 0;
  bool closing_ = false;
  std::optional<TransferFailure> failure_;  // the first; nothing is carried out after it
  std::thread thread_;
};

}  // namespace reprise
