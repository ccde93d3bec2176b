#include "reprise/nnx/rngs.h"

#include "nnx/walk.h"
#include "reprise/errors.h"
#include "reprise/random.h"

namespace reprise::nnx {
namespace {

Array checked_key(const Array& key) {
  if (!key.defined()) fail<TypeError>("rngs: a key is needed, got an array without a value");
  if (key.dtype() == Dtype::key) return key;
  if (key.dtype() == uint32 && key.ndim() >= 1 && key.shape(-1) == 2)
    return random::wrap_key_data(key);
  fail_with_hint<TypeError>("pass a C++ integer as seed, or rp::random::key(seed)",
                            "rngs: a key must be a key<fry> or its two words u32[2], got ",
                            key.type());
}
Array zero_counts(const Shape& shape) { return zeros(shape, uint32); }

}  // namespace

// -------------------------------------------------------------------------------------- RngStream
RngStream::RngStream(const Array& stream_key, std::string stream_tag, Location at)
    : tag(std::move(stream_tag)) {
  const AtUser scope(at);
  const Array typed = checked_key(stream_key);
  key = RngKey(typed, tag);
  count = RngCount(zero_counts(typed.shape()), tag);
}
Array RngStream::seed_key(std::uint64_t seed) { return random::key(seed); }

Array RngStream::operator()(Location at) const {
  const AtUser scope(at);
  if (key.get_value().ndim() != 0) {
    fail_with_hint<TypeError>(
        "draw inside nnx::vmap or nnx::scan, where each step has a key of its own",
        "rngs: a stream that was split cannot be drawn from, got ", key.type(), " of the stream '",
        tag, "'");
  }
  const Array next = random::fold_in(key.get_value(), count.get_value());
  count.set_value(count.get_value() + array(1, uint32));
  return next;
}
RngStream RngStream::fork(Location at) const { return RngStream((*this)(at), tag, at); }
RngStream RngStream::split(std::int64_t splits, Location at) const {
  const AtUser scope(at);
  return RngStream(random::split((*this)(at), splits), tag, at);
}

// ------------------------------------------------------------------------------------------- Rngs
RngSeed::RngSeed(std::uint64_t seed, int) : key_(random::key(seed)) {}

Rngs::Rngs(RngSeed seed, const Streams& streams, Location at) : Rngs(streams, at) {
  const AtUser scope(at);
  streams_.emplace_back("default", RngStream(seed.key(), "default", at));
}
Rngs::Rngs(const Streams& streams, Location at) {
  const AtUser scope(at);
  for (const auto& [name, seed] : streams) {
    if (contains(name)) fail<TypeError>("rngs: a stream may be given once, got '", name, "' twice");
    streams_.emplace_back(name, RngStream(seed.key(), name, at));
  }
}

bool Rngs::contains(const std::string& name) const {
  for (const auto& entry : streams_) {
    if (entry.first == name) return true;
  }
  return false;
}

const RngStream& Rngs::stream(const std::string& name, Location at) const {
  const RngStream* fallback = nullptr;
  for (const auto& [own, stream] : streams_) {
    if (own == name) return stream;
    if (own == "default") fallback = &stream;
  }
  if (fallback != nullptr) return *fallback;
  const AtUser scope(at);
  std::vector<std::string> names;
  for (const auto& entry : streams_) names.push_back("'" + entry.first + "'");
  fail_with_hint<TypeError>("give the stream a seed, or a default: nnx::Rngs(0)",
                            "rngs: no stream of this name and no default one, got '", name,
                            "' where the streams are ", names.empty() ? "none" : join(names, ", "));
}

Array Rngs::operator()(Location at) const { return stream("default", at)(at); }

Rngs Rngs::fork() const {
  Rngs result;
  for (const auto& [name, stream] : streams_) result.streams_.emplace_back(name, stream.fork());
  return result;
}
Rngs Rngs::split(std::int64_t splits) const {
  Rngs result;
  for (const auto& [name, stream] : streams_)
    result.streams_.emplace_back(name, stream.split(splits));
  return result;
}

void Rngs::reprise_visit(Fields& out) {
  for (auto& [name, stream] : streams_) out.add_member(name, stream);
}

// ------------------------------------------------------------------------- the streams of a module
void reseed(Module& module, const Rngs::Streams& seeds, const ReseedOptions& options, Location at) {
  const AtUser scope(at);
  const Rngs fresh(seeds, at);
  for (auto& [path, m] : iter_modules(module)) {
    auto* stream = dynamic_cast<RngStream*>(m);
    if (stream == nullptr || !fresh.contains(stream->tag)) continue;
    const Shape shape = stream->key.shape();
    if (!shape.empty() && !options.match_shape) {
      fail_with_hint<TypeError>("pass {.match_shape = true} to give it as many new keys",
                                "reseed: the stream was split, got ", stream->key.type(), " at ",
                                to_string(path));
    }
    const Array next = fresh[stream->tag](at);
    stream->key.set_value(shape.empty() ? next : random::split(next, shape), at);
    stream->count.set_value(zero_counts(shape), at);
  }
}

SplitRngsScope::SplitRngsScope(const std::vector<Module*>& modules, const SplitRngsOptions& options,
                               Location at) {
  const AtUser scope(at);
  if (options.squeeze && options.splits != 1) {
    fail<TypeError>("split_rngs: squeeze needs one split, got ", options.splits);
  }
  for (Module* root : modules) {
    for (auto& [path, m] : iter_modules(*root)) {
      const auto* stream = dynamic_cast<const RngStream*>(m);
      if (stream == nullptr) continue;
      Path key_path = path;
      key_path.push_back("key");
      if (!options.only(detail::Slot{key_path, stream->key.box(), nullptr}.leaf())) continue;
      const Array before = stream->key.get_value();
      const Array next = (*stream)(at);
      saved_.push_back({*stream, before, stream->count.get_value()});
      const Array keys =
          options.squeeze ? random::split(next, Shape{}) : random::split(next, options.splits);
      stream->key.set_value(keys, at);
      stream->count.set_value(zero_counts(keys.shape()), at);
    }
  }
}
SplitRngsScope::~SplitRngsScope() {
  for (const Saved& s : saved_) {
    s.stream.key.box()->value = s.key;
    s.stream.count.box()->value = s.count;
  }
}

// ---------------------------------------------------------------------------------------- members
REPRISE_FIELDS_OF(RngStream, tag, key, count)

}  // namespace reprise::nnx
