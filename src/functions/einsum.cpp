// einsum: sums of products by letters.
//
//   "ij,jk,kl->il"  =>  pairs in the cheapest order, each one a dot_general
//
// Every axis has a letter; the axes that "..." stands for have letters no one can write.
#include "base/dtype.h"
#include "ops/lax.h"
#include "ops/reduce.h"
#include "reprise/ops_reduce.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace reprise {
namespace {

using Letters = std::string;

bool has(const Letters& letters, char c) { return letters.find(c) != Letters::npos; }
std::int64_t count(const Letters& letters, char c) {
  return std::count(letters.begin(), letters.end(), c);
}
std::int64_t position(const Letters& letters, char c) {
  return static_cast<std::int64_t>(letters.find(c));
}
// The letters for which `keep` holds, in order.
template <class F>
Letters filtered(const Letters& letters, F&& keep) {
  Letters out;
  std::copy_if(letters.begin(), letters.end(), std::back_inserter(out), keep);
  return out;
}
Letters without(const Letters& letters, const Letters& removed) {
  return filtered(letters, [&](char c) { return !has(removed, c); });
}
Letters distinct_sorted(Letters letters) {
  std::sort(letters.begin(), letters.end());
  letters.erase(std::unique(letters.begin(), letters.end()), letters.end());
  return letters;
}

struct Term {
  Array x;
  Letters letters;
};

// ---------------------------------------------------------------------------------------- parsing
struct Subscripts {
  std::vector<Letters> in;
  Letters out;
};

class SubscriptParser {
 public:
  SubscriptParser(std::string_view text, const Arrays& operands)
      : text_(text), operands_(operands) {}

  Subscripts parse() {
    Letters plain = filtered(Letters(text_), [](char c) { return c != ' '; });
    std::optional<Letters> out;
    if (const std::size_t arrow = plain.find("->"); arrow != Letters::npos) {
      out = plain.substr(arrow + 2);
      plain.resize(arrow);
    }
    Subscripts e;
    for (std::size_t start = 0, end = 0; end != Letters::npos; start = end + 1) {
      end = plain.find(',', start);
      e.in.push_back(plain.substr(start, end == Letters::npos ? end : end - start));
    }
    if (e.in.size() != operands_.size()) {
      fail<TypeError>("einsum: one subscript for each operand is needed, got ", text_, " for ",
                      operands_.size(), operands_.size() == 1 ? " operand" : " operands");
    }
    for (std::size_t i = 0; i < e.in.size(); ++i) e.in[i] = expand(e.in[i], operands_[i].ndim(), i);
    e.out = out ? expand_output(*out) : implicit_output(e.in);
    check_output(e);
    return e;
  }

 private:
  // The last n letters of those that stand for "...": it is aligned at its end.
  Letters hidden(std::int64_t n) const {
    Letters out;
    for (std::int64_t i = n; i > 0; --i) out.push_back(static_cast<char>(i));
    return out;
  }
  // Replaces "..." by `hidden_letters`; anything else must be a letter.
  Letters replace_dots(const Letters& subscript, const Letters& hidden_letters) const {
    Letters out = subscript;
    if (const std::size_t dots = out.find("..."); dots != Letters::npos) {
      out.replace(dots, 3, hidden_letters);
    }
    for (char c : out) {
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (!letter && !has(hidden_letters, c)) {
        fail<TypeError>("einsum: subscripts are letters, \"...\", \",\" and \"->\", got ", text_);
      }
    }
    return out;
  }
  Letters expand(const Letters& subscript, std::int64_t ndim, std::size_t i) {
    const bool dots = has(subscript, '.');
    const std::int64_t named = static_cast<std::int64_t>(subscript.size()) - (dots ? 3 : 0);
    if (named > ndim || (!dots && named != ndim) || ndim - named > 30) {
      fail<TypeError>("einsum: operand ", i, " needs a letter for each axis, got ", subscript,
                      " for ", operands_[i].type());
    }
    if (dots) dots_ = std::max(dots_, ndim - named);
    return replace_dots(subscript, dots ? hidden(ndim - named) : "");
  }
  Letters expand_output(const Letters& subscript) const {
    return replace_dots(subscript, has(subscript, '.') ? hidden(dots_) : "");
  }
  Letters implicit_output(const std::vector<Letters>& in) const {
    Letters all;
    for (const Letters& l : in) all += l;
    const Letters once = filtered(
        distinct_sorted(all), [&](char c) { return count(all, c) == 1 && !has(hidden(dots_), c); });
    return hidden(dots_) + once;
  }
  void check_output(const Subscripts& e) const {
    for (char c : e.out) {
      const bool known =
          std::any_of(e.in.begin(), e.in.end(), [&](const Letters& l) { return has(l, c); });
      if (!known || count(e.out, c) != 1) {
        fail<TypeError>("einsum: a letter of the result must stand once in it and in some operand,",
                        " got ", text_);
      }
    }
  }

