/* Seto: collective communication across hosts and sites.
 *
 * This header is C99 and the whole ABI, with types.h (types and config structs) and introspection.h (what the library knows,
 * chose and does), which it includes. Names, argument order and enumeration values are those of NCCL 2.27 and later with the
 * prefix replaced; additions are marked "beyond NCCL".
 *
 * Rules for every function, unless its comment says otherwise:
 * - Failure: a setoResult_t other than setoSuccess. setoGetLastError() then returns the text: what happened, which peer, which
 *   value, what to do. No exception leaves the library, and no network failure ends the process.
 * - Threads: different communicators may be used from different threads at once. One communicator accepts calls from one thread
 *   at a time; query functions, setoCommAbort and setoGetLastError may run beside them, from any thread, until destroy begins.
 * - Order: every rank of a communicator issues the same collectives in the same order. A difference between ranks (collective,
 *   count, type, op, root, codec) is detected, named on every rank, and ends the communicator everywhere. A call that is rejected
 *   (setoInvalidArgument) still takes its place in the order, so this rank must not repeat it alone: the matching call of every
 *   other rank ends with setoRemoteError, which names this rank and the reason, and later calls match again.
 * - Blocking, host communicator: with stream NULL a call returns when the operation has ended on this rank, successful or not,
 *   and no peer can still write into its buffers. With a host stream it queues the operation and returns.
 * - Blocking, device communicator: every call queues on the CUDA stream; NULL is the legacy default stream. A call that is
 *   rejected ends the communicator on all ranks; outside of a group not one that a CUDA capture refuses (setoInvalidUsage):
 *   repeat it after the capture. setoRecvAny is not in this version. Messages of a group come before its collectives. Calls may
 *   be captured into a CUDA graph. The program orders replays with other calls of the communicator, by streams or events, and
 *   ends them before it destroys the communicator. A lost rank, an abort or a deadline ends replays: one may take as long as
 *   the calls of its kernel may, by their deadlineMs when captured; as long as the communicator allows, if the host relays.
 * - Lifetime: buffers must have an alignment that suits the type, and belong to the operation until it has ended. Arrays, strings
 *   and config structs are copied before the call returns.
 * - Counts are in elements, never in bytes. Zero elements is legal: the operation still matches and orders.
 * - Every wait has a deadline: 30 minutes for operations, 5 seconds for the liveness of a peer; both are configurable. A call
 *   that has not ended after 10 seconds (or half its deadline, if that is less) is logged once, with what it waits for.
 * - After fork() every call in the child fails with setoInvalidUsage.
 */
#ifndef SETO_SETO_H_
#define SETO_SETO_H_

#include "seto/introspection.h"
#include "seto/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version and errors: any thread, never block ----------------------------------------------------------------- */

/* The SETO_VERSION_CODE of the loaded library, which may be newer than this header. */
SETO_API setoResult_t setoGetVersion(int *version);
/* Returns a constant text for a code. Any int is legal. */
SETO_API const char *setoGetErrorString(setoResult_t result);
/* With NULL it returns the text of the last failure of a call on this thread; with a communicator the text of its first
 * asynchronous failure, or if it has none, the same as with NULL. Never returns NULL. The text is valid until the next call of
 * the library on this thread. */
SETO_API const char *setoGetLastError(setoComm_t comm);

/* ---- Names of codecs and algorithms -------------------------------------------------------------------------------- */

/* Ids of codec and algorithm names, for setoCallConfig_t. An unknown name is setoInvalidArgument; the text lists the known
 * ones. Any thread. */
SETO_API setoResult_t setoCodecId(const char *name, int *id);
SETO_API setoResult_t setoAlgorithmId(const char *name, int *id);
/* The number of bytes of `count` encoded elements; for "none" the bytes of the elements themselves. Any thread. */
SETO_API setoResult_t setoCodecSize(int codec, setoDataType_t datatype, size_t count, size_t *size);
/* An upper bound for the error of each element of a sum over `ranks` ranks, if no rank's elements exceed `largest` in
 * magnitude. The bound assumes that each contribution and the sum are encoded once; a pinned algorithm may encode more often.
 * For "none" the bound is 0. An average is a sum of elements that were divided first. Any thread. */
SETO_API setoResult_t setoCodecErrorBound(int codec, setoDataType_t datatype, int ranks, double largest, double *bound);

/* ---- Making communicators ---------------------------------------------------------------------------------------- */

