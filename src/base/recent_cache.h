// Values by key: those that somebody holds, and of the others the ones used last.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

namespace reprise {

// Finding a value that is in use never makes it twice; what nobody uses is dropped once the weights
// of later ones add up to `most`. Null is a value too: "there is none". Callers lock.
template <class Key, class Value, class Hash = std::hash<Key>>
class RecentCache {
 public:
  using Pointer = std::shared_ptr<const Value>;
  explicit RecentCache(std::size_t most) : most_(most) {}

  std::optional<Pointer> find(const Key& key) {
    const auto it = known_.find(key);
    if (it == known_.end()) return std::nullopt;
    Entry& entry = it->second;
    if (entry.kept != recent_.end()) {
      recent_.splice(recent_.begin(), recent_, entry.kept);
      return entry.kept->value;
    }
    Pointer held = entry.value.lock();
    if (held == nullptr) {
      known_.erase(it);
      return std::nullopt;
    }
    keep(it->first, entry, held);
    return held;
  }
  void add(const Key& key, Pointer value, std::size_t weight = 1) {
    if (known_.size() >= sweep_at_) sweep();
    const auto [it, is_new] = known_.try_emplace(key, Entry{value, weight, recent_.end()});
    if (is_new) keep(it->first, it->second, std::move(value));
  }
  // Whatever nobody else holds.
  void clear() {
    while (!recent_.empty()) drop_oldest();
    sweep();
  }
  std::size_t size() const { return recent_.size(); }
  std::size_t weight() const { return weight_; }

 private:
  struct Kept {
    const Key* key;
    Pointer value;
  };
  struct Entry {
    std::weak_ptr<const Value> value;
    std::size_t weight;
    typename std::list<Kept>::iterator kept;  // recent_.end(): somebody else holds it, or nobody
  };

  void keep(const Key& key, Entry& entry, Pointer value) {
    recent_.push_front({&key, std::move(value)});
    entry.kept = recent_.begin();
    weight_ += entry.weight;
    while (weight_ > most_ && recent_.size() > 1) drop_oldest();
  }
  void drop_oldest() {
    const auto it = known_.find(*recent_.back().key);
    weight_ -= it->second.weight;
    it->second.kept = recent_.end();
    recent_.pop_back();
    if (it->second.value.expired()) known_.erase(it);
  }
  void sweep() {
    std::erase_if(known_, [&](const auto& k) {
      return k.second.kept == recent_.end() && k.second.value.expired();
    });
    sweep_at_ = 2 * known_.size() + 64;
  }

  std::size_t most_, weight_ = 0, sweep_at_ = 64;
  std::list<Kept> recent_;  // the latest first
  std::unordered_map<Key, Entry, Hash> known_;
};

}  // namespace reprise
