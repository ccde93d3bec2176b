#include "products/dnnl_engine.h"

#include "base/at_exit.h"
#include "products/dnnl_api.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace reprise::codegen {
namespace {

// -------------------------------------------------------------------------------------------- AMX
#if defined(__x86_64__)
thread_local sigjmp_buf* probing = nullptr;
struct sigaction before_probe;

void on_illegal(int signal) {
  if (probing != nullptr) siglongjmp(*probing, 1);
  // Another thread's own fault: it happens again under the handler that was there before.
  sigaction(signal, &before_probe, nullptr);
}

bool announces_amx() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (edx & (1u << 24)) != 0;  // AMX-TILE
}

bool multiplies_tiles() {
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XTILEDATA
  if (syscall(SYS_arch_prctl, request_permission, tile_data) != 0) return false;
  alignas(64) unsigned char config[64] = {1};  // palette 1
  for (int tile = 0; tile < 3; ++tile) {
    config[16 + 2 * tile] = 64;  // bytes per row
    config[48 + tile] = 16;      // rows
  }
  struct sigaction action {};
  action.sa_handler = on_illegal;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGILL, &action, &before_probe) != 0) return false;
  sigjmp_buf back;
  bool works = false;
  if (sigsetjmp(back, 1) == 0) {
    probing = &back;
    asm volatile(
        "ldtilecfg %0\n\t"
        "tilezero %%tmm0\n\t"
        "tilezero %%tmm1\n\t"
        "tilezero %%tmm2\n\t"
        "tdpbf16ps %%tmm2, %%tmm1, %%tmm0\n\t"
        "tilerelease"
        :
        : "m"(config)
        : "memory");
    works = true;
  }
  probing = nullptr;
  sigaction(SIGILL, &before_probe, nullptr);
  return works;
}

bool must_avoid_amx() { return announces_amx() && !multiplies_tiles(); }
#else
bool must_avoid_amx() { return false; }
#endif

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

const dnnl::engine& dnnl_cpu() {
  // Never destroyed: primitives kept in the user's static objects may outlive ours.
  static const dnnl::engine& engine = *[] {
    if (must_avoid_amx() && std::getenv("DNNL_MAX_CPU_ISA") == nullptr) {
      dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16);
    }
    // We keep what is used ourselves; the library would keep the code of what nobody has any more.
    if (std::getenv("DNNL_PRIMITIVE_CACHE_CAPACITY") == nullptr)
      dnnl::set_primitive_cache_capacity(0);
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

namespace {

// Neither has a destructor.
std::mutex making;
bool is_over = false;

void end_making() {
  const std::lock_guard lock(making);  // whoever is making some ends first
  is_over = true;
}
// Whoever makes one while the process begins to end is waited for, the next one kept from it.
[[maybe_unused]] const int ends_before_the_library = at_exit(end_making);

}  // namespace

MakingPrimitives::MakingPrimitives() : lock_(making) {}

MakingPrimitives::~MakingPrimitives() {
  if (has_begun_) std::atexit(end_making);
}

bool MakingPrimitives::begin() {
  has_begun_ = !is_over;
  return has_begun_;
}

// ------------------------------------------------------------------------------------------ chains
struct PrimitiveChain::Impl {
  // Where a place is: in an argument of that number, or in one of the two parts of the scratch.
  static constexpr std::size_t scratchpad = static_cast<std::size_t>(-1);
  static constexpr std::size_t temporaries = static_cast<std::size_t>(-2);
  struct Location {
    dnnl::memory::desc layout;
    Block block;
  };
  struct Step {
    dnnl::primitive primitive;
    std::vector<Operand> operands;
  };
  // The library's handles for one run at a time: making them allocates, pointing them elsewhere
  // does not.
  struct Handles {
    dnnl::stream stream{dnnl_cpu()};
    std::vector<dnnl::memory> memories;
    std::vector<std::vector<dnnl_exec_arg_t>> arguments;
  };

  std::vector<Location> places;
  std::vector<Step> steps;
  std::size_t temporary_bytes = 0, scratchpad_bytes = 0;
  std::vector<std::atomic<Handles*>> spares;  // of every worker

  explicit Impl(int workers) : spares(static_cast<std::size_t>(workers)) {}
  ~Impl() {
    for (auto& spare : spares) delete spare.load();
  }

  std::unique_ptr<Handles> make_handles() const {
    auto handles = std::make_unique<Handles>();
    for (const Location& place : places) {
      handles->memories.emplace_back(place.layout, dnnl_cpu(), nullptr);
    }
    for (const Step& step : steps) {
      auto& arguments = handles->arguments.emplace_back();
      for (const Operand& o : step.operands) {
        arguments.push_back({o.role, handles->memories[o.place].get()});
      }
    }
    return handles;
  }
  void* address(const Block& block, std::span<void* const> arguments,
                void* scratch) const noexcept {
    auto* const bytes = static_cast<std::byte*>(scratch);
    if (block.base == scratchpad) return bytes;
    if (block.base == temporaries) return bytes + scratchpad_bytes + block.offset;
    return static_cast<std::byte*>(arguments[block.base]) + block.offset;
  }
  bool run(Handles& handles, std::span<void* const> arguments, void* scratch) const noexcept {
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Location& place = places[i];
      void* at = address(place.block, arguments, scratch);
      if (!set_bytes(handles.memories[i], at, handles.stream)) return false;
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto& operands = handles.arguments[i];
      if (dnnl_primitive_execute(steps[i].primitive.get(), handles.stream.get(),
                                 static_cast<int>(operands.size()),
                                 operands.data()) != dnnl_success) {
        return false;
      }
    }
    return true;
  }
};