/* Makes an id for one communicator. One rank calls it and passes the id to the others by any means. It does not block. The
 * process that made the id must stay alive until every rank's init has returned. */
SETO_API setoResult_t setoGetUniqueId(setoUniqueId *uniqueId);
/* The same, for any number of communicators made one after another while the process that made the id is alive: the n-th init
 * of each rank with this id makes the n-th communicator, also after a failure. Beyond NCCL. */
SETO_API setoResult_t setoGetJobId(setoUniqueId *jobId);
/* Blocks until all nranks have called, or until the init deadline. Inside a group one thread may initialize several ranks. */
SETO_API setoResult_t setoCommInitRank(setoComm_t *comm, int nranks, setoUniqueId commId, int rank);
/* The same with a config, which may be NULL. With config.bootstrap the id is ignored. Does not block if config.blocking is
 * setoOff. */
SETO_API setoResult_t setoCommInitRankConfig(setoComm_t *comm, int nranks, setoUniqueId commId, int rank, setoConfig_t *config);
/* The same with several ids, made by several ranks; all ranks pass the same ids. One of the ids is used for the rendezvous, and
 * the ranks share its load. */
SETO_API setoResult_t setoCommInitRankScalable(setoComm_t *newcomm, int nranks, int myrank, int nId, setoUniqueId *commIds,
                                               setoConfig_t *config);
/* Beyond NCCL. Makes a communicator of all processes of this process's job, one rank each, which the environment describes:
 * SETO_ROOT with SETO_RANK and SETO_RANKS (seto run sets them), else the variables of torchrun, Open MPI's mpirun, MPICH's and
 * Intel MPI's mpiexec, or srun. Without any of them the communicator has one rank. Contradictory variables are
 * setoInvalidArgument, and the text names them. Ranks that connect over a network should set SETO_SECRET_FILE or SETO_SECRET.
 * config may be NULL; its bootstrap must not be set. A later call makes another communicator of the same ranks; all ranks call
 * in the same order. A program that calls MPI_Init uses setoCommInitMPI of seto/mpi.h instead, because mpiexec serves only one
 * library of a process. */
SETO_API setoResult_t setoCommInitEnvironment(setoComm_t *comm, setoConfig_t *config);
/* Makes a communicator whose ranks are all in this process: comms[0..ndev). devlist may be NULL (0, 1, ...; ignored on hosts).
 * Each rank may then be driven by its own thread, or all ranks by one thread inside a group. */
SETO_API setoResult_t setoCommInitAll(setoComm_t *comms, int ndev, const int *devlist);

/* Collective over comm. Ranks with the same color form a communicator, ordered by key, then by rank. With SETO_SPLIT_NOCOLOR
 * *newcomm is SETO_COMM_NULL. config NULL inherits everything. If comm does not block, comm is in progress until the split has
 * ended and accepts no other call until then; *newcomm is written before that. */
#define SETO_SPLIT_NOCOLOR (-1)
SETO_API setoResult_t setoCommSplit(setoComm_t comm, int color, int key, setoComm_t *newcomm, setoConfig_t *config);
/* Called by the surviving ranks only: makes a communicator without the ranks in the list. SETO_SHRINK_ABORT ends pending
 * operations of comm first, and is legal after a failure. */
#define SETO_SHRINK_DEFAULT 0x00
#define SETO_SHRINK_ABORT 0x01
SETO_API setoResult_t setoCommShrink(setoComm_t comm, int *excludeRanksList, int excludeRanksCount, setoComm_t *newcomm,
                                     setoConfig_t *config, int shrinkFlags);
/* Makes an id with which new ranks join comm. One rank calls it. */
SETO_API setoResult_t setoCommGetUniqueId(setoComm_t comm, setoUniqueId *uniqueId);
/* Makes a communicator of nRanks. Members of comm pass comm and rank -1; new ranks pass comm NULL, the id and their rank. */
SETO_API setoResult_t setoCommGrow(setoComm_t comm, int nRanks, const setoUniqueId *uniqueId, int rank, setoComm_t *newcomm,
                                   setoConfig_t *config);

/* ---- Ending communicators ---------------------------------------------------------------------------------------- */

/* Collective. Waits until all operations issued on comm have ended on all ranks. Then only queries and destroy are legal. */
SETO_API setoResult_t setoCommFinalize(setoComm_t comm);
/* Local. Waits until all operations that this rank has issued have ended here, unless one failed. It does not wait for peers
 * that are still working: they can complete the operations that this rank has completed, and they learn of a call that this
 * rank rejected. comm is invalid afterwards. */
