#include "runtime/timeline_bodies.h"

#include "base/error.h"
#include "control/scan.h"
#include "program/primitive.h"

#include <algorithm>

namespace reprise {
namespace {

std::vector<Var> roots_of(const std::vector<plan::View>& views, std::size_t first,
                          std::size_t count) {
  std::vector<Var> roots;
  for (std::size_t k = first; k < first + count; ++k) roots.push_back(views[k].root);
  return roots;
}

std::vector<InnerBody> scan_body(const plan::Step& step, const Equation& e, const RunScan& r) {
  const ScanShape shape = scan_shape(e.params);
  InnerBody b{r.body.get(), str(e.prim->name, ", ", r.length, r.length == 1 ? " time" : " times"),
              roots_of(step.operands, 0, step.operands.size()), e.out};
  for (std::size_t k = 0; k < shape.carry; ++k) b.inputs[shape.consts + k] = e.out[k];
  return {std::move(b)};
}
std::vector<InnerBody> cond_bodies(const plan::Step& step, const Equation& e, const RunCond& r) {
  std::vector<InnerBody> bodies;
  for (std::size_t k = 0; k < r.branches.size(); ++k) {
    bodies.push_back({r.branches[k].get(), str("branch ", k, " of ", r.branches.size()),
                      roots_of(step.operands, 1, step.operands.size() - 1), e.out});
  }
  return bodies;
}
std::vector<InnerBody> while_bodies(const plan::Step& step, const Equation& e, const RunWhile& r) {
  const std::size_t tests = r.condition_consts.size(), consts = r.body_consts.size();
  const auto with_carry = [&](std::vector<Var> roots) {
    roots.insert(roots.end(), e.out.begin(), e.out.end());
    return roots;
  };
  return {{r.condition.get(),
           "condition of a while loop",
           with_carry(roots_of(step.operands, 0, tests)),
           {-1}},
          {r.body.get(), "while loop", with_carry(roots_of(step.operands, tests, consts)), e.out}};
}
std::vector<InnerBody> forward_bodies(const plan::Step& step, const Equation& e,
                                      const RunForward& r) {
  const std::size_t tests = r.condition_consts.size(), consts = r.consts.size(),
                    carry = r.carries.size();
  std::vector<InnerBody> bodies;
  if (r.condition) {
    bodies.push_back(
        {r.condition.get(), "condition of a while loop", roots_of(step.operands, 0, tests), {-1}});
    for (std::size_t k = 0; k < carry; ++k) bodies[0].inputs.push_back(e.out[k]);
  }
  const std::string times =
      r.length ? str(", ", *r.length, *r.length == 1 ? " time" : " times") : "";
  InnerBody body{r.body.get(),
                 str(e.prim->name, times, ", ", r.checkpoints, " checkpoints",
                     r.disk > 0 ? str(" and ", r.disk, " on disk") : ""),
                 roots_of(step.operands, tests, consts + carry + r.xs.size()),
                 {e.out.begin(), e.out.begin() + static_cast<std::ptrdiff_t>(carry + r.ys.size())}};
  for (std::size_t k = 0; k < carry; ++k) body.inputs[consts + k] = e.out[k];
  bodies.push_back(std::move(body));
  return bodies;
}
std::vector<InnerBody> reverse_bodies(const plan::Step& step, const Equation& e,
                                      const RunReverse& r) {
  const std::size_t carry = r.carries.size(), back = r.back.size(), outs = back + r.outputs.size();
  const std::size_t first =
      step.operands.size() - r.cts.size() - back - r.xs.size() - carry - r.consts.size();
  const auto last = e.out.end() - static_cast<std::ptrdiff_t>(carry);
  std::vector<InnerBody> bodies{
      {r.advance.get(),
       "steps played again",
       roots_of(step.operands, first, r.consts.size() + carry + r.xs.size()),
       {last, e.out.end()}},
      {r.step.get(),
       "steps reversed",
       roots_of(step.operands, first, step.operands.size() - first),
       {e.out.begin(), e.out.begin() + static_cast<std::ptrdiff_t>(outs)}}};
  for (InnerBody& b : bodies)
    std::copy(last, e.out.end(), b.inputs.begin() + static_cast<std::ptrdiff_t>(r.consts.size()));
  const auto sums = bodies[1].inputs.end() - static_cast<std::ptrdiff_t>(r.cts.size() + back);
  std::copy_n(e.out.begin(), back, sums);
  if (r.length) bodies[0].loop = loop_drawing(*r.length, r.checkpoints, r.disk);
  return bodies;
}
}  // namespace

std::vector<InnerBody> bodies_of(const plan::Step& step, const Instruction& i) {
  const auto* loop = std::get_if<plan::LoopStep>(&step.what);
  if (const auto* scan = std::get_if<RunScan>(&i)) return scan_body(step, *loop->eqn, *scan);
  if (const auto* cond = std::get_if<RunCond>(&i)) return cond_bodies(step, *loop->eqn, *cond);
  if (const auto* other = std::get_if<RunWhile>(&i)) return while_bodies(step, *loop->eqn, *other);
  if (const auto* forward = std::get_if<RunForward>(&i))
    return forward_bodies(step, *loop->eqn, *forward);
  if (const auto* reverse = std::get_if<RunReverse>(&i))
    return reverse_bodies(step, *loop->eqn, *reverse);
  return {};
}

}  // namespace reprise
