#include "plan/pieces.h"

#include "ops/records.h"
#include "program/primitive.h"

#include <algorithm>
#include <unordered_set>

namespace reprise::plan {
namespace {

constexpr std::size_t most_pieces = 8;  // each reader looks for the right one

std::size_t number(Var v) { return static_cast<std::size_t>(v); }

bool is_argument(const Program& p, Var v) {
  return std::find(p.in.begin(), p.in.end(), v) != p.in.end();
}

// Stored as it is, whatever becomes of this piece: an argument, or more than the piece.
bool is_there_anyway(const Program& p, const Piece& piece) {
  return piece.source != Source::memory || is_argument(p, piece.view.root) ||
         element_count(piece.view.shape) < p.type(piece.view.root).size();
}

// What the pieces keep in memory for the readers, against what the whole would.
bool saves_memory(const Program& p, const std::vector<Piece>& pieces, std::size_t whole) {
  std::unordered_set<Var> roots;
  std::size_t kept = 0;
  for (const Piece& piece : pieces) {
    const Var root = piece.view.root;
    if (piece.source != Source::memory || is_argument(p, root) || !roots.insert(root).second)
      continue;
    kept += p.type(root).nbytes();
  }
  return kept <= whole;
}

std::optional<std::vector<Piece>> pieces_side_by_side(const Equation& e, std::vector<Piece> all,
                                                      const Program& p) {
  const auto axis = static_cast<std::size_t>(e.params.get<std::int64_t>("dimension"));
  std::vector<Piece> out;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Piece& piece = all[i];
    const Shape& shape = p.type(e.in[i]).shape;
    if (element_count(shape) == 0) continue;
    if (!is_there_anyway(p, piece)) return std::nullopt;
    if (piece.view.shape.empty()) piece.view = {-1, 0, shape, Ints(shape.size(), 0)};
    piece.begin.assign(shape.size(), 0);
    piece.end = shape;
    piece.begin[axis] = begin;
    piece.end[axis] = begin += shape[axis];
    out.push_back(std::move(piece));
  }
  return out;
}

std::optional<std::vector<Piece>> pieces_in_padding(const Equation& e, std::vector<Piece> all) {
  if (all[1].source != Source::number) return std::nullopt;
  const auto& config = e.params.get<std::vector<Ints>>("padding_config");
  Piece& x = all[0];
  if (x.view.shape.size() != config.size()) return std::nullopt;
  for (std::size_t d = 0; d < config.size(); ++d) {
    if (config[d][0] < 0 || config[d][1] < 0 || config[d][2] != 0) return std::nullopt;
    x.begin.push_back(config[d][0]);
    x.end.push_back(config[d][0] + x.view.shape[d]);
  }
  all[1].view = View{};
  if (element_count(x.view.shape) == 0) all.erase(all.begin());
  return all;
}

}  // namespace

std::vector<bool> readable_in_pieces(const Program& p) {
  std::vector<bool> out(p.types.size(), false), is_read(p.types.size(), false);
  for (const Equation& e : p.eqns) {
    if (e.prim == &concatenate_p || e.prim == &pad_p) out[number(e.out[0])] = true;
    const bool is_elementwise = e.prim->kind == Kind::elementwise;
    for (const Atom& a : e.in) {
      if (!a.is_var()) continue;
      is_read[number(a.var)] = true;
      if (!is_elementwise) out[number(a.var)] = false;
    }
  }
  for (const Atom& a : p.out) {
    if (a.is_var()) out[number(a.var)] = false;
  }
  for (std::size_t v = 0; v < out.size(); ++v) out[v] = out[v] && is_read[v];
  return out;
}

std::optional<std::vector<Piece>> pieces_of(const Program& p, const Equation& e,
                                            std::vector<Piece> operands) {
  const Type& type = p.type(e.out[0]);
  if (operands.size() > most_pieces || type.size() == 0 ||
      !saves_memory(p, operands, type.nbytes()))
    return std::nullopt;
  return e.prim == &pad_p ? pieces_in_padding(e, std::move(operands))
                          : pieces_side_by_side(e, std::move(operands), p);
}

std::vector<Operand> stored_parts(const Operand& x) {
  if (x.source == Source::memory) return {x};
  std::vector<Operand> out;
  if (x.source != Source::pieces) return out;
  for (const Piece& piece : *x.pieces) {
    if (piece.source == Source::memory)
      out.push_back({piece.view, Source::memory, x.dtype, piece.number});
  }
  return out;
}

std::vector<View> side_by_side(const Program& p, const Equation& e, const View& whole) {
  const auto axis = static_cast<std::size_t>(e.params.get<std::int64_t>("dimension"));
  std::vector<View> out;
  View part = whole;
  for (const Atom& a : e.in) {
    part.shape = p.type(a).shape;
    out.push_back(part);
    part.offset += part.shape[axis] * part.strides[axis];
  }
  return out;
}

std::optional<View> inside_padding(const Equation& e, const View& whole) {
  const auto& config = e.params.get<std::vector<Ints>>("padding_config");
  View inside = whole;
  for (std::size_t d = 0; d < config.size(); ++d) {
    if (config[d][0] < 0 || config[d][1] < 0) return std::nullopt;
    inside.offset += config[d][0] * whole.strides[d];
    inside.strides[d] *= config[d][2] + 1;
  }
  return inside;
}

}  // namespace reprise::plan