  std::string_view text_;
  const Arrays& operands_;
  std::int64_t dots_ = 0;
};

using Sizes = std::map<char, std::int64_t>;

// The size of every letter; axes of size 1 are repeated.
Sizes sizes_of(const std::vector<Letters>& in, const Arrays& operands) {
  Sizes sizes;
  for (std::size_t i = 0; i < in.size(); ++i) {
    for (std::size_t d = 0; d < in[i].size(); ++d) {
      const std::int64_t mine = operands[i].shape()[d];
      const auto [it, is_new] = sizes.try_emplace(in[i][d], mine);
      if (is_new || mine == it->second || mine == 1) continue;
      if (it->second != 1) {
        fail<TypeError>("einsum: sizes of one letter differ, got ", mine, " (operand ", i, " axis ",
                        d, ") and ", it->second, " before");
      }
      it->second = mine;
    }
  }
  return sizes;
}

// ------------------------------------------------------------------------------------------- path
// Pairs of positions in the list of operands; a pair's result goes to the end of the list.
using Path = std::vector<std::pair<std::size_t, std::size_t>>;

// What is left of two operands when letters that nobody else needs are summed.
Letters joined_letters(const std::vector<Letters>& terms, std::size_t i, std::size_t j,
                       const Letters& out) {
  Letters needed = out;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    if (k != i && k != j) needed += terms[k];
  }
  return filtered(distinct_sorted(terms[i] + terms[j]), [&](char c) { return has(needed, c); });
}
double cost_of(const Letters& a, const Letters& b, const Letters& result, const Sizes& sizes) {
  double cost = 1;
  bool sums = false;
  for (char c : distinct_sorted(a + b)) {
    cost *= static_cast<double>(sizes.at(c));
    sums = sums || (has(a, c) && has(b, c) && !has(result, c));
  }
  return sums ? 2 * cost : cost;
}

class PathSearch {
 public:
  PathSearch(const Letters& out, const Sizes& sizes) : out_(out), sizes_(sizes) {}

  // All orders for a few operands, the cheapest next pair for many.
  Path find(std::vector<Letters> terms) {
    if (terms.size() <= 5) {
      search(terms, 0);
      return best_;
    }
    while (terms.size() > 1) take_cheapest(terms);
    return path_;
  }

 private:
  std::vector<Letters> after(const std::vector<Letters>& terms, std::size_t i,
                             std::size_t j) const {
    std::vector<Letters> rest;
    for (std::size_t k = 0; k < terms.size(); ++k) {
      if (k != i && k != j) rest.push_back(terms[k]);
    }
    rest.push_back(joined_letters(terms, i, j, out_));
    return rest;
  }
  double step_cost(const std::vector<Letters>& terms, std::size_t i, std::size_t j) const {
    return cost_of(terms[i], terms[j], joined_letters(terms, i, j, out_), sizes_);
  }
  void search(const std::vector<Letters>& terms, double cost) {
    if (terms.size() == 1) {
      best_ = path_;
      best_cost_ = cost;
      return;
    }
    for (std::size_t i = 0; i < terms.size(); ++i) {
      for (std::size_t j = i + 1; j < terms.size(); ++j) {
        const double total = cost + step_cost(terms, i, j);
        if (total >= best_cost_) continue;
        path_.emplace_back(i, j);
        search(after(terms, i, j), total);
        path_.pop_back();
      }
    }
  }
  void take_cheapest(std::vector<Letters>& terms) {
    std::pair<std::size_t, std::size_t> pair{0, 1};
    double cheapest = step_cost(terms, 0, 1);
    for (std::size_t i = 0; i < terms.size(); ++i) {
      for (std::size_t j = i + 1; j < terms.size(); ++j) {
        const double cost = step_cost(terms, i, j);
        if (cost < cheapest) {
          cheapest = cost;
          pair = {i, j};
        }
      }
    }
    path_.push_back(pair);
    terms = after(terms, pair.first, pair.second);
  }

