// Ranks: many processes that run one program, joined by MPI. Link Reprise::dist.
//
//   int main() {
//     rp::dist::init();                        // before the first Mesh; mpirun -np 4 ./program
//     rp::Mesh mesh({{"data", rp::dist::size()}});
//     ...
//   }
//
// Started without mpirun it is one rank.
#pragma once

#include "reprise/shard_map.h"

#include <cstdint>

#pragma GCC visibility push(default)
namespace reprise::dist {

// How ranks deal with each other.
struct InitOptions {
  // A collective that is not finished after so many seconds ends the run on all ranks, with an
  // error that names the ranks that did not come.
  double timeout_seconds = 60;
};

// Joins the ranks that mpirun started. At the end of the process they part by themselves.
void init(const InitOptions& options = {});
std::int64_t rank();  // of this process, from 0
std::int64_t size();  // how many there are
// Waits until all ranks are here.
void barrier();

// From rank to rank, outside of programs, for ranks that run programs of their own: the stages of a
// pipeline. Arrays between two ranks arrive in the order in which they were sent. send returns at
// once and keeps the array until it has left; recv waits for one of this type.
void send(const Array& x, std::int64_t to, Location at = Location::current());
Array recv(const Type& type, std::int64_t from, Location at = Location::current());

}  // namespace reprise::dist
#pragma GCC visibility pop
