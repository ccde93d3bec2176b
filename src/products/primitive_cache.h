// Objects made of oneDNN's primitives: one per spec and number of threads for the process, the last
// ones kept for who asks again.
#pragma once

#include "base/recent_cache.h"
#include "products/dnnl_engine.h"

#include <cstddef>
#include <memory>

namespace reprise::codegen {

template <class Spec, class Object, class SpecHash>
class PrimitiveCache {
 public:
  explicit PrimitiveCache(std::size_t most) : made_(most) {}

  // make(spec, threads) unless it is known what that gives; null also when the process ends.
  template <class Make>
  std::shared_ptr<const Object> find_or_make(const Spec& spec, int threads, const Make& make) {
    MakingPrimitives making;
    const Key key{spec, threads};
    if (const auto found = made_.find(key)) return *found;
    if (!making.begin()) return nullptr;
    std::shared_ptr<const Object> object = make(spec, threads);
    made_.add(key, object);
    return object;
  }
  // Drops those that nobody holds.
  void release() {
    const MakingPrimitives making;
    made_.clear();
  }

 private:
  struct Key {
    Spec spec;
    int threads;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return SpecHash{}(key.spec) * 31 + static_cast<std::size_t>(key.threads);
    }
  };
  RecentCache<Key, Object, KeyHash> made_;
};

}  // namespace reprise::codegen
