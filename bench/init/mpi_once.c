/* A minimal job: init, one all-reduce, exit. This one uses MPI alone. */
#include <mpi.h>
#include <stdio.h>

int main(int count, char** words) {
  float mine = 1, sum = 0;
  int ranks = 0;
  MPI_Init(&count, &words);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Allreduce(&mine, &sum, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  if (sum != (float)ranks) fprintf(stderr, "sum %g of %d ranks\n", (double)sum, ranks);
  MPI_Finalize();
  return sum != (float)ranks;
}
