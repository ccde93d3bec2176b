#include "reprise/shard_map.h"

#include "api/flat.h"
#include "base/mesh.h"
#include "control/body.h"
#include "control/shard_map.h"
#include "ops/collective.h"
#include "ops/communicator.h"
#include "program/varying.h"

#include <algorithm>

namespace reprise {
namespace {

MeshPtr made_mesh(const char* what, const Mesh::Axes& axes, bool is_abstract) {
  MeshGrid grid;
  grid.is_abstract = is_abstract;
  if (axes.empty() || axes.size() > 63)
    fail<TypeError>(what, ": from 1 to 63 axes are needed, got ", axes.size());
  std::int64_t ranks = 1;
  for (const auto& [name, size] : axes) {
    if (name.empty() || grid.find(name) >= 0)
      fail<TypeError>(what, ": each axis needs a name of its own, got '", name, "'");
    if (size < 1 || size > (std::int64_t{1} << 30) / ranks)
      fail<TypeError>(what, ": the size of an axis is from 1 to 2^30 ranks in all, got ", size,
                      " for ", name);
    ranks *= size;
    grid.axes.push_back({name, size});
  }
  const MeshPtr mesh = the_mesh(grid);
  if (!is_abstract) check_mesh(what, mesh);
  return mesh;
}

ShardSpec resolved(const PartitionSpec& spec, MeshPtr mesh) {
  ShardSpec result;
  result.is_local = spec.is_local();
  std::vector<int> seen;
  for (const PartitionSpec::Entry& entry : spec.entries()) {
    std::vector<int> axes;
    for (const std::string& name : entry.names()) {
      const int axis = mesh->find(name);
      if (axis < 0)
        fail<TypeError>("PartitionSpec: no axis has this name, got ", name, " in ", mesh->text());
      if (std::find(seen.begin(), seen.end(), axis) != seen.end())
        fail<TypeError>("PartitionSpec: an axis must divide one dimension, got ", to_string(spec));
      seen.push_back(axis);
      axes.push_back(axis);
    }
    result.dims.push_back(std::move(axes));
  }
  return result;
}

// An operand that is this rank's part already stays as it is.
ShardSpec spec_for(const PartitionSpec& given, const Type& t, MeshPtr mesh,
                   const std::string& what) {
  ShardSpec spec = resolved(given, mesh);
  if (t.varying == nullptr) return spec;
  if (t.varying->mesh != mesh || t.varying->bits != spec.bits()) {
    fail_with_hint<TypeError>(
        "give the spec that the array was divided by", "shard_map: the spec of ", what,
        " must name the axes over which it varies, got ", to_text(spec, *mesh), " for ", t);
  }
  spec.is_local = true;
  return spec;
}

// An array that was read or computed by this rank is declared its part.
Array as_part(const Array& x, const ShardSpec& spec, MeshPtr mesh) {
  if (!spec.is_local) return x;
  return with_varying(x, axes_of(mesh, spec.bits()));
}

const PartitionSpec& spec_at(const Specs& specs, std::size_t leaf, std::size_t leaves,
                             const std::string& what) {
  if (specs.is_for_all()) return specs.each()[0];
  if (specs.each().size() != leaves) {
    fail<TypeError>("shard_map: ", what, " needs one spec, or one for each of its arrays, got ",
                    specs.each().size(), " for ", leaves);
  }
  return specs.each()[leaf];
}

ShardSpecs operand_specs(const detail::Callee& f, const Arrays& args,
                         const std::vector<std::size_t>& argument, std::size_t arguments,
                         MeshPtr mesh, const InSpecs& in_specs) {
  if (!in_specs.is_for_all() && in_specs.each().size() != arguments) {
    fail<TypeError>("shard_map: in_specs needs one entry for each argument, got ",
                    in_specs.each().size(), " for ", arguments);
  }
  ShardSpecs specs;
  std::size_t first = 0;  // leaf of the argument
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (i > 0 && argument[i] != argument[i - 1]) first = i;
    const Specs& of = in_specs.each()[in_specs.is_for_all() ? 0 : argument[i]];
    const auto leaves =
        static_cast<std::size_t>(std::count(argument.begin(), argument.end(), argument[i]));
    const PartitionSpec& given = spec_at(of, i - first, leaves, f.arg_names[i]);
    specs.push_back(spec_for(given, args[i].type(), mesh, f.arg_names[i]));
  }
  return specs;
}

}  // namespace

