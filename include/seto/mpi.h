/* Makes a Seto communicator with the ranks of an MPI communicator. The header is C99 and needs no library of its own: it is
 * compiled with the program, so it works with the MPI of that program; the library does not depend on any MPI. Build:
 * mpicc program.c $(pkg-config --cflags --libs seto)
 *
 * No variable has to be set, under any launcher of that MPI and on any number of hosts: MPI transports the rendezvous address
 * and the secret with which the ranks prove that they belong to this job. */
#ifndef SETO_MPI_H_
#define SETO_MPI_H_

#include <mpi.h>
#include <seto/seto.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SETO_MPI_MAYBE_UNUSED __attribute__((unused))
#else
#define SETO_MPI_MAYBE_UNUSED
#endif

/* The message from rank 0 to the other ranks. */
typedef struct {
  int result;
  setoUniqueId id;
} setoIdOverMPI;

static SETO_MPI_MAYBE_UNUSED int setoGiveErrorOfMPI(const void *mine, void *all, size_t size, void *code) {
  (void)mine, (void)all, (void)size;
  return (int)(intptr_t)code;
}

/* Reports an MPI error as a failure of this library, whose text has the code and the rank. In a group the function below is
 * called when the group ends, so it must not point into a stack frame. */
static SETO_MPI_MAYBE_UNUSED setoResult_t setoFailureOfMPI(setoComm_t *comm, int rank, int code) {
  const setoUniqueId none = {{0}};
  setoConfig_t config = SETO_CONFIG_INITIALIZER;
  config.bootstrap.allGather = setoGiveErrorOfMPI;
  config.bootstrap.argument = (void *)(intptr_t)code;
  return setoCommInitRankConfig(comm, rank + 1, none, rank, &config);
}

/* Under the launcher of another MPI each process is an MPI job of its own, and every collective succeeds with one rank. Only the
 * variables of the launcher show it. */
static SETO_MPI_MAYBE_UNUSED void setoWarnOfOtherLauncher(void) {
  static const char *const names[] = {"SETO_RANKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
  const char *const level = getenv("SETO_LOG");
  int world = 0, i;
  if (level != NULL && strcmp(level, "error") == 0) return;
  if (MPI_Comm_size(MPI_COMM_WORLD, &world) != MPI_SUCCESS || world != 1) return;
  for (i = 0; i < 3; ++i) {
    const char *const value = getenv(names[i]);
    if (value == NULL || strtol(value, NULL, 10) <= 1) continue;
    fprintf(
        stderr,
        "seto warn: MPI_COMM_WORLD has 1 rank, but %s=%s: the launcher does not start this MPI (another MPI's mpirun?), so each "
        "process is a job of its own; use the mpirun of the MPI with which the program is built\n",
        names[i], value);
    return;
  }
}

/* Collective over `ranks`, an intracommunicator of which this process is a member; it may be freed afterwards. The rank in *comm
 * is the rank in `ranks`. config may be NULL; its bootstrap must not be set. Legal in a group, and with config.blocking setoOff:
 * MPI is used only before this function returns, so MPI needs no thread support. An MPI error, if its handler returns, is
 * setoRemoteError; if rank 0 cannot make an id, the other ranks get setoRemoteError too.
 *
 * It makes one broadcast of MPI and then uses the rendezvous of this library. MPI has no deadlines, so its collectives could not
 * name a rank that does not call. Several of them are also slower where ranks outnumber cores (16 ranks on 2 cores: MPICH 65 ms
 * this way, 960 ms with all-gathers of MPI; Open MPI and Intel MPI about the same both ways). */
static SETO_MPI_MAYBE_UNUSED setoResult_t setoCommInitMPI(setoComm_t *comm, MPI_Comm ranks, setoConfig_t *config) {
  int rank = 0, count = 0, code = MPI_SUCCESS;
  setoIdOverMPI from_root;
  memset(&from_root, 0, sizeof from_root);
  if (ranks == MPI_COMM_NULL)
    return setoCommInitRankConfig(comm, 0, from_root.id, 0, config); /* this call returns the error text */
  code = MPI_Comm_rank(ranks, &rank);
  if (code == MPI_SUCCESS) code = MPI_Comm_size(ranks, &count);
  if (code == MPI_SUCCESS && count == 1) setoWarnOfOtherLauncher();
  if (code != MPI_SUCCESS) return setoFailureOfMPI(comm, rank, code);
  if (rank == 0) from_root.result = (int)setoGetUniqueId(&from_root.id);
  code = MPI_Bcast(&from_root, (int)sizeof from_root, MPI_BYTE, 0, ranks);
  if (code != MPI_SUCCESS) return setoFailureOfMPI(comm, rank, code);
  if (from_root.result != setoSuccess)
    return rank == 0 ? (setoResult_t)from_root.result : setoFailureOfMPI(comm, 0, from_root.result);
  return setoCommInitRankConfig(comm, count, from_root.id, rank, config);
}

#ifdef __cplusplus
}
#endif

#endif /* SETO_MPI_H_ */
