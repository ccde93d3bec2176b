#include "plan/storage.h"

#include "base/dtype.h"
#include "ops/records.h"
#include "plan/dot.h"
#include "plan/pieces.h"

#include <algorithm>
#include <optional>

namespace reprise::plan {
namespace {

std::size_t at(Var v) { return static_cast<std::size_t>(v); }

class StorageFinder {
 public:
  explicit StorageFinder(const Program& p)
      : p_(p), order_(p.types.size()), in_pieces_(readable_in_pieces(p)) {}

  Storage run() {
    find();
    choose_layouts();
    if (any_layout_) find();
    place_in_concatenations();
    return std::move(s_);
  }

 private:
  void find() {
    const std::size_t n = p_.types.size();
    s_ = {std::vector<View>(n), std::vector<Origin>(n), std::vector<bool>(p_.eqns.size(), false),
          std::vector<int>(n, 0)};
    made_by_.assign(n, nullptr);
    for (Var v : p_.in) s_.view[at(v)] = dense_view(v, p_.type(v).shape);
    for (std::size_t i = 0; i < p_.eqns.size(); ++i) {
      const Equation& e = p_.eqns[i];
      s_.is_view[i] = is_view(e);
      if (s_.is_view[i]) continue;
      for (Var v : e.out) {
        s_.view[at(v)] = stored(v);
        made_by_[at(v)] = &e;
      }
      for (const Atom& a : e.in) {
        if (a.is_var()) count_use(s_.view[at(a.var)].root);
      }
    }
    for (const Atom& a : p_.out) {
      if (a.is_var()) count_use(s_.view[at(a.var)].root);
    }
  }
  void count_use(Var root) {
    if (s_.origin[at(root)].source != Source::pieces) ++s_.uses[at(root)];
    for (const Piece& piece : s_.origin[at(root)].pieces) {
      if (piece.source == Source::memory) ++s_.uses[at(piece.view.root)];
    }
  }
  bool is_read_in_pieces(const Equation& e) {
    if (!in_pieces_[at(e.out[0])]) return false;
    std::vector<Piece> pieces;
    for (const Atom& a : e.in) {
      if (!a.is_var()) {
        pieces.push_back({View{}, Source::number, a.literal, {}, {}});
        continue;
      }
      const View& v = s_.view[at(a.var)];
      const Origin& o = s_.origin[at(v.root)];
      if (o.source == Source::pieces) return false;
      pieces.push_back({v, o.source, o.number, {}, {}});
    }
    auto placed = pieces_of(p_, e, std::move(pieces));
    if (!placed) return false;
    const Var out = e.out[0];
    s_.view[at(out)] = dense_view(out, p_.type(out).shape);
    s_.origin[at(out)] = {Source::pieces, {}, std::move(*placed)};
    return true;
  }
  // Fills the views of a shape equation's outputs; false: it computes.
  bool is_view(const Equation& e) {
    if (e.out.empty()) return false;
    const Var out = e.out[0];
    const Shape& shape = p_.type(out).shape;
    if (e.prim == &iota_p) {
      View v{out, 0, shape, Ints(shape.size(), 0)};
      v.strides[static_cast<std::size_t>(e.params.get<std::int64_t>("dimension"))] = 1;
      s_.view[at(out)] = std::move(v);
      s_.origin[at(out)] = {Source::index, {}};
      return true;
    }
    if (e.in.empty()) return false;
    if (e.prim == &concatenate_p || e.prim == &pad_p) return is_read_in_pieces(e);
    const bool of_variable = e.in[0].is_var();
    std::vector<View> views;
    for (std::size_t k = 0; k < e.out.size(); ++k) {
      const View from = of_variable ? s_.view[at(e.in[0].var)] : View{out, 0, {}, {}};
      auto v = view_of(e, k, from, p_.type(e.out[k]));
      if (!v) return false;
      views.push_back(std::move(*v));
    }
    for (std::size_t k = 0; k < e.out.size(); ++k) s_.view[at(e.out[k])] = views[k];
    if (!of_variable) s_.origin[at(out)] = {Source::number, e.in[0].literal};
    return true;
  }
  View stored(Var v) const {
    const Shape& shape = p_.type(v).shape;
    if (order_[at(v)].empty()) return dense_view(v, shape);
    Shape in_memory;
    for (std::int64_t d : order_[at(v)]) in_memory.push_back(shape[static_cast<std::size_t>(d)]);
    const Shape strides = row_major_strides(in_memory);
    View out{v, 0, shape, Ints(shape.size(), 0)};
    for (std::size_t i = 0; i < in_memory.size(); ++i)
      out.strides[static_cast<std::size_t>(order_[at(v)][i])] = strides[i];
    return out;
  }

