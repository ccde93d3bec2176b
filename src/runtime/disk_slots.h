// Checkpoints of a loop on disk: slots 1, 2, .. of each carry, by way of one place in memory.
#pragma once

#include "runtime/frames.h"

namespace reprise {

// A state that was put or fetched last stays in memory until another takes its place. What is being
// written is left alone until it has arrived.
class DiskSlots {
 public:
  DiskSlots(const std::vector<RunDisk>& carries, std::int64_t slots, Slots memory, HostFrame* host)
      : carries_(carries),
        memory_(memory),
        host_(host),
        is_own_(static_cast<std::size_t>(slots), false) {}

  // from(k): where carry k lies. Returns while it is on its way.
  template <class From>
  void put(std::int64_t slot, const From& from) {
    wait();
    is_own_[static_cast<std::size_t>(slot - 1)] = true;
    staged_ = slot;
    for (std::size_t k = 0; k < carries_.size(); ++k) {
      const RunDisk& c = carries_[k];
      if (c.bytes == 0) continue;
      std::byte* const staged = address(memory_, c.staging);
      std::memcpy(staged, from(k), c.bytes);
      if (c.own.on_host)
        ticket_ = host_->spill->begin_write(staged, position_of(c.own, c, slot), c.bytes);
      else
        std::memcpy(address_of(c.own, c, slot), staged, c.bytes);
    }
  }
  // Brings a state to memory, where state() finds it.
  void fetch(std::int64_t slot) {
    if (staged_ == slot) return;
    wait();
    staged_ = slot;
    for (const RunDisk& c : carries_) {
      if (c.bytes == 0) continue;
      const RunDisk::Rows& rows = rows_of(c, slot);
      std::byte* const to = address(memory_, c.staging);
      if (rows.on_host)
        ticket_ = host_->spill->begin_read(position_of(rows, c, slot), to, c.bytes);
      else
        std::memcpy(to, address_of(rows, c, slot), c.bytes);
    }
    expect(slot - 1);  // states are read back from the last to the first
    wait();
  }
  std::byte* state(std::size_t carry) const { return address(memory_, carries_[carry].staging); }
  // Until all that was put has arrived.
  void wait() {
    if (ticket_ == 0) return;
    host_->spill->wait(ticket_);
    ticket_ = 0;
  }

 private:
  const RunDisk::Rows& rows_of(const RunDisk& c, std::int64_t slot) const {
    return is_own_[static_cast<std::size_t>(slot - 1)] ? c.own : c.kept;
  }
  std::size_t position_of(const RunDisk::Rows& r, const RunDisk& c, std::int64_t slot) const {
    return position(*host_, r.at) + static_cast<std::size_t>(slot - 1) * c.bytes;
  }
  std::byte* address_of(const RunDisk::Rows& r, const RunDisk& c, std::int64_t slot) const {
    return address(memory_, r.at) + static_cast<std::size_t>(slot - 1) * c.bytes;
  }
  void expect(std::int64_t slot) {
    if (slot < 1) return;
    for (const RunDisk& c : carries_) {
      const RunDisk::Rows& rows = rows_of(c, slot);
      if (c.bytes > 0 && rows.on_host)
        host_->spill->expect_read(position_of(rows, c, slot), c.bytes);
    }
  }

  const std::vector<RunDisk>& carries_;
  Slots memory_;
  HostFrame* host_;
  std::vector<bool> is_own_;  // of each slot: this loop has put something there
  std::int64_t staged_ = 0;
  Spill::Ticket ticket_ = 0;  // of the transfer that was begun last; those before end before
};

}  // namespace reprise
