// Random numbers for modules: named streams of keys that count how often they were asked.
//
//   nnx::Rngs rngs(0);                                  // one stream, "default"
//   nnx::Rngs both(0, {{"params", 1}, {"dropout", 2}});
//   Array key = rngs.params();                          // fold_in(key(0), 0), then ... 1
//
// A stream that is not there is the default one. The order of construction decides which numbers a
// layer gets; names and paths play no part.
#pragma once

#include "reprise/nnx/graph.h"

#include <concepts>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise::nnx {

// One stream of keys.
class RngStream : public Module {
 public:
  // A key is a scalar of dtype key<fry>, or its two words as u32[2]; a TypeError for others.
  RngStream(const Array& stream_key, std::string stream_tag, Location at = Location::current());
  template <std::integral T>
  RngStream(T seed, std::string stream_tag)
      : RngStream(seed_key(static_cast<std::uint64_t>(seed)), std::move(stream_tag)) {}

  // The next key: fold_in(key, count), and count goes up by one.
  Array operator()(Location at = Location::current()) const;
  RngStream fork(Location at = Location::current()) const;  // a new stream, from the next key
  // As many streams in one, for vmap and scan: keys split from the next key, counts of zero.
  RngStream split(std::int64_t splits, Location at = Location::current()) const;

  std::string tag;
  RngKey key;
  RngCount count;
  REPRISE_FIELDS_DECLARED

 private:
  static Array seed_key(std::uint64_t seed);
};

// What a stream starts from: a seed, a key, or another stream.
class RngSeed {
 public:
  template <std::integral T>
  RngSeed(T seed) : RngSeed(static_cast<std::uint64_t>(seed), 0) {}   // NOLINT: implicit by design
  RngSeed(const Array& key) : key_(key) {}                            // NOLINT
  RngSeed(const RngStream& stream) : key_(stream.key.get_value()) {}  // NOLINT
  const Array& key() const { return key_; }

 private:
  RngSeed(std::uint64_t seed, int);
  Array key_;
};

// The streams of a model, by name.
class Rngs final : public Module {
 public:
  using Streams = std::vector<std::pair<std::string, RngSeed>>;
  Rngs(RngSeed seed, const Streams& streams = {},
       Location at = Location::current());  // NOLINT: implicit by design
  Rngs(const Streams& streams,
       Location at = Location::current());  // NOLINT: without a default stream

  Array operator()(Location at = Location::current()) const;  // from the default stream
  Array params(Location at = Location::current()) const { return stream("params", at)(at); }
  Array dropout(Location at = Location::current()) const { return stream("dropout", at)(at); }
  // The stream of a name, else the default one; a TypeError if there is none.
  const RngStream& stream(const std::string& name, Location at = Location::current()) const;
  const RngStream& operator[](const std::string& name) const { return stream(name, Location{}); }
  bool contains(const std::string& name) const;  // of its own

  Rngs fork() const;  // each stream from one key of the old one
  Rngs split(std::int64_t splits) const;

  void reprise_visit(Fields& out) override;
  std::shared_ptr<Module> reprise_copy() const override { return std::make_shared<Rngs>(*this); }

 private:
  Rngs() = default;
  std::vector<std::pair<std::string, RngStream>> streams_;
};

// ------------------------------------------------------------------------- the streams of a module
// New keys for the streams of the given tags anywhere in the module, which count from zero again.
struct ReseedOptions {
  bool match_shape =
      false;  // streams that were split get as many new keys, else they are a TypeError
};
void reseed(Module& module, const Rngs::Streams& seeds, const ReseedOptions& options = {},
            Location at = Location::current());

// Options of split_rngs.
struct SplitRngsOptions {
  std::int64_t splits = 1;
  Filter only = true;    // which streams, by the key they hold: "dropout", PathContains(...)
  bool squeeze = false;  // with one split: without the axis
};
// Splits streams for as long as it lives; then they are as before, one key further.
class [[nodiscard]] SplitRngsScope {
 public:
  SplitRngsScope(const std::vector<Module*>& modules, const SplitRngsOptions& options, Location at);
  ~SplitRngsScope();
  SplitRngsScope(const SplitRngsScope&) = delete;
  SplitRngsScope& operator=(const SplitRngsScope&) = delete;

 private:
  struct Saved {
    RngStream stream;
    Array key, count;
  };
  std::vector<Saved> saved_;
};
// Splits the streams of a module until the result goes out of scope.
inline SplitRngsScope split_rngs(Module& module, const SplitRngsOptions& options,
                                 Location at = Location::current()) {
  return SplitRngsScope({&module}, options, at);
}

}  // namespace reprise::nnx
#pragma GCC visibility pop
