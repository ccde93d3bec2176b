#include "runtime/spill.h"

#include "base/error.h"
#include "base/memory.h"

#include <cstring>
#include <system_error>

namespace reprise {

Spill::Spill(const std::string& directory, std::size_t bytes) {
  if (directory.empty())
    memory_ = allocate_buffer(bytes);
  else
    file_ = std::make_unique<SpillFile>(directory, bytes);
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error& e) {
    fail<RuntimeError>("offload: no thread for transfers, got: ", e.what());
  }
}

Spill::~Spill() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Spill::Ticket Spill::begin_write(const std::byte* from, std::size_t position, std::size_t bytes) {
  return begin({from, nullptr, position, bytes});
}
Spill::Ticket Spill::begin_read(std::size_t position, std::byte* to, std::size_t bytes) {
  return begin({nullptr, to, position, bytes});
}
void Spill::expect_read(std::size_t position, std::size_t bytes) {
  if (file_) begin({nullptr, nullptr, position, bytes});
}
Spill::Ticket Spill::begin(const Job& job) {
  Ticket ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(job);
    ticket = ++begun_;
  }
  changed_.notify_all();
  return ticket;
}

void Spill::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ >= ticket || failure_; });
  if (failure_) fail_with_hint<RuntimeError>(failure_->hint, failure_->text);
}

void Spill::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closing_ || !waiting_.empty(); });
    if (closing_) return;
    const Job job = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    std::optional<TransferFailure> failure;
    try {
      failure = carry_out(job);
    } catch (const std::exception& e) {  // no memory for a checksum or a message
      failure = TransferFailure{e.what(), {}};
    }
    lock.lock();
    ++ended_;
    if (failure && !failure_) failure_ = std::move(failure);
    if (failure_) waiting_.clear();
    changed_.notify_all();
  }
}

std::optional<TransferFailure> Spill::carry_out(const Job& job) {
  if (file_ && job.from != nullptr) return file_->write(job.position, job.from, job.bytes);
  if (file_ && job.to != nullptr) return file_->read(job.position, job.to, job.bytes);
  if (file_)
    file_->expect_read(job.position, job.bytes);
  else if (job.from != nullptr)
    std::memcpy(memory_.get() + job.position, job.from, job.bytes);
  else
    std::memcpy(job.to, memory_.get() + job.position, job.bytes);
  return std::nullopt;
}

}  // namespace reprise
