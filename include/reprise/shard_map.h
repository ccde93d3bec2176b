// Programs on many ranks: meshes, how arrays are divided among ranks, shard_map, and what ranks say
// to each other inside it.
//
//   rp::Mesh mesh({{"data", 4}});
//   auto loss = rp::shard_map(
//       [](rp::Array w, rp::Array x) { return rp::lax::pmean(rp::mean(rp::square(x * w)), "data"); },
//       mesh, {P(), P("data")}, P());       // using P = rp::PartitionSpec
//   rp::grad(loss)(w, x);                   // the gradient of w is summed over the ranks by itself
//
// Every rank is a process that runs the same program. Outside of shard_map an array is whole on
// every rank: P("data") cuts an argument without communication, and puts results together again.
// Results with P("data").local() stay where they are: each rank has its own part, with a type that
// says so (f32[2,8]{V:data}), and an argument of such a type is taken as the part that it is. Ranks
// come from reprise/dist.h; without it there is one.
#pragma once

#include "reprise/callable.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise {

struct MeshGrid;

// All ranks in a grid whose axes have names. Rank numbers grow fastest along the last axis.
class Mesh {
 public:
  using Axes = std::vector<std::pair<std::string, std::int64_t>>;
  Mesh(Axes axes, Location at = Location::current());  // NOLINT: a list of names and sizes
  std::vector<std::string> axis_names() const;
  std::int64_t axis_size(const std::string& name) const;  // a TypeError when there is none
  std::int64_t size() const;                              // of all axes together
  const MeshGrid* grid() const { return grid_; }
  bool operator==(const Mesh&) const = default;

 protected:
  explicit Mesh(const MeshGrid* grid) : grid_(grid) {}
  const MeshGrid* grid_;
};
// A mesh without ranks: programs on it are traced, planned and reported, and never run.
class AbstractMesh : public Mesh {
 public:
  AbstractMesh(Axes axes, Location at = Location::current());  // NOLINT: a list of names and sizes
};

// One name of a mesh axis, or several: ranks are counted with the last one growing fastest.
class AxisName {
 public:
  AxisName(const char* name) : names_{name} {}             // NOLINT: a name
  AxisName(std::string name) : names_{std::move(name)} {}  // NOLINT
  AxisName(std::initializer_list<const char*> names)       // NOLINT
      : names_(names.begin(), names.end()) {}
  AxisName(std::vector<std::string> names) : names_(std::move(names)) {}  // NOLINT
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
};

// How each dimension of an array is divided: by a mesh axis, by several, or not (rp::none).
// Dimensions that are not mentioned are not divided.
class PartitionSpec {
 public:
  class Entry {
   public:
    Entry(None) {}                                        // NOLINT: by design
    Entry(const char* name) : names_{name} {}             // NOLINT
    Entry(std::string name) : names_{std::move(name)} {}  // NOLINT
    Entry(std::initializer_list<const char*> names) : names_(names.begin(), names.end()) {}
    Entry(std::vector<std::string> names) : names_(std::move(names)) {}  // NOLINT
    const std::vector<std::string>& names() const { return names_; }
    bool operator==(const Entry&) const = default;

   private:
    std::vector<std::string> names_;
  };
  PartitionSpec() = default;
  explicit PartitionSpec(Entry a) : entries_{std::move(a)} {}
  PartitionSpec(Entry a, Entry b) : entries_{std::move(a), std::move(b)} {}
  PartitionSpec(Entry a, Entry b, Entry c) : entries_{std::move(a), std::move(b), std::move(c)} {}
  PartitionSpec(Entry a, Entry b, Entry c, Entry d)
      : entries_{std::move(a), std::move(b), std::move(c), std::move(d)} {}
  explicit PartitionSpec(std::vector<Entry> entries) : entries_(std::move(entries)) {}
  const std::vector<Entry>& entries() const { return entries_; }
  // The same division, but outside of shard_map each rank has its own part only.
  PartitionSpec local() const {
    PartitionSpec same = *this;
    same.is_local_ = true;
    return same;
  }
  bool is_local() const { return is_local_; }
  bool operator==(const PartitionSpec&) const = default;

 private:
  std::vector<Entry> entries_;
  bool is_local_ = false;
};
std::string to_string(const PartitionSpec&);  // P('data', None)

// Of one argument or result: one division for all its arrays, or one for each array in order.
class Specs {
 public:
  Specs(PartitionSpec all) : each_{std::move(all)}, is_for_all_(true) {}  // NOLINT
  Specs(std::vector<PartitionSpec> each) : each_(std::move(each)) {}      // NOLINT
  const std::vector<PartitionSpec>& each() const { return each_; }
  bool is_for_all() const { return is_for_all_; }

