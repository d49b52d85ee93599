/* A minimal job: init, one all-reduce, exit. This one runs under an MPI's launcher, with an all-reduce of Seto. */
#include <mpi.h>
#include <seto/mpi.h>
#include <stdio.h>

int main(int count, char** words) {
  float mine = 1, sum = 0;
  int ranks = 0, wrong = 1;
  setoComm_t comm = SETO_COMM_NULL;
  MPI_Init(&count, &words);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (setoCommInitMPI(&comm, MPI_COMM_WORLD, NULL) == setoSuccess &&
      setoAllReduce(&mine, &sum, 1, setoFloat32, setoSum, comm, NULL) == setoSuccess && setoCommDestroy(comm) == setoSuccess)
    wrong = sum != (float)ranks;
  if (wrong) fprintf(stderr, "sum %g of %d ranks: %s\n", (double)sum, ranks, setoGetLastError(NULL));
  MPI_Finalize();
  return wrong;
}
