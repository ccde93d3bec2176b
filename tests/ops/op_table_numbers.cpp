// Arithmetic of the reference world: nothing here uses the library's own evaluation.
#include "ops/op_table.h"

#include <algorithm>

namespace reprise::op_table {
namespace {

std::size_t offset(const Shape& index, const Shape& shape) {
  std::int64_t at = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + index[d];
  return static_cast<std::size_t>(at);
}

// The element that stands for `index` when x is repeated along dimensions of size 1.
double stretched(const Numbers& x, const Shape& index) {
  if (x.shape.empty()) return x.values[0];
  Shape at = index;
  for (std::size_t d = 0; d < at.size(); ++d) {
    if (x.shape[d] == 1) at[d] = 0;
  }
  return x.at(at);
}

}  // namespace

double& Numbers::at(const Shape& index) { return values.at(offset(index, shape)); }
double Numbers::at(const Shape& index) const { return values.at(offset(index, shape)); }

std::int64_t count_of(const Shape& shape) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) n *= d;
  return n;
}

void for_each_index(const Shape& shape, const std::function<void(const Shape&)>& f) {
  Shape index(shape.size(), 0);
  for (std::int64_t n = count_of(shape); n > 0; --n) {
    f(index);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

Numbers tabulate(const Shape& shape, const std::function<double(const Shape&)>& f) {
  Numbers result{shape, {}};
  for_each_index(shape, [&](const Shape& index) { result.values.push_back(f(index)); });
  return result;
}

Numbers fold(const Numbers& x, const std::vector<std::int64_t>& axes, double start,
             const std::function<double(double, double)>& combine) {
  const auto rest = [&](const Shape& all) {
    Shape kept;
    for (std::size_t d = 0; d < all.size(); ++d) {
      const auto axis = static_cast<std::int64_t>(d);
      if (std::find(axes.begin(), axes.end(), axis) == axes.end()) kept.push_back(all[d]);
    }
    return kept;
  };
  Numbers result = tabulate(rest(x.shape), [&](const Shape&) { return start; });
  for_each_index(x.shape, [&](const Shape& index) {
    double& element = result.at(rest(index));
    element = combine(element, x.at(index));
  });
  return result;
}

std::vector<std::vector<Shape>> only_empty(std::size_t k) {
  return {std::vector<Shape>(k, Shape{0}), std::vector<Shape>(k, Shape{2, 0, 3})};
}
std::vector<std::vector<Shape>> scalar_and_empty(std::size_t k) {
  std::vector<std::vector<Shape>> variants = only_empty(k);
  variants.emplace_back(k, Shape{});
  return variants;
}

Reference each(double (*f)(double)) {
  return [f](const Many& x) {
    return Many{tabulate(x[0].shape, [&](const Shape& i) { return f(x[0].at(i)); })};
  };
}
Reference each(double (*f)(double, double)) {
  return [f](const Many& x) {
    Shape shape = x[0].shape.empty() ? x[1].shape : x[0].shape;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1 && !x[1].shape.empty()) shape[d] = x[1].shape[d];
    }
    return Many{
        tabulate(shape, [&](const Shape& i) { return f(stretched(x[0], i), stretched(x[1], i)); })};
  };
}

}  // namespace reprise::op_table