SETO_API setoResult_t setoCommDestroy(setoComm_t comm);
/* Any thread. Ends pending operations on every rank that can be reached, frees comm, and never waits for a peer. If a rank
 * already has all data that it needs for an operation, that operation may still succeed there with the right result; the next
 * call of that rank fails. */
SETO_API setoResult_t setoCommAbort(setoComm_t comm);
/* Any thread. Like setoCommAbort, but comm stays valid for queries, dump, shrink and destroy. Flags: SETO_REVOKE_DEFAULT. */
#define SETO_REVOKE_DEFAULT 0x00
SETO_API setoResult_t setoCommRevoke(setoComm_t comm, int revokeFlags);

/* ---- Queries: any thread, never block ---------------------------------------------------------------------------- */

/* *asyncError is setoInProgress while a non-blocking call is under way; otherwise setoSuccess or the first failure, which stays
 * until destroy. A rank without a call under way learns here that a peer died, stopped answering, or failed. A peer that
 * destroyed its communicator is reported only when a call needs it. A peer whose process ended without destroying it is
 * reported as lost, as are its messages that were not received. */
SETO_API setoResult_t setoCommGetAsyncError(setoComm_t comm, setoResult_t *asyncError);
SETO_API setoResult_t setoCommCount(const setoComm_t comm, int *count);
/* The CUDA device of the rank; -1 on a host communicator. */
SETO_API setoResult_t setoCommCuDevice(const setoComm_t comm, int *device);
SETO_API setoResult_t setoCommUserRank(const setoComm_t comm, int *rank);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Allocates memory that peers may map, so that operations on it need fewer copies: of the thread's GPU with SETO_MEMORY=device,
 * else of the host, where a forked child shares it. Any thread; it is not bound to a communicator. */
SETO_API setoResult_t setoMemAlloc(void **ptr, size_t size);
/* NULL is legal. No operation may still use the memory. Of device memory: waits for the kernels of its GPU. */
SETO_API setoResult_t setoMemFree(void *ptr);
/* Prepares the caller's memory for operations of comm. Local. It is only a hint: unregistered memory works everywhere. */
SETO_API setoResult_t setoCommRegister(const setoComm_t comm, void *buff, size_t size, void **handle);
SETO_API setoResult_t setoCommDeregister(const setoComm_t comm, void *handle);

/* ---- Custom operations ------------------------------------------------------------------------------------------- */

/* Makes the operation "sum over ranks of scalar_rank * x_rank". The scalar is one value of `datatype`, read now
 * (setoScalarHostImmediate) or on the device when the operation runs. The op is valid for this communicator and this type
 * only. */
SETO_API setoResult_t setoRedOpCreatePreMulSum(setoRedOp_t *op, void *scalar, setoDataType_t datatype,
                                               setoScalarResidence_t residence, setoComm_t comm);
/* Operations that were already issued are not affected. */
SETO_API setoResult_t setoRedOpDestroy(setoRedOp_t op, setoComm_t comm);

/* ---- Collectives ------------------------------------------------------------------------------------------------- */

/* Each collective has a plain form and a ...Config form (beyond NCCL), whose config may be NULL. Buffers must not
 * overlap, except where "in place" is stated. A sendbuff or recvbuff that a rank does not use may be NULL. */

/* Every recvbuff gets the reduction of count elements. In place: sendbuff == recvbuff. */
SETO_API setoResult_t setoAllReduce(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype, setoRedOp_t op,
                                    setoComm_t comm, setoStream_t stream);
SETO_API setoResult_t setoAllReduceConfig(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype,
                                          setoRedOp_t op, setoComm_t comm, setoStream_t stream, const setoCallConfig_t *config);

/* The root's recvbuff gets the reduction. In place on the root: sendbuff == recvbuff. */
SETO_API setoResult_t setoReduce(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype, setoRedOp_t op,
                                 int root, setoComm_t comm, setoStream_t stream);
SETO_API setoResult_t setoReduceConfig(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype,
                                       setoRedOp_t op, int root, setoComm_t comm, setoStream_t stream,
                                       const setoCallConfig_t *config);

/* Every recvbuff gets a copy of the root's sendbuff. In place: sendbuff == recvbuff. */
SETO_API setoResult_t setoBroadcast(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype, int root,
                                    setoComm_t comm, setoStream_t stream);
SETO_API setoResult_t setoBroadcastConfig(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype, int root,
                                          setoComm_t comm, setoStream_t stream, const setoCallConfig_t *config);
