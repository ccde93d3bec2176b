#include "runtime/text.h"

#include "program/primitive.h"

namespace reprise {

std::string place_text(const plan::Place& p) {
  switch (p.region) {
    case plan::Region::none: return "nowhere";
    case plan::Region::argument: return "argument " + std::to_string(p.offset);
    case plan::Region::arena: return "arena+" + std::to_string(p.offset);
    case plan::Region::results: return "results+" + std::to_string(p.offset);
    case plan::Region::host: return "host+" + std::to_string(p.offset);
    case plan::Region::own: break;
  }
  return "output " + std::to_string(p.offset);
}

std::string product_text(const plan::DotStep& d) {
  return std::string("matmul") + (d.has_bias ? " + row" : "") + (d.accumulates ? " + result" : "");
}

const char* transfer_text(plan::Transfer t) {
  constexpr const char* names[] = {"begin_write", "end_write", "begin_read", "end_read"};
  return names[static_cast<std::size_t>(t)];
}

namespace {

std::string value_text(const Code& c, Var root) {
  return to_string(c.schedule->types[static_cast<std::size_t>(root)]) + " v" +
         std::to_string(root) + " @ " + place_text(c.memory.places[static_cast<std::size_t>(root)]);
}

std::string operations(const plan::Kernel& k) {
  std::string out;
  for (const plan::Node& n : k.nodes) {
    if (n.eqn == nullptr || n.kind == plan::NodeKind::load) continue;
    if (!out.empty()) out += ' ';
    out += n.eqn->prim->name;
  }
  return out.empty() ? "copy" : out;
}

struct Describe {
  const Instruction& instruction;
  std::string operator()(const plan::Kernel& k) const { return "kernel [" + operations(k) + "]"; }
  std::string operator()(const plan::DotStep& d) const { return product_text(d); }
  std::string operator()(const plan::LoopStep& l) const { return l.eqn->prim->name; }
  std::string operator()(const plan::TransferStep& t) const { return transfer_text(t.what); }
  std::string operator()(const plan::RelayStep& r) const {
    std::string out = str("relay of ", r.slices, " slices [");
    for (std::size_t i = 0; i < r.steps.size(); ++i)
      out += (i > 0 ? ", " : "") + std::visit(Describe{instruction}, r.steps[i].what);
    return out + "]";
  }
  std::string operator()(const plan::EvalStep& e) const {  // by what became of it
    if (std::holds_alternative<RunConv>(instruction)) return "convolution";
    return std::holds_alternative<RunKernel>(instruction) ? str("kernel [", e.eqn->prim->name, "]")
                                                          : str("evaluate ", e.eqn->prim->name);
  }
};

void append_bodies(std::string& out, const Instruction& i, const std::string& indent);

void append(std::string& out, const Code& c, const std::string& indent) {
  for (std::size_t i = 0; i < c.instructions.size(); ++i) {
    out += indent + step_text(c, i) + '\n';
    append_bodies(out, c.instructions[i], indent + "  ");
  }
}
void append_bodies(std::string& out, const Instruction& i, const std::string& indent) {
  if (const auto* scan = std::get_if<RunScan>(&i)) append(out, *scan->body, indent);
  if (const auto* cond = std::get_if<RunCond>(&i)) {
    for (const auto& branch : cond->branches) append(out, *branch, indent + "| ");
  }
  if (const auto* loop = std::get_if<RunWhile>(&i)) {
    append(out, *loop->condition, indent + "? ");
    append(out, *loop->body, indent);
  }
  if (const auto* forward = std::get_if<RunForward>(&i)) {
    if (forward->condition) append(out, *forward->condition, indent + "? ");
    append(out, *forward->body, indent);
  }
  if (const auto* reverse = std::get_if<RunReverse>(&i)) {
    append(out, *reverse->advance, indent + "> ");
    append(out, *reverse->step, indent);
  }
}

}  // namespace

std::string step_text(const Code& c, std::size_t i) {
  const plan::Step& s = c.schedule->steps[i];
  std::string out = std::visit(Describe{c.instructions[i]}, s.what);
  for (Var v : s.reads) out += " v" + std::to_string(v);
  out += " ->";
  for (Var v : s.writes) out += " " + value_text(c, v);
  return out;
}

std::string to_text(const Code& c) {
  const plan::MemoryPlan& m = c.memory;
  std::string out = "arguments " + std::to_string(m.argument_bytes) + " bytes, results " +
                    std::to_string(m.result_bytes + m.own_bytes) + ", arena " +
                    std::to_string(m.arena_bytes) + ", peak " + std::to_string(m.peak());
  if (m.host_bytes > 0)
    out += ", host " + std::to_string(m.host_bytes) + (m.host_on_disk ? " on disk" : " in memory");
  out += '\n';
  append(out, c, "");
  return out;
}

}  // namespace reprise
