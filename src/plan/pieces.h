// Values that are read where their pieces stand, and never put together.
//
//   roll(x) = concatenate(x[k:], x[:k]);  y = 2 * roll(x)   =>   one kernel that reads x shifted
#pragma once

#include "plan/group.h"

namespace reprise::plan {

// Of every variable: a concatenation or padding that only elementwise operations read.
std::vector<bool> readable_in_pieces(const Program&);

// Where the operands of such an equation stand in its result. `operands`: in its order, without
// their places. nullopt: it is better put together, because operands are made for it alone or much
// memory would wait for the readers.
std::optional<std::vector<Piece>> pieces_of(const Program&, const Equation&,
                                            std::vector<Piece> operands);

// The values in memory that an operand consists of.
std::vector<Operand> stored_parts(const Operand&);

// Parts of what a concatenation makes: where it has its operands.
std::vector<View> side_by_side(const Program&, const Equation& concatenation, const View& whole);
// Of what a padding makes: where it has its operand, whose shape this view does not have yet;
// nullopt: it takes something away from it.
std::optional<View> inside_padding(const Equation& padding, const View& whole);

}  // namespace reprise::plan