/* setoBroadcast in place. */
SETO_API setoResult_t setoBcast(void *buff, size_t count, setoDataType_t datatype, int root, setoComm_t comm,
                                setoStream_t stream);

/* sendbuff holds nranks parts of recvcount elements; recvbuff gets the reduction of part `rank`.
 * In place: recvbuff == sendbuff + rank * recvcount. */
SETO_API setoResult_t setoReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount, setoDataType_t datatype,
                                        setoRedOp_t op, setoComm_t comm, setoStream_t stream);
SETO_API setoResult_t setoReduceScatterConfig(const void *sendbuff, void *recvbuff, size_t recvcount, setoDataType_t datatype,
                                              setoRedOp_t op, setoComm_t comm, setoStream_t stream,
                                              const setoCallConfig_t *config);

/* recvbuff gets nranks parts of sendcount elements, part r from rank r. In place: sendbuff == recvbuff + rank * sendcount. */
SETO_API setoResult_t setoAllGather(const void *sendbuff, void *recvbuff, size_t sendcount, setoDataType_t datatype,
                                    setoComm_t comm, setoStream_t stream);
SETO_API setoResult_t setoAllGatherConfig(const void *sendbuff, void *recvbuff, size_t sendcount, setoDataType_t datatype,
                                          setoComm_t comm, setoStream_t stream, const setoCallConfig_t *config);

/* Both buffers hold nranks parts of count elements: part r of recvbuff is part `rank` of rank r's sendbuff. The buffers must
 * differ. */
SETO_API setoResult_t setoAlltoAll(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype, setoComm_t comm,
                                   setoStream_t stream);
SETO_API setoResult_t setoAlltoAllConfig(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype,
                                         setoComm_t comm, setoStream_t stream, const setoCallConfig_t *config);
#define setoAllToAll setoAlltoAll
#define setoAllToAllConfig setoAlltoAllConfig

/* The root's recvbuff gets nranks parts of count elements, part r from rank r. In place on the root:
 * sendbuff == recvbuff + root * count. */
SETO_API setoResult_t setoGather(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype, int root,
                                 setoComm_t comm, setoStream_t stream);
SETO_API setoResult_t setoGatherConfig(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype, int root,
                                       setoComm_t comm, setoStream_t stream, const setoCallConfig_t *config);

/* Rank r's recvbuff gets part r of the root's sendbuff, which holds nranks parts of count elements. In place on the root:
 * recvbuff == sendbuff + root * count. */
SETO_API setoResult_t setoScatter(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype, int root,
                                  setoComm_t comm, setoStream_t stream);
SETO_API setoResult_t setoScatterConfig(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype, int root,
                                        setoComm_t comm, setoStream_t stream, const setoCallConfig_t *config);

/* Ends when every rank has called it. Beyond NCCL. */
SETO_API setoResult_t setoBarrier(setoComm_t comm, setoStream_t stream);
SETO_API setoResult_t setoBarrierConfig(setoComm_t comm, setoStream_t stream, const setoCallConfig_t *config);

/* Beyond NCCL: parts of different sizes. Counts and displacements are arrays of nranks values in host memory, in elements, not
 * bytes. If the displacements are NULL, the parts are adjacent. */

/* Sends sendcounts[r] elements at sendbuff + sdispls[r] to rank r, and receives recvcounts[r] elements at recvbuff +
 * rdispls[r] from it. sendcounts[r] here must equal recvcounts[this rank] on rank r. The buffers must differ. */
SETO_API setoResult_t setoAllToAllv(const void *sendbuff, const size_t sendcounts[], const size_t sdispls[], void *recvbuff,
                                    const size_t recvcounts[], const size_t rdispls[], setoDataType_t datatype, setoComm_t comm,
                                    setoStream_t stream);
SETO_API setoResult_t setoAllToAllvConfig(const void *sendbuff, const size_t sendcounts[], const size_t sdispls[], void *recvbuff,
                                          const size_t recvcounts[], const size_t rdispls[], setoDataType_t datatype,
                                          setoComm_t comm, setoStream_t stream, const setoCallConfig_t *config);

/* recvcounts is the same on all ranks and sendcount == recvcounts[rank]; displacements are local.
 * In place: sendbuff == recvbuff + rdispls[rank]. */
SETO_API setoResult_t setoAllGatherv(const void *sendbuff, size_t sendcount, void *recvbuff, const size_t recvcounts[],
                                     const size_t rdispls[], setoDataType_t datatype, setoComm_t comm, setoStream_t stream);
