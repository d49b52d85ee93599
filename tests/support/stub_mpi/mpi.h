#pragma once

// The part of MPI that seto/mpi.h uses. It returns the answers that the test of this thread has set.

#include <cstring>

using MPI_Comm = int;
using MPI_Datatype = int;

inline constexpr MPI_Comm MPI_COMM_NULL = 0;
inline constexpr MPI_Comm MPI_COMM_WORLD = 1;
inline constexpr MPI_Datatype MPI_BYTE = 1;
inline constexpr int MPI_SUCCESS = 0;

namespace seto::testing {

struct StubMpi {
  int rank = 0;
  int size = 1;
  int broadcast_returns = MPI_SUCCESS;
  const void* broadcast_brings = nullptr;  // of the size that the call expects; null: the buffer does not change
};
inline thread_local StubMpi stub_mpi;

}  // namespace seto::testing

inline int MPI_Comm_rank(MPI_Comm, int* rank) {
  *rank = seto::testing::stub_mpi.rank;
  return MPI_SUCCESS;
}

inline int MPI_Comm_size(MPI_Comm, int* size) {
  *size = seto::testing::stub_mpi.size;
  return MPI_SUCCESS;
}

inline int MPI_Bcast(void* bytes, int count, MPI_Datatype, int, MPI_Comm) {
  const seto::testing::StubMpi& stub = seto::testing::stub_mpi;
  if (stub.broadcast_brings != nullptr) std::memcpy(bytes, stub.broadcast_brings, static_cast<std::size_t>(count));
  return stub.broadcast_returns;
}