  // Whether this equation can write its result to such a view.
  bool can_write(const Equation* e, const View& v) const {
    if (e == nullptr) return false;
    return e->prim == &concatenate_p || (is_compiled_dot(p_, *e) && dot_result(p_, *e, v));
  }
  // A reshape or an output that must copy because its operand is transposed: the operand's producer
  // writes in that order instead. For the sake of other readers the innermost dimension stays.
  void choose_layouts() {
    for (std::size_t i = 0; i < p_.eqns.size(); ++i) {
      const Equation& e = p_.eqns[i];
      if (e.prim == &reshape_p && !s_.is_view[i] && e.in[0].is_var())
        choose_layout(s_.view[at(e.in[0].var)]);
    }
    for (const Atom& a : p_.out) {
      if (a.is_var()) choose_layout(s_.view[at(a.var)]);
    }
  }
  void choose_layout(const View& v) {
    const auto order = order_of_whole(v);
    if (!order || is_dense(v) || !order_[at(v.root)].empty()) return;
    const bool same_innermost = order->back() + 1 == static_cast<std::int64_t>(order->size());
    if (!same_innermost && s_.uses[at(v.root)] != 1) return;
    order_[at(v.root)] = *order;
    if (can_write(made_by_[at(v.root)], stored(v.root)))
      any_layout_ = true;
    else
      order_[at(v.root)].clear();
  }
  // Of a view of all of a variable that is stored as it is: the variable's dimensions in the view's
  // order.
  std::optional<Ints> order_of_whole(const View& v) const {
    if (v.root < 0 || s_.origin[at(v.root)].source != Source::memory) return std::nullopt;
    const Shape& whole = p_.type(v.root).shape;
    if (v.offset != 0 || v.shape.size() != whole.size()) return std::nullopt;
    const Shape dense = row_major_strides(whole);
    Ints order;
    for (std::size_t d = 0; d < v.shape.size(); ++d) {
      const auto same = std::find(dense.begin(), dense.end(), v.strides[d]);
      if (same == dense.end() ||
          whole[static_cast<std::size_t>(same - dense.begin())] != v.shape[d])
        return std::nullopt;
      order.push_back(same - dense.begin());
    }
    Ints sorted = order;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return std::nullopt;
    return order;
  }
  // Products that only a concatenation reads, transposed or not, are written where it wants them.
  void place_in_concatenations() {
    for (const Equation& e : p_.eqns) {
      if (e.prim != &concatenate_p || s_.origin[at(e.out[0])].source == Source::pieces) continue;
      const std::vector<View> parts = side_by_side(p_, e, s_.view[at(e.out[0])]);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (e.in[i].is_var()) place_product(e.in[i].var, parts[i]);
      }
    }
  }
  void place_product(Var v, const View& part) {
    const Var product = s_.view[at(v)].root;
    const Equation* maker = product < 0 ? nullptr : made_by_[at(product)];
    if (maker == nullptr || maker->prim != &dot_general_p || !order_[at(product)].empty() ||
        s_.uses[at(product)] != 1)
      return;
    const auto order = order_of_whole(s_.view[at(v)]);
    if (!order) return;
    View whole{part.root, part.offset, p_.type(product).shape, Ints(order->size(), 0)};
    for (std::size_t d = 0; d < order->size(); ++d)
      whole.strides[static_cast<std::size_t>((*order)[d])] = part.strides[d];
    if (!can_write(maker, whole)) return;
    s_.view[at(product)] = whole;
    s_.view[at(v)] = part;
    s_.uses[at(product)] = 0;
    ++s_.uses[at(part.root)];
  }

  const Program& p_;
  Storage s_;
  // of stored variables: dimensions from outermost to innermost; empty: as they are
  std::vector<Ints> order_;
  std::vector<bool> in_pieces_;  // of every variable: whether its readers can read it so
  std::vector<const Equation*> made_by_;
  bool any_layout_ = false;
};

}  // namespace

Storage find_storage(const Program& p) { return StorageFinder(p).run(); }

}  // namespace reprise::plan