PrimitiveChain::PrimitiveChain(int workers) : impl_(std::make_unique<Impl>(workers)) {}
PrimitiveChain::~PrimitiveChain() = default;
PrimitiveChain::PrimitiveChain(PrimitiveChain&&) noexcept = default;
PrimitiveChain& PrimitiveChain::operator=(PrimitiveChain&&) noexcept = default;

PrimitiveChain::Block PrimitiveChain::temporary(std::size_t bytes) {
  const auto offset = static_cast<std::int64_t>(impl_->temporary_bytes);
  impl_->temporary_bytes += aligned(bytes);
  return {Impl::temporaries, offset};
}

PrimitiveChain::Place PrimitiveChain::place(Block block, const dnnl::memory& layout,
                                            std::int64_t offset_bytes) {
  impl_->places.push_back({layout.get_desc(), {block.base, block.offset + offset_bytes}});
  return impl_->places.size() - 1;
}

void PrimitiveChain::add(const dnnl::primitive& primitive, const dnnl::memory& scratchpad_layout,
                         std::vector<Operand> operands) {
  const dnnl::memory::desc layout = scratchpad_layout.get_desc();
  if (layout.get_size() != 0) {
    impl_->scratchpad_bytes = std::max(impl_->scratchpad_bytes, aligned(layout.get_size()));
    operands.push_back({DNNL_ARG_SCRATCHPAD, place({Impl::scratchpad, 0}, scratchpad_layout)});
  }
  impl_->steps.push_back({primitive, std::move(operands)});
}

void PrimitiveChain::add_copy(Block from, const dnnl::memory& from_layout, Block to,
                              const dnnl::memory& to_layout) {
  const dnnl::reorder::primitive_desc desc(dnnl_cpu(), from_layout.get_desc(), dnnl_cpu(),
                                           to_layout.get_desc(), planned_scratch());
  add(dnnl::reorder(desc), {desc.scratchpad_desc(), dnnl_cpu(), nullptr},
      {{DNNL_ARG_FROM, place(from, from_layout)}, {DNNL_ARG_TO, place(to, to_layout)}});
}

std::size_t PrimitiveChain::scratch_bytes() const {
  return impl_->scratchpad_bytes + impl_->temporary_bytes;
}

bool PrimitiveChain::run(std::span<void* const> arguments, void* scratch,
                         std::size_t worker) const noexcept {
  std::atomic<Impl::Handles*>& spare = impl_->spares[worker];
  std::unique_ptr<Impl::Handles> handles(spare.exchange(nullptr));
  try {
    if (handles == nullptr) handles = impl_->make_handles();
  } catch (...) {
    return false;  // no memory for the handles
  }
  const bool ok = impl_->run(*handles, arguments, scratch);
  delete spare.exchange(handles.release());
  return ok;
}

}  // namespace reprise::codegen
