#include "reprise/jit.h"

#include <algorithm>
#include <ostream>

#include "api/flat.h"
#include "api/jit_entry.h"
#include "control/body.h"
#include "control/records.h"
#include "plan/cost.h"
#include "program/print.h"
#include "runtime/text.h"

namespace reprise {
namespace detail {

void append_types(std::string& key, const Arrays& args) {
  for (const Array& a : args) {
    const Type& t = a.type();
    key += static_cast<char>(t.dtype);
    key += static_cast<char>((t.weak_type ? 1 : 0) + (t.memory_space == MemorySpace::host ? 2 : 0));
    key += static_cast<char>(t.shape.size());
    key.append(reinterpret_cast<const char*>(t.shape.data()), t.shape.size() * sizeof(std::int64_t));
  }
}

bool shareable(const JitEntry& entry) { return entry.is_shareable; }

namespace {

// Per input of the program, constants first; empty: nothing is donated.
std::vector<bool> donated_inputs(const std::vector<int>& argnums, const std::vector<std::size_t>& argument_of, std::size_t arguments,
                                 std::size_t consts) {
  std::vector<bool> mask;
  const int n = static_cast<int>(arguments);
  for (int k : argnums) {
    if (k < -n || k >= n) fail<TypeError>("jit: donate_argnums must be numbers of arguments, got ", k, " for ", n, " arguments");
    mask.resize(consts + argument_of.size(), false);
    for (std::size_t i = 0; i < argument_of.size(); ++i) {
      if (static_cast<int>(argument_of[i]) == (k < 0 ? k + n : k)) mask[consts + i] = true;
    }
  }
  return mask;
}

}  // namespace

std::shared_ptr<const JitEntry> trace_jit(const Callee& f, const Arrays& args, const JitOptions& options,
                                          const std::vector<std::size_t>& argument_of, std::size_t arguments) {
  const AtUser at(f.at);
  Traced t = trace(f.run, types_of(args),
                   {.transform = "jit", .name = f.name, .arg_names = f.arg_names, .body = true});
  CompileOptions compile_options{options.spill_directory, donated_inputs(options.donate_argnums, argument_of, arguments, t.consts.size())};
  return std::make_shared<const JitEntry>(std::move(t.program), std::move(t.consts), std::move(compile_options));
}

Arrays call_jit(Location at, const std::string& name, Arrays args, const JitEntry& known) {
  const AtUser scope(at);
  const bool staged = is_tracing() || !known.is_shareable || std::any_of(args.begin(), args.end(), is_traced);
  if (!staged) {
    args.insert(args.begin(), known.consts.begin(), known.consts.end());
    args.shrink_to_fit();  // a list of thousands that has grown by doubling holds twice what it needs
    return known.compiled()->run(std::move(args));
  }
  return finished(jit_p.bind(concat(known.consts, args), {{"name", name}, {"jaxpr", known.program}}));
}

void compile_jit(const JitEntry& entry) { entry.compiled(); }

MemoryAnalysis memory_of(const JitEntry& entry) {
  const auto executable = entry.compiled();
  const plan::MemoryPlan& plan = executable->code().memory;
  const plan::Schedule& schedule = *executable->code().schedule;
  MemoryAnalysis m;
  m.argument_bytes = plan.argument_bytes;
  m.peak_bytes = plan.peak();
  m.alias_bytes = plan.alias_bytes;
  m.copied_donations = executable->copied_donations();
  m.host_temp_bytes = plan.host_bytes;
  m.host_on_disk = plan.host_on_disk && plan.host_bytes > 0;
  for (const plan::View& v : schedule.outputs) {
    if (v.root < 0 || plan.places[static_cast<std::size_t>(v.root)].region == plan::Region::argument) continue;
    m.output_bytes += schedule.types[static_cast<std::size_t>(v.root)].nbytes();
  }
  m.temp_bytes = m.peak_bytes - std::min(m.peak_bytes, m.output_bytes);
  return m;
}

CostAnalysis cost_of(const JitEntry& entry) {
  const plan::Cost c = plan::cost_of(*entry.compiled()->code().schedule->program);
  return {c.flops, c.matmul_flops, c.bytes};
}

std::string program_text(const JitEntry& entry) { return to_text(*entry.program); }
std::string plan_text(const JitEntry& entry) { return to_text(entry.compiled()->code()); }

void other_types(const JitEntry& expected, const Arrays& got) {
  std::vector<std::string> wanted, given;
  const std::vector<Type> types = expected.program->in_types();
  for (std::size_t i = expected.consts.size(); i < types.size(); ++i) wanted.push_back(to_string(types[i]));
  for (const Array& a : got) given.push_back(to_string(a.type()));
  fail_with_hint<TypeError>("lower and compile again for these types, or call the jit function itself",
                            "compiled function: argument types differ, got (", join(given, ", "), "), compiled for (",
                            join(wanted, ", "), ")");
}

}  // namespace detail

std::ostream& operator<<(std::ostream& out, const MemoryAnalysis& m) {
  out << "arguments " << m.argument_bytes << " bytes, outputs " << m.output_bytes << ", temporaries "
      << m.temp_bytes << ", peak beyond the arguments " << m.peak_bytes;
  if (m.alias_bytes > 0) out << ", outputs in donated arguments " << m.alias_bytes;
  if (m.copied_donations > 0) out << ", donated arguments copied so far " << m.copied_donations;
  if (m.host_temp_bytes > 0) out << ", offloaded " << m.host_temp_bytes << (m.host_on_disk ? " to disk" : " in memory");
  return out << '\n';
}
std::ostream& operator<<(std::ostream& out, const CostAnalysis& c) {
  return out << "flops " << c.flops << ", of matrix products " << c.matmul_flops << ", bytes accessed "
             << c.bytes_accessed << '\n';
}

}  // namespace reprise