Mesh::Mesh(Axes axes, Location at) : grid_(nullptr) {
  const AtUser scope(at);
  grid_ = made_mesh("Mesh", axes, false);
}
AbstractMesh::AbstractMesh(Axes axes, Location at) : Mesh(nullptr) {
  const AtUser scope(at);
  grid_ = made_mesh("AbstractMesh", axes, true);
}
std::vector<std::string> Mesh::axis_names() const {
  std::vector<std::string> names;
  for (const MeshAxis& a : grid_->axes) names.push_back(a.name);
  return names;
}
std::int64_t Mesh::axis_size(const std::string& name) const {
  const int axis = grid_->find(name);
  if (axis < 0) fail<TypeError>("Mesh: no axis has this name, got ", name, " in ", grid_->text());
  return grid_->axes[static_cast<std::size_t>(axis)].size;
}
std::int64_t Mesh::size() const { return grid_->size(); }

std::string to_string(const PartitionSpec& spec) {
  std::vector<std::string> entries;
  for (const PartitionSpec::Entry& entry : spec.entries()) {
    std::vector<std::string> names;
    for (const std::string& n : entry.names()) names.push_back("'" + n + "'");
    const std::string list = join(names, ", ");
    entries.push_back(names.empty() ? "None" : names.size() == 1 ? list : "(" + list + ")");
  }
  return "P(" + join(entries, ", ") + (entries.size() == 1 ? ",)" : ")");
}

Array shard(Operand x, const Mesh& mesh, const PartitionSpec& spec) {
  const AtUser at(x.at);
  const ShardSpec resolved_spec = resolved(spec, mesh.grid());
  part_of(x.array.type(), resolved_spec, mesh.grid(), "the array");  // checks
  return finished(cut(x.array, resolved_spec, mesh.grid()));
}
Array as_shard(Operand part, const Mesh& mesh, const PartitionSpec& spec) {
  const AtUser at(part.at);
  return finished(as_part(part.array, resolved(spec.local(), mesh.grid()), mesh.grid()));
}
Array unshard(Operand x, const Mesh& mesh, const PartitionSpec& spec) {
  const AtUser at(x.at);
  spec_for(spec, x.array.type(), mesh.grid(), "the array");  // checks
  return finished(put_together(x.array, resolved(spec, mesh.grid()), mesh.grid()));
}

namespace detail {

Arrays shard_map(const Callee& f, const Arrays& args, const std::vector<std::size_t>& argument,
                 std::size_t arguments, const Mesh& mesh, const InSpecs& in_specs,
                 const Specs& out_specs) {
  const AtUser at(f.at);
  const MeshPtr grid = mesh.grid();
  if (current_mesh() != nullptr)
    fail<TypeError>("shard_map: it must not stand inside of another one, got ", grid->text());
  const ShardSpecs ins = operand_specs(f, args, argument, arguments, grid, in_specs);
  Arrays operands;
  Types parts;
  for (std::size_t i = 0; i < args.size(); ++i) {
    operands.push_back(as_part(args[i], ins[i], grid));
    parts.push_back(part_of(operands[i].type(), ins[i], grid, f.arg_names[i]));
  }
  ShardSpecs outs;
  auto run = [&](const Arrays& x) {
    const InMesh scope(grid);
    Arrays y = f.run(x);
    for (std::size_t k = 0; k < y.size(); ++k) {
      outs.push_back(resolved(spec_at(out_specs, k, y.size(), "the result"), grid));
      y[k] = with_varying(y[k], axes_of(grid, outs[k].bits()));
    }
    return y;
  };
  const Traced t =
      trace(run, parts,
            {.transform = "shard_map", .name = f.name, .arg_names = f.arg_names, .body = true});
  ShardSpecs all;
  for (const Array& c : t.consts) all.push_back(spec_of_constant(c.type()));
  all.insert(all.end(), ins.begin(), ins.end());
  return finished(bind_shard_map(t.program, grid, all, outs, concat(t.consts, operands)));
}

}  // namespace detail
}  // namespace reprise