  const Letters& out_;
  const Sizes& sizes_;
  Path path_, best_;
  double best_cost_ = std::numeric_limits<double>::infinity();
};

// ------------------------------------------------------------------------------------ contraction
class Contraction {
 public:
  explicit Contraction(Promoted type) : type_(type) {}

  // One operand: sums what the result does not have, takes diagonals of repeated letters.
  Term reduce(Term t, const Letters& result) const {
    const Letters original = t.letters;
    t = sum_out(t, filtered(distinct_sorted(t.letters),
                            [&](char c) { return count(original, c) == 1 && !has(result, c); }));
    return ordered(sum_repeats(t, original, result), result);
  }

  // Two operands; `summed` are the letters that nothing after this needs.
  Term multiply(Term lhs, Term rhs, Letters summed, const Letters& result) const {
    lhs = squeeze_repeated(lhs, rhs);
    rhs = squeeze_repeated(rhs, lhs);
    const Letters lhs_original = lhs.letters, rhs_original = rhs.letters;
    lhs = sum_out(lhs, filtered(summed, [&](char c) {
                    return count(lhs_original, c) == 1 && !has(rhs_original, c);
                  }));
    rhs = sum_out(rhs, filtered(summed, [&](char c) {
                    return count(rhs_original, c) == 1 && !has(lhs_original, c);
                  }));
    lhs = sum_repeats(lhs, lhs_original, result + rhs.letters);
    rhs = sum_repeats(rhs, rhs_original, result + lhs.letters);
    const auto in_both = [&](char c) { return has(lhs.letters, c) && has(rhs.letters, c); };
    summed = filtered(summed, in_both);
    const Letters batch = filtered(result, in_both);
    const Letters lhs_rest = without(lhs.letters, batch + summed);
    const Letters rhs_rest = without(rhs.letters, batch + summed);
    // The order that needs no transpose.
    if (batch + rhs_rest + lhs_rest == result) return product(rhs, lhs, summed, batch, result);
    return ordered(product(lhs, rhs, summed, batch, batch + lhs_rest + rhs_rest), result);
  }

  Array finish(const Array& x) const { return lax::convert(x, type_.dtype, type_.weak_type); }

