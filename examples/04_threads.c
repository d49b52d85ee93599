/* Several processes with several ranks each, one for each thread. The processes find each other through the environment, and
 * broadcast an id for the communicator of the threads.      seto run -n 2 -- ./04_threads
 * Build: cc 04_threads.c $(pkg-config --cflags --libs seto) -pthread */
#include <pthread.h>
#include <seto/seto.h>
#include <stdio.h>

enum { kThreads = 3 };
#define CHECK(call) \
  if ((call) != setoSuccess) return fprintf(stderr, "rank %d: %s\n", self->rank, setoGetLastError(NULL)), NULL

typedef struct {
  int rank, ranks, right;
  setoUniqueId id;
} Thread;

static void* run_rank(void* argument) {
  Thread* const self = argument;
  setoComm_t comm;
  int sum = 0;
  CHECK(setoCommInitRank(&comm, self->ranks, self->id, self->rank));
  CHECK(setoAllReduce(&self->rank, &sum, 1, setoInt32, setoSum, comm, NULL));
  printf("rank %d of %d: sum = %d, expected %d\n", self->rank, self->ranks, sum, self->ranks * (self->ranks - 1) / 2);
  self->right = sum == self->ranks * (self->ranks - 1) / 2;
  CHECK(setoCommDestroy(comm));
  return NULL;
}

int main(void) {
  setoComm_t processes = SETO_COMM_NULL;
  setoUniqueId id = {{0}};
  pthread_t threads[kThreads];
  Thread ranks[kThreads];
  int process = 0, count = 0, right = 1;
  if (setoCommInitEnvironment(&processes, NULL) != setoSuccess) return fprintf(stderr, "%s\n", setoGetLastError(NULL)), 1;
  setoCommUserRank(processes, &process);
  setoCommCount(processes, &count);
  if (process == 0 && setoGetUniqueId(&id) != setoSuccess) return fprintf(stderr, "%s\n", setoGetLastError(NULL)), 1;
  if (setoBcast(&id, sizeof id, setoInt8, 0, processes, NULL) != setoSuccess) return 1;
  for (int i = 0; i < kThreads; ++i) {
    ranks[i] = (Thread){process * kThreads + i, count * kThreads, 0, id};
    pthread_create(&threads[i], NULL, run_rank, &ranks[i]);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL), right &= ranks[i].right;
  setoBarrier(processes, NULL); /* process 0 made the id, so it must stay until all threads have joined */
  setoCommDestroy(processes);
  return !right;
}
