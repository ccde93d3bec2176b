#include "reprise/jit.h"

#include "api/flat.h"
#include "api/jit_entry.h"
#include "control/body.h"
#include "control/records.h"
#include "plan/cost.h"
#include "program/print.h"

#include <algorithm>
#include <ostream>

namespace reprise {
namespace detail {

void append_types(std::string& key, const Arrays& args) {
  for (const Array& a : args) {
    const Type& t = a.type();
    key += static_cast<char>(t.dtype);
    key += static_cast<char>((t.weak_type ? 1 : 0) + (t.memory_space == MemorySpace::host ? 2 : 0));
    tree::append_bits(key, t.varying);
    tree::append_bits(key, t.shape.size());
    key.append(reinterpret_cast<const char*>(t.shape.data()),
               t.shape.size() * sizeof(std::int64_t));
  }
}

bool shareable(const JitEntry& entry) { return entry.is_shareable; }

namespace {

// Per input of the program, constants first; empty: nothing is donated.
std::vector<bool> donated_inputs(const std::vector<int>& argnums,
                                 const std::vector<std::size_t>& argument_of, std::size_t arguments,
                                 std::size_t consts) {
  std::vector<bool> mask;
  const int n = static_cast<int>(arguments);
  for (int k : argnums) {
    if (k < -n || k >= n)
      fail<TypeError>("jit: donate_argnums must be numbers of arguments, got ", k, " for ", n,
                      " arguments");
    mask.resize(consts + argument_of.size(), false);
    for (std::size_t i = 0; i < argument_of.size(); ++i) {
      if (static_cast<int>(argument_of[i]) == (k < 0 ? k + n : k)) mask[consts + i] = true;
    }
  }
  return mask;
}

std::optional<std::size_t> checked_budget(const std::optional<std::int64_t>& budget) {
  if (!budget) return std::nullopt;
  constexpr std::int64_t most = std::int64_t{1} << 57;  // larger than any memory
  if (*budget <= 0 || *budget > most) {
    fail_with_hint<TypeError>("write it as 512_MiB or 2_GB",
                              "jit: a memory budget is from 1 to 2^57 bytes, got ", *budget);
  }
  return static_cast<std::size_t>(*budget);
}

// Null: the process ends, and what was not compiled before is evaluated.
std::shared_ptr<const CompiledProgram> compiled_unless_gone(const JitEntry& entry) try {
  return entry.compiled();
} catch (const RuntimeError&) {
  if (engine().is_gone()) return nullptr;
  throw;
}

}  // namespace

std::shared_ptr<const JitEntry> trace_jit(const Callee& f, const Arrays& args,
                                          const JitOptions& options,
                                          const std::vector<std::size_t>& argument_of,
                                          std::size_t arguments) {
  const AtUser at(f.at);
  Traced t = trace(f.run, leaf_types(args),
                   {.transform = "jit", .name = f.name, .arg_names = f.arg_names, .body = true});
  t.program = intern("jit of " + f.identity, std::move(t.program));
  CompileOptions compile_options{
      options.spill_directory,
      donated_inputs(options.donate_argnums, argument_of, arguments, t.consts.size())};
  compile_options.memory_budget = checked_budget(options.memory_budget);
  compile_options.policies_are_free = options.budget_may_override_policies;
  auto entry = std::make_shared<JitEntry>(std::move(t.program), std::move(t.consts),
                                          std::move(compile_options));
  entry->only_shapes = std::any_of(args.begin(), args.end(), is_abstract);
  return entry;
}

Arrays call_jit(Location at, const std::string& name, Arrays args, const JitEntry& known) {
  const AtUser scope(at);
  const bool staged =
      is_tracing() || !known.is_shareable || std::any_of(args.begin(), args.end(), is_traced);
  if (!staged) {
    args.insert(args.begin(), known.consts.begin(), known.consts.end());
    // a list of thousands that has grown by doubling holds twice what it needs
    args.shrink_to_fit();
    if (const auto compiled = compiled_unless_gone(known)) return compiled->run(std::move(args));
    return eval(*known.program, std::move(args));
  }
  return finished(
      jit_p.bind(concat(known.consts, args), {{"name", name}, {"jaxpr", known.program}}));
}

void compile_jit(const JitEntry& entry) { entry.planned(); }

MemoryAnalysis memory_of(const JitEntry& entry) { return entry.planned()->memory(); }

CostAnalysis cost_of(const JitEntry& entry) {
  const plan::Cost c = plan::cost_of(entry.planned()->lowered());
  return {c.flops, c.matmul_flops, c.bytes, c.communicated};
}

std::string program_text(const JitEntry& entry) { return to_text(*entry.program); }
std::string plan_text(const JitEntry& entry) { return entry.planned()->text(); }

void other_types(const JitEntry& expected, const Arrays& got) {
  std::vector<std::string> wanted, given;
  const std::vector<Type> types = expected.program->in_types();
  for (std::size_t i = expected.consts.size(); i < types.size(); ++i)
    wanted.push_back(to_string(types[i]));
  for (const Array& a : got) given.push_back(to_string(a.type()));
  fail_with_hint<TypeError>(
      "lower and compile again for these types, or call the jit function itself",
      "compiled function: argument types differ, got (", join(given, ", "), "), compiled for (",
      join(wanted, ", "), ")");
}

}  // namespace detail

std::ostream& operator<<(std::ostream& out, const MemoryAnalysis& m) {
  out << "arguments " << m.argument_bytes << " bytes, outputs " << m.output_bytes
      << ", temporaries " << m.temp_bytes << ", peak beyond the arguments " << m.peak_bytes;
  if (m.alias_bytes > 0) out << ", outputs in donated arguments " << m.alias_bytes;
  if (m.copied_donations > 0) out << ", donated arguments copied so far " << m.copied_donations;
  if (m.host_temp_bytes > 0)
    out << ", offloaded " << m.host_temp_bytes << (m.host_on_disk ? " to disk" : " in memory");
  return out << '\n';
}
std::ostream& operator<<(std::ostream& out, const CostAnalysis& c) {
  out << "flops " << c.flops << ", of matrix products " << c.matmul_flops << ", bytes accessed "
      << c.bytes_accessed;
  if (c.bytes_communicated > 0) out << ", communicated " << c.bytes_communicated;
  return out << '\n';
}

}  // namespace reprise