 private:
  Array sum_axes(const Array& x, const Ints& axes) const {
    const Dtype dtype = promote_types(x.dtype(), x.weak_type(), type_.dtype, type_.weak_type).dtype;
    const Array wide = dtype == x.dtype() ? x : lax::convert(x, type_.dtype);
    return wide.dtype() == Dtype::bool_ ? lax::reduce_or(wide, axes) : lax::reduce_sum(wide, axes);
  }
  Term sum_out(const Term& t, const Letters& summed) const {
    if (summed.empty()) return t;
    Ints axes;
    for (char c : summed) axes.push_back(position(t.letters, c));
    return {sum_axes(t.x, axes), without(t.letters, summed)};
  }
  // Keeps the elements where the indices of one letter agree.
  Term sum_repeats(Term t, const Letters& original, const Letters& keep) const {
    Letters seen;
    for (char c : original) {
      if (count(original, c) == 1 || has(seen, c)) continue;
      seen.push_back(c);
      Ints axes;
      for (std::size_t d = 0; d < t.letters.size(); ++d) {
        if (t.letters[d] == c) axes.push_back(static_cast<std::int64_t>(d));
      }
      const Array diagonal = diagonal_mask(t.x.shape(), axes);
      const Array zero = lax::zeros(t.x.type());
      t.x = lax::select_n(diagonal, {zero, t.x});
      if (has(keep, c)) axes.pop_back();
      t.x = sum_axes(t.x, axes);
      for (std::size_t i = 0; i < axes.size(); ++i) t.letters.erase(t.letters.find(c), 1);
    }
    return t;
  }
  static Array diagonal_mask(const Shape& shape, const Ints& axes) {
    const Shape square = sizes_at(shape, axes);
    Array mask;
    Arrays indices;
    for (std::size_t d = 0; d < axes.size(); ++d) {
      indices.push_back(lax::iota(Dtype::u32, square, static_cast<std::int64_t>(d)));
    }
    for (std::size_t d = 0; d + 1 < axes.size(); ++d) {
      const Array same = lax::eq(indices[d], indices[d + 1]);
      mask = d == 0 ? same : lax::bitwise_and(mask, same);
    }
    return lax::broadcast_in_dim(mask, shape, axes);
  }
  // Drops axes of size 1 where the other operand has a longer one.
  static Term squeeze_repeated(const Term& t, const Term& other) {
    Ints axes;
    Letters letters;
    for (std::size_t d = 0; d < t.letters.size(); ++d) {
      const std::size_t there = other.letters.find(t.letters[d]);
      const bool repeated =
          t.x.shape()[d] == 1 && there != Letters::npos && other.x.shape()[there] != 1;
      if (repeated) {
        axes.push_back(static_cast<std::int64_t>(d));
      } else {
        letters.push_back(t.letters[d]);
      }
    }
    return {lax::squeeze(t.x, axes), letters};
  }
  Term product(const Term& a, const Term& b, const Letters& summed, const Letters& batch,
               const Letters& letters) const {
    lax::DotDimensionNumbers dims;
    for (char c : summed) {
      dims.lhs_contracting.push_back(position(a.letters, c));
      dims.rhs_contracting.push_back(position(b.letters, c));
    }
    for (char c : batch) {
      dims.lhs_batch.push_back(position(a.letters, c));
      dims.rhs_batch.push_back(position(b.letters, c));
    }
    return {lax::dot_general(a.x, b.x, dims, type_.dtype), letters};
  }
  static Term ordered(const Term& t, const Letters& result) {
    Ints order;
    for (char c : result) order.push_back(position(t.letters, c));
    return {lax::transpose(t.x, order), result};
  }

  Promoted type_;
};

// The letters of an intermediate result: in the order in which the operands have them.
Letters in_order_of(const Letters& first, const Letters& second, const Letters& kept) {
  Letters out;
  for (char c : first + second) {
    if (has(kept, c) && !has(out, c)) out.push_back(c);
  }
  return out;
}

}  // namespace

Array einsum(std::string_view subscripts, const Arrays& operands, Location at_location) {
  const AtUser at(at_location);
  if (operands.empty()) fail<TypeError>("einsum: at least one operand is needed, got none");
  const Subscripts e = SubscriptParser(subscripts, operands).parse();
  const Sizes sizes = sizes_of(e.in, operands);
  Promoted type{operands[0].dtype(), operands[0].weak_type()};
  std::vector<Term> terms;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    type = promote_types(type.dtype, type.weak_type, operands[i].dtype(), operands[i].weak_type());
    terms.push_back({operands[i], e.in[i]});
  }
  const Contraction contraction(type);
  if (terms.size() == 1) return contraction.finish(contraction.reduce(terms[0], e.out).x);
  for (const auto& [i, j] : PathSearch(e.out, sizes).find(e.in)) {
    std::vector<Letters> letters;
    for (const Term& t : terms) letters.push_back(t.letters);
    const Letters kept = joined_letters(letters, i, j, e.out);
    // As opt_einsum does: the later operand is the left one.
    const Term lhs = terms[j], rhs = terms[i];
    const Letters result = terms.size() == 2 ? e.out : in_order_of(lhs.letters, rhs.letters, kept);
    const Letters summed = without(distinct_sorted(lhs.letters + rhs.letters), kept);
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(j));
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(i));
    terms.push_back(contraction.multiply(lhs, rhs, summed, result));
  }
  return contraction.finish(terms[0].x);
}
Array einsum(std::string_view subscripts, Operand a) { return einsum(subscripts, {a.array}, a.at); }
Array einsum(std::string_view subscripts, Operand a, Operand b) {
  return einsum(subscripts, {a.array, b.array}, b.at);
}
Array einsum(std::string_view subscripts, Operand a, Operand b, Operand c) {
  return einsum(subscripts, {a.array, b.array, c.array}, c.at);
}
Array einsum(std::string_view subscripts, Operand a, Operand b, Operand c, Operand d) {
  return einsum(subscripts, {a.array, b.array, c.array, d.array}, d.at);
}

}  // namespace reprise
