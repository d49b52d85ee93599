/* Four ranks, each a thread of this process, add up a vector.
 * Build: cc 01_all_reduce.c $(pkg-config --cflags --libs seto) -pthread */
#include <pthread.h>
#include <seto/seto.h>
#include <stdio.h>

enum { kRanks = 4, kCount = 1024 };

static void* run_rank(void* argument) {
  setoComm_t comm = argument;
  float mine[kCount], sum[kCount];
  int rank = 0;
  setoCommUserRank(comm, &rank);
  for (int i = 0; i < kCount; ++i) mine[i] = (float)(rank + 1);
  if (setoAllReduce(mine, sum, kCount, setoFloat32, setoSum, comm, NULL) == setoSuccess)
    printf("rank %d of %d: sum[0] = %g, expected 10\n", rank, kRanks, sum[0]);
  else
    fprintf(stderr, "rank %d: %s\n", rank, setoGetLastError(comm));
  return NULL;
}

int main(void) {
  setoComm_t comms[kRanks];
  pthread_t threads[kRanks];
  if (setoCommInitAll(comms, kRanks, NULL) != setoSuccess) return fprintf(stderr, "%s\n", setoGetLastError(NULL)), 1;
  for (int rank = 0; rank < kRanks; ++rank) pthread_create(&threads[rank], NULL, run_rank, comms[rank]);
  for (int rank = 0; rank < kRanks; ++rank) pthread_join(threads[rank], NULL);
  for (int rank = 0; rank < kRanks; ++rank) setoCommDestroy(comms[rank]);
  return 0;
}