SETO_API setoResult_t setoAllGathervConfig(const void *sendbuff, size_t sendcount, void *recvbuff, const size_t recvcounts[],
                                           const size_t rdispls[], setoDataType_t datatype, setoComm_t comm, setoStream_t stream,
                                           const setoCallConfig_t *config);

/* recvcounts is the same on all ranks. sendbuff holds the parts one after another, and recvbuff gets the reduction of part
 * `rank`. In place: recvbuff == sendbuff + recvcounts[0] + ... + recvcounts[rank - 1]. */
SETO_API setoResult_t setoReduceScatterv(const void *sendbuff, void *recvbuff, const size_t recvcounts[], setoDataType_t datatype,
                                         setoRedOp_t op, setoComm_t comm, setoStream_t stream);
SETO_API setoResult_t setoReduceScattervConfig(const void *sendbuff, void *recvbuff, const size_t recvcounts[],
                                               setoDataType_t datatype, setoRedOp_t op, setoComm_t comm, setoStream_t stream,
                                               const setoCallConfig_t *config);

/* ---- Point to point and groups ----------------------------------------------------------------------------------- */

/* The sends to a peer match its receives in order; counts and types must agree. Outside a group a send ends when the receiver
 * or the library has taken the data; two ranks that send to each other must do so inside a group. A rank may send to itself
 * inside a group. */
SETO_API setoResult_t setoSend(const void *sendbuff, size_t count, setoDataType_t datatype, int peer, setoComm_t comm,
                               setoStream_t stream);
SETO_API setoResult_t setoRecv(void *recvbuff, size_t count, setoDataType_t datatype, int peer, setoComm_t comm,
                               setoStream_t stream);
SETO_API setoResult_t setoSendConfig(const void *sendbuff, size_t count, setoDataType_t datatype, int peer, setoComm_t comm,
                                     setoStream_t stream, const setoCallConfig_t *config);
SETO_API setoResult_t setoRecvConfig(void *recvbuff, size_t count, setoDataType_t datatype, int peer, setoComm_t comm,
                                     setoStream_t stream, const setoCallConfig_t *config);

/* Receives from the first rank that sends a message for which no receive was issued, and writes that rank to *source. With a
 * stream, *source is written before the call has ended and must stay valid until then. Not allowed in a group. deadlineMs
 * applies to the wait, and again to the message. All-to-alls with counts consist of sends and receives too, in the order of
 * their issue, but this call never receives their messages. */
SETO_API setoResult_t setoRecvAny(void *recvbuff, size_t count, setoDataType_t datatype, int *source, setoComm_t comm,
                                  setoStream_t stream);
SETO_API setoResult_t setoRecvAnyConfig(void *recvbuff, size_t count, setoDataType_t datatype, int *source, setoComm_t comm,
                                        setoStream_t stream, const setoCallConfig_t *config);

/* Calls of this thread between start and end are queued and issued together, over any number of communicators. Groups nest:
 * the outermost end issues the calls, and blocks for operations on stream NULL of host communicators. Its result is the first
 * failure. All calls of a group on one host stream form one item of that stream: they start together, so no call may read what
 * another one writes, and the item has ended when all have. So one thread may drive every rank of a communicator through one
 * stream; without a group the calls would run one after another and wait for each other for ever. A rejected call does not
 * affect the rest of its group, and takes its place in the order. */
SETO_API setoResult_t setoGroupStart(void);
SETO_API setoResult_t setoGroupEnd(void);

/* Ends a group without issuing it, and estimates its time: operations of one communicator run one after another, those of
 * several communicators in parallel. If a call would be rejected, that is the result. Local: other ranks need not call it. The
 * end of an inner group leaves its calls to the outer group. */
#define SETO_SIM_INFO_MAGIC 0x5e705130u
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime; /* microseconds; negative if unknown */
} setoSimInfo_t;
#define SETO_SIM_INFO_INITIALIZER \
  { sizeof(setoSimInfo_t), SETO_SIM_INFO_MAGIC, SETO_VERSION_CODE, -1.0f }
SETO_API setoResult_t setoGroupSimulateEnd(setoSimInfo_t *simInfo);

/* ---- Host streams: beyond NCCL ----------------------------------------------------------------------------------- */

