// A program of which one rank fails in a way of one's choice; tests/dist/failures.py looks at what
// the others say.
//
//   mpirun -np 4 failing throw|exit|kill|stop|late <seconds>
#include <reprise/dist.h>
#include <reprise/reprise.h>

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace rp = reprise;
using P = rp::PartitionSpec;

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "throw";
  rp::dist::init({.timeout_seconds = argc > 2 ? std::atof(argv[2]) : 3});
  const rp::Mesh mesh({{"x", rp::dist::size()}});
  const auto f =
      rp::shard_map([](rp::Array x) { return rp::lax::psum(x, "x"); }, mesh, P("x"), P());
  const rp::Array x = rp::ones({rp::dist::size()});
  std::printf("rank %d pid %d\n", static_cast<int>(rp::dist::rank()), static_cast<int>(getpid()));
  std::fflush(stdout);
  f(x);
  if (rp::dist::rank() == 2) {
    if (how == "throw") throw std::runtime_error("the data of rank 2 is broken");
    if (how == "exit") return 3;
    if (how == "kill") std::raise(SIGKILL);
    if (how == "stop") std::raise(SIGSTOP);
  }
  f(x);
  f(x);
  return 0;
}
