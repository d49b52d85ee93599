/* Every process of a job adds up a vector. The environment describes the job, under any launcher:
 *   seto run -n 4 -- ./03_env        mpirun -np 4 ./03_env        srun -n 4 ./03_env        torchrun --no-python ... ./03_env
 * or by hand, once for each rank:  SETO_ROOT=127.0.0.1:29400 SETO_RANK=0 SETO_RANKS=4 ./03_env
 * Build: cc 03_env.c $(pkg-config --cflags --libs seto) */
#include <seto/seto.h>
#include <stdio.h>

enum { kCount = 1024 };
#define DO(call) \
  if ((call) != setoSuccess) return fprintf(stderr, "03_env: %s\n", setoGetLastError(comm)), 1

int main(void) {
  setoComm_t comm = SETO_COMM_NULL, again = SETO_COMM_NULL;
  int rank = -1, ranks = 0;
  float mine[kCount], sum[kCount];
  DO(setoCommInitEnvironment(&comm, NULL));
  DO(setoCommUserRank(comm, &rank));
  DO(setoCommCount(comm, &ranks));
  for (int i = 0; i < kCount; ++i) mine[i] = (float)(rank + 1);
  DO(setoAllReduce(mine, sum, kCount, setoFloat32, setoSum, comm, NULL));
  const float expected = (float)(ranks * (ranks + 1) / 2);
  printf("rank %d of %d: sum[0] = %g, expected %g\n", rank, ranks, sum[0], expected);
  DO(setoCommInitEnvironment(&again, NULL)); /* makes a second communicator of the same ranks */
  DO(setoBarrier(again, NULL));
  DO(setoCommDestroy(again));
  DO(setoCommDestroy(comm));
  return sum[0] == expected ? 0 : 1;
}
