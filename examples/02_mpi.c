/* The ranks of an MPI program as ranks of Seto: an all-reduce, checked against MPI's own.
 * Build: mpicc 02_mpi.c $(pkg-config --cflags --libs seto)      Run: mpirun -np 4 ./a.out */
#include <seto/mpi.h>
#include <stdio.h>

enum { kCount = 1024 };
#define DO(call) \
  if ((call) != setoSuccess) return fprintf(stderr, "rank %d: %s\n", rank, setoGetLastError(comm)), MPI_Abort(MPI_COMM_WORLD, 1)

int main(int argc, char** argv) {
  setoComm_t comm = SETO_COMM_NULL;
  int rank = 0, ranks = 0, wrong = 0;
  int mine[kCount], sum[kCount], expected[kCount];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < kCount; ++i) mine[i] = rank + i;
  DO(setoCommInitMPI(&comm, MPI_COMM_WORLD, NULL));
  DO(setoAllReduce(mine, sum, kCount, setoInt32, setoSum, comm, NULL));
  MPI_Allreduce(mine, expected, kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < kCount; ++i) wrong += sum[i] != expected[i];
  printf("rank %d of %d: sum[0] = %d, MPI's result %d\n", rank, ranks, sum[0], expected[0]);
  DO(setoCommDestroy(comm));
  MPI_Finalize();
  return wrong != 0;
}
