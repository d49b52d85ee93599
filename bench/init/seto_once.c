/* A minimal job: init, one all-reduce, exit. This one runs under `seto run`, without MPI. */
#include <seto/seto.h>
#include <stdio.h>

int main(void) {
  float mine = 1, sum = 0;
  int ranks = 0, wrong = 1;
  setoComm_t comm = SETO_COMM_NULL;
  if (setoCommInitEnvironment(&comm, NULL) == setoSuccess && setoCommCount(comm, &ranks) == setoSuccess &&
      setoAllReduce(&mine, &sum, 1, setoFloat32, setoSum, comm, NULL) == setoSuccess && setoCommDestroy(comm) == setoSuccess)
    wrong = sum != (float)ranks;
  if (wrong) fprintf(stderr, "sum %g of %d ranks: %s\n", (double)sum, ranks, setoGetLastError(NULL));
  return wrong;
}