 private:
  std::vector<PartitionSpec> each_;
  bool is_for_all_ = false;
};
// Of all arguments: one division for everything, or one entry for each argument.
class InSpecs {
 public:
  InSpecs(PartitionSpec all) : each_{Specs(std::move(all))}, is_for_all_(true) {}  // NOLINT
  InSpecs(std::initializer_list<Specs> each) : each_(each) {}                      // NOLINT
  InSpecs(std::vector<Specs> each) : each_(std::move(each)) {}                     // NOLINT
  const std::vector<Specs>& each() const { return each_; }
  bool is_for_all() const { return is_for_all_; }

 private:
  std::vector<Specs> each_;
  bool is_for_all_ = false;
};

namespace detail {
// `argument` tells for each leaf which of the arguments it belongs to.
Arrays shard_map(const Callee& f, const Arrays& args, const std::vector<std::size_t>& argument,
                 std::size_t arguments, const Mesh& mesh, const InSpecs& in_specs,
                 const Specs& out_specs);

template <class F>
struct ShardMap : CallOperator<ShardMap<F>, F> {
  F f;
  Mesh mesh;
  InSpecs in_specs;
  Specs out_specs;
  ShardMap(F fn, Mesh m, InSpecs in, Specs out)
      : f(std::move(fn)), mesh(std::move(m)), in_specs(std::move(in)), out_specs(std::move(out)) {}

  template <class... A>
  auto call(Location at, std::tuple<A...> args) const {
    const auto applied = apply_to(f, std::move(args), at);
    std::vector<std::size_t> argument;
    std::size_t i = 0;
    auto add = [&](const auto& a) {
      argument.insert(argument.end(), tree_leaves(a).size(), i);
      ++i;
    };
    std::apply([&](const auto&... a) { (add(a), ...); }, applied.args());
    return applied.result(shard_map(applied.callee(), applied.leaves(), argument, sizeof...(A),
                                    mesh, in_specs, out_specs));
  }
};
}  // namespace detail

// f on every rank's part of the arguments. A result that is the same on ranks of an axis, as psum
// makes it, has a spec without that axis.
template <class F>
detail::ShardMap<F> shard_map(F f, Mesh mesh, InSpecs in_specs, Specs out_specs) {
  return {std::move(f), std::move(mesh), std::move(in_specs), std::move(out_specs)};
}

// This rank's part of an array that is whole everywhere, as arguments of shard_map may be.
Array shard(Operand x, const Mesh& mesh, const PartitionSpec& spec);
// An array that this rank read or computed by itself, declared to be its part.
Array as_shard(Operand part, const Mesh& mesh, const PartitionSpec& spec);
// The whole array from the parts that ranks have.
Array unshard(Operand x, const Mesh& mesh, const PartitionSpec& spec);

namespace lax {
// What ranks compute together inside of shard_map. Each must be reached by all of them.

Array psum(Operand x, const AxisName& axis_name);  // the sum over the ranks, the same on each
Array pmean(Operand x, const AxisName& axis_name);
Array pmax(Operand x, const AxisName& axis_name);
Array pmin(Operand x, const AxisName& axis_name);
// The arrays of all ranks along a new axis, or tiled: one after the other along an axis that is
// there.
struct AllGatherOptions {
  std::int64_t axis = 0;
  bool tiled = false;
};
Array all_gather(Operand x, const AxisName& axis_name, const AllGatherOptions& options = {});
// The sum over the ranks, of which each has its own part along a dimension; tiled: which stays.
struct PsumScatterOptions {
  std::int64_t scatter_dimension = 0;
  bool tiled = false;
};
Array psum_scatter(Operand x, const AxisName& axis_name, const PsumScatterOptions& options = {});
// Sends x along (source, destination) pairs; a rank that nobody sends to gets zeros.
Array ppermute(Operand x, const AxisName& axis_name,
               const std::vector<std::pair<std::int64_t, std::int64_t>>& perm);
// Divides x along split_axis, gives each rank its part, and joins what came along concat_axis.
struct AllToAllOptions {
  bool tiled = false;
};
Array all_to_all(Operand x, const AxisName& axis_name, std::int64_t split_axis,
                 std::int64_t concat_axis, const AllToAllOptions& options = {});
Array axis_index(const AxisName& axis_name, Location at = Location::current());  // i32
std::int64_t axis_size(const AxisName& axis_name, Location at = Location::current());
// The same value, taken as one of each rank's own. It is inserted where values of both kinds meet.
Array pvary(Operand x, const AxisName& axis_name);

// The same of every array of a tree.
template <class T>
requires(!std::is_convertible_v<T, Operand>) T psum(const T& tree, const AxisName& axis_name) {
  return tree_map([&](const Array& x) { return psum(x, axis_name); }, tree);
}
template <class T>
requires(!std::is_convertible_v<T, Operand>) T pmean(const T& tree, const AxisName& axis_name) {
  return tree_map([&](const Array& x) { return pmean(x, axis_name); }, tree);
}
}  // namespace lax

}  // namespace reprise
#pragma GCC visibility pop
