#include "dist/notices.h"

namespace reprise::dist {

Notices::Notices(MPI_Comm world) {
  MPI_Comm_dup(world, &comm_);
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);  // a rank that is gone gets none
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
}

void Notices::send_to_all(Notice notice) {
  notice.rank = rank_;
  auto* out = new Sending{notice, {}};
  sending_.push_back(out);
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(&out->notice, sizeof(Notice), MPI_BYTE, r, 0, comm_, &request);
    out->requests.push_back(request);
  }
}

std::optional<Notice> Notices::receive() {
  int has_come = 0;
  MPI_Status status;
  if (MPI_Iprobe(MPI_ANY_SOURCE, 0, comm_, &has_come, &status) != MPI_SUCCESS || has_come == 0)
    return std::nullopt;
  Notice notice;
  MPI_Recv(&notice, sizeof notice, MPI_BYTE, status.MPI_SOURCE, 0, comm_, MPI_STATUS_IGNORE);
  return notice;
}

// After a barrier: what was sent has been received or is in the memory of the receiver.
void Notices::release() {
  while (receive()) {
  }
  for (Sending* s : sending_) {
    MPI_Waitall(static_cast<int>(s->requests.size()), s->requests.data(), MPI_STATUSES_IGNORE);
    delete s;
  }
  sending_.clear();
  MPI_Comm_free(&comm_);
}

}  // namespace reprise::dist
