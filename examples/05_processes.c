/* Three processes exchange the id through a pipe and pass a number around their ring: a send and a receive as one group, on a
 * stream. Build: cc 05_processes.c $(pkg-config --cflags --libs seto) */
#include <seto/seto.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kRanks = 3 };
#define DO(call) \
  if ((call) != setoSuccess) return fprintf(stderr, "rank %d: %s\n", rank, setoGetLastError(NULL)), 1

static int run_rank(int rank, const int* ids) {
  setoUniqueId id;
  setoComm_t comm;
  setoStream_t stream;
  uint64_t position;
  int mine = rank * 10, theirs = -1, left = (rank + kRanks - 1) % kRanks;
  if (rank == 0) DO(setoGetUniqueId(&id));
  for (int other = 1; rank == 0 && other < kRanks; ++other) /* fewer than PIPE_BUF bytes, so a write is whole or fails */
    if (write(ids[1], &id, sizeof id) != sizeof id) return 1;
  if (rank != 0 && read(ids[0], &id, sizeof id) != sizeof id) return 1;
  DO(setoCommInitRank(&comm, kRanks, id, rank));
  DO(setoStreamCreate(&stream));
  DO(setoGroupStart());
  DO(setoSend(&mine, 1, setoInt32, (rank + 1) % kRanks, comm, stream));
  DO(setoRecv(&theirs, 1, setoInt32, left, comm, stream));
  DO(setoGroupEnd()); /* the group is queued; this thread may continue with other work */
  DO(setoStreamPosition(stream, &position));
  DO(setoStreamWait(stream, position, 0));
  printf("rank %d of %d: received %d, expected %d\n", rank, kRanks, theirs, left * 10);
  DO(setoStreamDestroy(stream));
  DO(setoCommDestroy(comm));
  return theirs != left * 10;
}

int main(void) {
  int ids[2], failed = 0, status = 0;
  if (pipe(ids) != 0) return 1;
  for (int rank = 0; rank < kRanks; ++rank)
    if (fork() == 0) return run_rank(rank, ids);
  while (wait(&status) > 0) failed |= status != 0;
  return failed;
}
