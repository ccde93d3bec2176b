// What matmul and convolution share of oneDNN: the engine, and chains of primitives on memory that
// the caller owns. Its interface itself is in dnnl_api.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace dnnl {
struct engine;
struct memory;
struct primitive;
}  // namespace dnnl

namespace reprise::codegen {

// The processor. The first call keeps oneDNN from AMX where tiles are announced but trap on use.
const dnnl::engine& dnnl_cpu();

// Held while primitives are made, one at a time. At the end of a process the library's own static
// objects are destroyed before those of the user that are older, and no more can be made then;
// those that exist still run.
//
// Any primitive may bring static objects of the library to life, so after each of them something is
// registered for the end of the process that runs before they go, and waits for who makes one.
class MakingPrimitives {
 public:
  MakingPrimitives();
  ~MakingPrimitives();
  // Primitives are made from here on. False: the process ends, none can be made.
  bool begin();

 private:
  std::unique_lock<std::mutex> lock_;
  bool has_begun_ = false;
};

// Primitives that run one after another:
//
//   run({argument 0, argument 1, ...}, scratch, worker)
//
// Each step reads and writes places: parts of an argument or of a temporary in the scratch.
// Immutable once built; runs from many threads at once, each with its own scratch (64-byte
// aligned). For each of its workers it keeps what a run needs; more at once make their own.
class PrimitiveChain {
 public:
  explicit PrimitiveChain(int workers);
  ~PrimitiveChain();
  PrimitiveChain(PrimitiveChain&&) noexcept;
  PrimitiveChain& operator=(PrimitiveChain&&) noexcept;

  struct Block {
    std::size_t base;
    std::int64_t offset;
  };
  static Block argument(std::size_t index) { return {index, 0}; }
  Block temporary(std::size_t bytes);

  using Place = std::size_t;
  // The memory object only gives the layout; it need not have any bytes.
  Place place(Block, const dnnl::memory& layout, std::int64_t offset_bytes = 0);

  struct Operand {
    int role;  // DNNL_ARG_...
    Place place;
  };
  // The primitive's scratchpad, in user mode, is shared by all steps.
  void add(const dnnl::primitive&, const dnnl::memory& scratchpad_layout, std::vector<Operand>);
  void add_copy(Block from, const dnnl::memory& from_layout, Block to,
                const dnnl::memory& to_layout);

  std::size_t scratch_bytes() const;
  // False when the library reports an error.
  bool run(std::span<void* const> arguments, void* scratch, std::size_t worker) const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise::codegen