/* A queue of operations that run in order, on any host communicators of this process. An item is one call, or all calls of a
 * group on this stream; a position is the number of items ever queued. Functions of this section may be called from any
 * thread. A handle that was destroyed, or is not a host stream, is setoInvalidArgument. */
SETO_API setoResult_t setoStreamCreate(setoStream_t *stream);
/* Waits for all queued items, within the operation deadlines. */
SETO_API setoResult_t setoStreamDestroy(setoStream_t stream);
/* The position of the last queued item. */
SETO_API setoResult_t setoStreamPosition(setoStream_t stream, uint64_t *position);
/* Blocks until all items up to position have ended; the waiting thread drives the work. Returns the first failure up to there,
 * or setoTimeout after timeoutMs (0: only the operation deadlines apply), which does not change the stream. */
SETO_API setoResult_t setoStreamWait(setoStream_t stream, uint64_t position, uint32_t timeoutMs);
/* Like setoStreamWait, but returns setoInProgress instead of blocking. */
SETO_API setoResult_t setoStreamPoll(setoStream_t stream, uint64_t position);
/* Items queued on `stream` from now on start after `other` has reached the position. Does not block. */
SETO_API setoResult_t setoStreamWaitFor(setoStream_t stream, setoStream_t other, uint64_t position);
/* Queues a function call. The function runs on a thread of the library or of a waiter; it must not block and must not call
 * this library. */
typedef void (*setoHostFunction_t)(void *argument);
SETO_API setoResult_t setoLaunchHostFunction(setoStream_t stream, setoHostFunction_t function, void *argument);
/* The same, and the function receives the result and the text of the item before it (of that item only). The text is valid
 * during the call. */
typedef void (*setoOutcomeFunction_t)(setoResult_t result, const char *text, void *argument);
SETO_API setoResult_t setoLaunchOutcomeFunction(setoStream_t stream, setoOutcomeFunction_t function, void *argument);

/* ---- Contexts, error feedback: beyond NCCL ----------------------------------------------------------------------- */

/* A context holds the connections, slots and progress that several communicators of one rank share. If ranks are threads, each
 * has its own context. config may be NULL; only its hostId and siteId are used: they hold for the communicators that join the
 * context, unless the config of a communicator states its own. */
SETO_API setoResult_t setoContextCreate(setoContext_t *context, const setoConfig_t *config);
/* Returns setoInvalidUsage while a communicator uses the context. */
SETO_API setoResult_t setoContextDestroy(setoContext_t context);

/* The accumulated encoding errors of one tensor on this rank. A call that has the state in its config adds the state to what
 * this rank encodes (its contribution, its contribution plus what it received, or the result, depending on the algorithm), and
 * stores the new encoding error in it. So if every rank has a state, the results of many calls add up to the exact sums,
 * except for the error of one call. (Exception: a pinned recursive_doubling encodes intermediate sums again, and that error is
 * not kept.) The state starts at zero. count: elements of the sendbuff (for reduce_scatter: of all ranks together). datatype:
 * setoFloat32, setoFloat64 or setoBfloat16. comm: the only communicator whose calls may use the state. A call with another
 * shape, or that is not a sum, is setoInvalidArgument. Calls that share a state run one after another; they may be queued, and
 * the bits are the same. A call that uses no codec does not change the state. After a failed call, load or reset the state.
 * Not all ranks need a state. A call may outlive the handle. */
SETO_API setoResult_t setoErrorFeedbackCreate(setoErrorFeedback_t *state, size_t count, setoDataType_t datatype, setoComm_t comm);
/* Reset, Save and Load return setoInvalidUsage while a call uses the state or is queued to use it; a call of a group is queued
 * at the end of the group. */
SETO_API setoResult_t setoErrorFeedbackReset(setoErrorFeedback_t state);
/* The number of bytes that Save writes: a header, and residuals of 4 bytes each (setoFloat64: 8). */
SETO_API setoResult_t setoErrorFeedbackSize(setoErrorFeedback_t state, size_t *size);
SETO_API setoResult_t setoErrorFeedbackSave(setoErrorFeedback_t state, void *saved, size_t size);
/* Loads into a state of the same count and type, of any communicator. Bytes that are cut off, altered or of another shape are
 * setoInvalidArgument and change nothing. */
SETO_API setoResult_t setoErrorFeedbackLoad(setoErrorFeedback_t state, const void *saved, size_t size);
SETO_API setoResult_t setoErrorFeedbackDestroy(setoErrorFeedback_t state);

#ifdef __cplusplus
}
#endif

#endif /* SETO_SETO_H_ */
