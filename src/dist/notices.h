// What ranks tell each other beside the collectives: that they wait in vain, fail or end.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reprise::dist {

struct Notice {
  enum class Kind : std::int32_t {
    waits,   // it asks who is there
    fails,   // an error ends it
    leaves,  // it has come to its end
  };
  Kind kind = Kind::waits;
  std::int32_t rank = 0;
  std::uint64_t number = 0;  // of the collective where it is, or was last
  char where[80] = {};       // its name
  char what[256] = {};       // of an error
};

class Notices {
 public:
  explicit Notices(MPI_Comm world);
  void send_to_all(Notice notice);
  std::optional<Notice> receive();  // one that has arrived
  void release();

 private:
  struct Sending {
    Notice notice;
    std::vector<MPI_Request> requests;
  };
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::vector<Sending*> sending_;  // never freed while MPI may read them
};

}  // namespace reprise::dist
