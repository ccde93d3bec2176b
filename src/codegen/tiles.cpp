// The code of tiles: compiled piece by piece when it is first asked for, and kept until the process
// ends.
#include "codegen/machine_code.h"
#include "codegen/tile_ir.h"

#include <llvm/IR/Module.h>

#include <map>
#include <mutex>
#include <vector>

namespace reprise::codegen {
namespace {

class TileCodes {
 public:
  // Never destroyed: products may run until the very end.
  static TileCodes& get() {
    static TileCodes& codes = *new TileCodes;
    return codes;
  }
  const Tiles& common(Dtype d) {
    const std::lock_guard lock(mutex_);
    Tiles& tiles = common_[index(d)];
    if (tiles.lanes == 0) tiles = compile_common(d);
    return tiles;
  }
  TileCode tile(Dtype d, Strip strip, unsigned rows) {
    const std::lock_guard lock(mutex_);
    TileCode& tile = tiles_[index(d)][strip == Strip::by_columns ? 1 : 0][rows];
    if (tile == nullptr) {
      const auto functions =
          compile(1, [&](llvm::Module& module, const std::vector<std::string>& names) {
            emit_tile(module, names[0], d, strip, rows, this_machine());
          });
      tile = reinterpret_cast<TileCode>(functions[0]);
    }
    return tile;
  }
  CopyCode copy(Dtype d, unsigned width) {
    const std::lock_guard lock(mutex_);
    CopyCode& copy = copies_[index(d)][width];
    if (copy == nullptr) {
      const auto functions =
          compile(1, [&](llvm::Module& module, const std::vector<std::string>& names) {
            emit_copy(module, names[0], d, width, this_machine());
          });
      copy = reinterpret_cast<CopyCode>(functions[0]);
    }
    return copy;
  }

 private:
  static std::size_t index(Dtype d) { return d == Dtype::f64 ? 1 : 0; }

  template <class Emit>
  std::vector<void*> compile(std::size_t count, const Emit& emit) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i) names.push_back("tile_" + std::to_string(serial_++));
    held_.push_back(make_machine_code([&](llvm::Module& module) {
      emit(module, names);
      return names;
    }));
    std::vector<void*> functions;
    for (std::size_t i = 0; i < count; ++i) functions.push_back(held_.back()->function(i));
    return functions;
  }
  Tiles compile_common(Dtype d) {
    const VectorTarget& target = this_machine();
    const auto functions =
        compile(4, [&](llvm::Module& module, const std::vector<std::string>& names) {
          emit_add(module, names[0], d, Addend::rows, target);
          emit_add(module, names[1], d, Addend::numbers, target);
          emit_transpose(module, names[2], d, target);
          emit_search(module, names[3], d, target);
        });
    Tiles tiles;
    tiles.lanes = target.vector_bytes / static_cast<unsigned>(itemsize(d));
    tiles.most_rows = tile_rows(target);
    tiles.add_rows = reinterpret_cast<AddCode>(functions[0]);
    tiles.add_numbers = reinterpret_cast<AddCode>(functions[1]);
    tiles.transpose = reinterpret_cast<TransposeCode>(functions[2]);
    tiles.search = reinterpret_cast<SearchCode>(functions[3]);
    return tiles;
  }

  std::mutex mutex_;
  Tiles common_[2];
  TileCode tiles_[2][2][most_tile_rows + 1] = {};
  std::map<unsigned, CopyCode> copies_[2];
  std::vector<std::shared_ptr<const MachineCode>> held_;
  std::size_t serial_ = 0;
};

}  // namespace

const Tiles& tiles_of(Dtype d) { return TileCodes::get().common(d); }
TileCode tile_of(Dtype d, Strip strip, unsigned rows) {
  return TileCodes::get().tile(d, strip, rows);
}
CopyCode copy_of(Dtype d, unsigned width) { return TileCodes::get().copy(d, width); }

}  // namespace reprise::codegen
