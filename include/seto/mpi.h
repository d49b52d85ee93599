/* A communicator of Seto with the ranks of one of MPI's. Header only and C99: it is compiled with the program, so it suits
 * whatever MPI that has; the library itself knows none. Build: mpicc program.c $(pkg-config --cflags --libs seto)
 *
 * Nothing has to be set, under any launcher of that MPI and on any number of hosts: MPI carries where the ranks meet and the
 * secret with which they prove that they belong to this job. */
#ifndef SETO_MPI_H_
#define SETO_MPI_H_

#include <mpi.h>
#include <seto/seto.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SETO_MPI_MAYBE_UNUSED __attribute__((unused))
#else
#define SETO_MPI_MAYBE_UNUSED
#endif

/* What rank 0 tells the others. */
typedef struct {
  int result;
  setoUniqueId id;
} setoIdOverMPI;

static SETO_MPI_MAYBE_UNUSED int setoGiveErrorOfMPI(const void *mine, void *all, size_t size, void *code) {
  (void)mine, (void)all, (void)size;
  return (int)(intptr_t)code;
}

/* As a failure of this library, with a text that has the code and the rank that met it. In a group it comes when the group ends,
 * so nothing of a frame may be pointed to. */
static SETO_MPI_MAYBE_UNUSED setoResult_t setoFailureOfMPI(setoComm_t *comm, int rank, int code) {
  const setoUniqueId none = {{0}};
  setoConfig_t config = SETO_CONFIG_INITIALIZER;
  config.bootstrap.allGather = setoGiveErrorOfMPI;
  config.bootstrap.argument = (void *)(intptr_t)code;
  return setoCommInitRankConfig(comm, rank + 1, none, rank, &config);
}

/* Collective over `ranks`, an intracommunicator of which this process is a member; it may be freed afterwards. The rank in *comm
 * is that in `ranks`. config may be NULL; its bootstrap must not be set. Legal in a group, and with config.blocking off: MPI is
 * used before this returns and never after. MPI needs no support of threads for that. An error of MPI, where its handler lets one
 * return, is setoRemoteError; so is, on the others, that rank 0 could make no id.
 *
 * One broadcast, then a rendezvous of the library's own: MPI has no deadlines, so its collectives could not name a rank that does
 * not come; and several of them cost more where ranks outnumber cores (16 ranks on 2 cores: MPICH 65 ms this way, 960 ms by
 * all-gathers of its own; Open MPI and Intel MPI about the same both ways). */
static SETO_MPI_MAYBE_UNUSED setoResult_t setoCommInitMPI(setoComm_t *comm, MPI_Comm ranks, setoConfig_t *config) {
  int rank = 0, count = 0, code = MPI_SUCCESS;
  setoIdOverMPI told;
  memset(&told, 0, sizeof told);
  if (ranks == MPI_COMM_NULL) return setoCommInitRankConfig(comm, 0, told.id, 0, config); /* which says what is wrong */
  code = MPI_Comm_rank(ranks, &rank);
  if (code == MPI_SUCCESS) code = MPI_Comm_size(ranks, &count);
  if (code != MPI_SUCCESS) return setoFailureOfMPI(comm, rank, code);
  if (rank == 0) told.result = (int)setoGetUniqueId(&told.id);
  code = MPI_Bcast(&told, (int)sizeof told, MPI_BYTE, 0, ranks);
  if (code != MPI_SUCCESS) return setoFailureOfMPI(comm, rank, code);
  if (told.result != setoSuccess) return rank == 0 ? (setoResult_t)told.result : setoFailureOfMPI(comm, 0, told.result);
  return setoCommInitRankConfig(comm, count, told.id, rank, config);
}

#ifdef __cplusplus
}
#endif

#endif /* SETO_MPI_H_ */
