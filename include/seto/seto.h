/* Seto: collective communication across hosts and sites.
 *
 * This header is C99 and the whole ABI. Names, argument order and enumeration values are those of NCCL 2.27 and later with the
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
 * - Blocking, device communicator: every call queues on the CUDA stream; NULL is the legacy default stream.
 * - Lifetime: buffers must have an alignment that suits the type, and belong to the operation until it has ended. Arrays, strings
 *   and config structs are copied before the call returns.
 * - Counts are in elements, never in bytes. Zero elements is legal: the operation still matches and orders.
 * - Every wait has a deadline: 30 minutes for operations, 5 seconds for the liveness of a peer; both are configurable. A call
 *   that has not ended after 10 seconds (or half its deadline, if that is less) is logged once, with what it waits for.
 * - After fork() every call in the child fails with setoInvalidUsage.
 */
#ifndef SETO_SETO_H_
#define SETO_SETO_H_

#include <stddef.h>
#include <stdint.h>

#ifndef SETO_API
#if defined(__GNUC__)
#define SETO_API __attribute__((visibility("default")))
#else
#define SETO_API
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SETO_MAJOR 0
#define SETO_MINOR 1
#define SETO_PATCH 0
#define SETO_VERSION(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define SETO_VERSION_CODE SETO_VERSION(SETO_MAJOR, SETO_MINOR, SETO_PATCH)

/* ---- Types ------------------------------------------------------------------------------------------------------- */

typedef struct setoComm *setoComm_t;       /* one rank's handle of a communicator */
typedef struct setoContext *setoContext_t; /* the progress domain of one rank; beyond NCCL */
typedef struct setoErrorFeedback *setoErrorFeedback_t;
#define SETO_COMM_NULL NULL

/* A cudaStream_t passes unchanged, in C and C++. Host streams (setoStreamCreate) are handles of the same type. */
struct CUstream_st;
typedef struct CUstream_st *setoStream_t;

#define SETO_UNIQUE_ID_BYTES 128
typedef struct {
  char internal[SETO_UNIQUE_ID_BYTES];
} setoUniqueId;

typedef enum {
  setoSuccess = 0,
  setoUnhandledCudaError = 1,
  setoSystemError = 2,     /* a resource is missing: memory, descriptors, a device */
  setoInternalError = 3,   /* a bug in the library */
  setoInvalidArgument = 4, /* this call is wrong; the communicator stays usable. See Order for collectives */
  setoInvalidUsage = 5,    /* the call is not allowed in this state, or not supported by this version */
  setoRemoteError = 6,     /* a peer failed, rejected its call, or made a different call */
  setoInProgress = 7,      /* not an error: the work continues in the background; poll again */
  setoTimeout = 8,         /* a deadline passed */
  setoNumResults = 9
} setoResult_t;

typedef enum {
  setoInt8 = 0,
  setoChar = 0,
  setoUint8 = 1,
  setoInt32 = 2,
  setoInt = 2,
  setoUint32 = 3,
  setoInt64 = 4,
  setoUint64 = 5,
  setoFloat16 = 6,
  setoHalf = 6,
  setoFloat32 = 7,
  setoFloat = 7,
  setoFloat64 = 8,
  setoDouble = 8,
  setoBfloat16 = 9,
  setoFloat8e4m3 = 10,
  setoFloat8e5m2 = 11,
  setoNumTypes = 12
} setoDataType_t;

/* Values from setoNumOps to setoMaxRedOp are custom operations, except the bit operations, which exist for integers only.
 * Floats of 16 and 8 bits are summed in fp32 and rounded where the plan states; integer sums wrap around; an integer average
 * truncates toward zero. All ranks get the same bits, provided that their processors and threads treat denormal numbers alike. */
typedef enum {
  setoSum = 0,
  setoProd = 1,
  setoMax = 2,
  setoMin = 3,
  setoAvg = 4,
  setoNumOps = 5,
  setoBitAnd = 0x7ffffff0, /* beyond NCCL */
  setoBitOr = 0x7ffffff1,
  setoBitXor = 0x7ffffff2,
  setoMaxRedOp = 0x7fffffff
} setoRedOp_t;

typedef enum { setoScalarDevice = 0, setoScalarHostImmediate = 1 } setoScalarResidence_t;

/* ---- Configuration ----------------------------------------------------------------------------------------------- */

/* In every config struct 0 (or NULL) means: inherit from the parent communicator, then the environment (SETO_*), then the
 * default. So enumerations start at 1 and "off" has its own value. Start from the initializer. A struct of a newer header is
 * accepted if the fields that this library does not know are zero. */
typedef enum { setoOn = 1, setoOff = 2 } setoSwitch_t;

typedef enum {
  setoMemoryHost = 1,
  setoMemoryDevice = 2,
  setoMemoryAuto = 3 /* device only if the calling thread has a current CUDA context */
} setoMemory_t;

/* An all-gather that the user provides: contributes `size` bytes at `mine` and fills all[rank * size] for every rank, in rank
 * order. It is called on the thread that initializes, with the same sizes in the same order on every rank. It returns 0, or
 * any other value for failure. */
typedef int (*setoAllGatherFunction_t)(const void *mine, void *all, size_t size, void *argument);

typedef struct {
  setoAllGatherFunction_t allGather; /* NULL: rendezvous over the unique id */
  void *argument;
} setoBootstrap_t;

#define SETO_CONFIG_MAGIC 0x5e70c0f1u

typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  setoSwitch_t blocking;   /* setoOff: init, split, shrink, grow and finalize return setoInProgress; poll the async error.
                              NCCL's 0 is setoOff here. */
  setoSwitch_t splitShare; /* setoOff: a child communicator gets its own context */
  const char *commName;    /* for logs, metrics and dumps */
  setoMemory_t memory;     /* must agree between ranks */
  setoContext_t context;   /* join this context; NULL: the parent's, or a new one */
  setoBootstrap_t bootstrap;
  uint32_t operationTimeoutMs;
  uint32_t initTimeoutMs;
  uint32_t livenessTimeoutMs;
  setoSwitch_t deterministic; /* setoOn: choose by shipped constants only, so that repeated runs give the same bits */
  const char *algorithm;      /* use this algorithm (a name) */
  /* May encode sums of floats: "fp16", "world=fp16" (that tier only), "none". NULL, with SETO_CODEC unset: sums and averages of
   * setoFloat32 of 64 KiB or more may travel in fp16 between sites that are far from each other, and nothing else is encoded.
   * Found sites are far from 5 ms of round trip on: near 5 ms two runs may differ in the last bits, with stated sites never. */
  const char *codec;
  const char *affinity;     /* CPU list such as "0-3,8" for the library's threads */
  const char *hostId;       /* ranks with equal values share a node */
  const char *siteId;       /* ranks with equal values share a site; found by round trips if no rank states one */
  const char *topologyFile; /* not in this version: NULL. A communicator measures its links, SETO_TUNING_FILE states constants;
                             * files of topologies are for setoExplain, setoTopology and setoSimulatePlan */
} setoConfig_t;

#define SETO_CONFIG_INITIALIZER                                                                                                \
  {                                                                                                                            \
    sizeof(setoConfig_t), SETO_CONFIG_MAGIC, SETO_VERSION_CODE, (setoSwitch_t)0, (setoSwitch_t)0, NULL, (setoMemory_t)0, NULL, \
        {NULL, NULL}, 0, 0, 0, (setoSwitch_t)0, NULL, NULL, NULL, NULL, NULL, NULL                                             \
  }

#define SETO_CALL_CONFIG_MAGIC 0x5e70ca11u

/* The settings of one call. Codec and algorithm are ids from setoCodecId and setoAlgorithmId, so that a call never looks up a
 * name. All ranks pass the same values, except tag, label, errorFeedback, deadlineMs and waitsNext. */
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  /* Permits a codec, which is used where it is faster; the id of "none" forbids all; 0: as the communicator. setoInvalidArgument
   * unless the call is a sum of a float type that is wider than the codec. */
  int codec;
  int algorithm;
  setoErrorFeedback_t errorFeedback; /* encoding errors of earlier calls: added before encoding, then updated */
  uint32_t deadlineMs;               /* time limit from the call to its end */
  setoSwitch_t deterministic;
  /* Shown in dumps and never compared between ranks: a number and a name that the caller gives to the call. The label is not
   * copied and must stay valid as long as the process. The sends and receives of a group are shown without them. */
  uint64_t tag;
  const char *label;
  /* Valid for collectives except all-to-all with counts. setoOn states that this thread waits for the stream next
   * (setoStreamWait), so the call wakes no other thread to drive it. If this thread does not wait, the call begins a moment
   * later. */
  setoSwitch_t waitsNext;
  /* Valid for sends and receives. The messages between two ranks match in their order, and their tags must be equal. If they
   * differ, nothing is received and the communicator fails. A receive from any rank accepts only messages with its tag. */
  uint32_t messageTag;
} setoCallConfig_t;

#define SETO_CALL_CONFIG_INITIALIZER                                                                              \
  {                                                                                                               \
    sizeof(setoCallConfig_t), SETO_CALL_CONFIG_MAGIC, SETO_VERSION_CODE, 0, 0, NULL, 0, (setoSwitch_t)0, 0, NULL, \
        (setoSwitch_t)0, 0                                                                                        \
  }

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

/* ---- Version and errors: any thread, never block ----------------------------------------------------------------- */

/* The SETO_VERSION_CODE of the loaded library, which may be newer than this header. */
SETO_API setoResult_t setoGetVersion(int *version);
/* Returns a constant text for a code. Any int is legal. */
SETO_API const char *setoGetErrorString(setoResult_t result);
/* With NULL it returns the text of the last failure of a call on this thread; with a communicator the text of its first
 * asynchronous failure, or if it has none, the same as with NULL. Never returns NULL. The text is valid until the next call of
 * the library on this thread. */
SETO_API const char *setoGetLastError(setoComm_t comm);

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

/* Allocates memory that peers may map, so that operations on it need fewer copies: host memory, or device memory if this thread
 * has a current CUDA context. Any thread; the memory is not bound to a communicator. */
SETO_API setoResult_t setoMemAlloc(void **ptr, size_t size);
/* NULL is legal. No operation may still use the memory. */
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
 * has its own context. config may be NULL; only memory, affinity, hostId, siteId and topologyFile are used. */
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

/* ---- Introspection: beyond NCCL, any thread, never block --------------------------------------------------------- */

/* These functions write at most `capacity` bytes, always zero-terminated if capacity > 0, and set *size (may be NULL) to the
 * length of the whole text without the zero. To learn the length pass text NULL and capacity 0. A text that was cut is still
 * setoSuccess. */
typedef enum { setoFormatText = 1, setoFormatJson = 2, setoFormatXml = 3, setoFormatSvg = 4 } setoFormat_t;

/* topic: "version", "build", "machine", "config", "transports", "algorithms", "constants", "codecs", "status"; NULL: all. */
SETO_API setoResult_t setoInfo(const char *topic, setoFormat_t format, char *text, size_t capacity, size_t *size);

/* Describes all codecs: bits, errors, results for NaN, infinity, zero and denormals, and the speed at which one core of this
 * machine encodes and decodes. Measuring the speed takes some 0.2 s. */
SETO_API setoResult_t setoCodecs(setoFormat_t format, char *text, size_t capacity, size_t *size);
/* Encodes and decodes these numbers (a gradient, for example) with each codec, and reports bytes, largest error and signal to
 * noise. The numbers may have any alignment. */
SETO_API setoResult_t setoCodecCheck(const void *values, setoDataType_t datatype, size_t count, setoFormat_t format, char *text,
                                     size_t capacity, size_t *size);

/* Checks this host for `ranks` ranks (0: one for each usable core), and reports what was found, whether it is good, and what to
 * change.
 * Each line begins with ok, warn or bad; *bad (may be NULL) is the number of bad lines. Changes nothing, and needs no
 * communicator. */
SETO_API setoResult_t setoDoctor(int ranks, setoFormat_t format, char *text, size_t capacity, size_t *size, int *bad);

/* A topology file, as a text (see setoTopology). */
typedef struct {
  const char *name; /* file name, for messages */
  const char *site; /* the site of the file's hosts; NULL: as the file states */
  const char *text;
  size_t size;
  int copies;        /* hosts like each host of the file; 0: 1 */
  int isThisMachine; /* 1: the file is a hint about this machine, and is completed by what is found here */
} setoTopologyText_t;

/* Explains the choice for a call: every candidate algorithm, its estimated time, and why it was not chosen. With comm the
 * question is about that communicator and the shape is ignored; without comm it is about a hypothetical communicator of `ranks`
 * ranks on `nodes` nodes and `sites` sites. */
#define SETO_QUESTION_MAGIC 0x5e70a5c0u
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  const char *collective; /* "all_reduce", "all_gather", ... */
  uint64_t bytes;         /* as in the size column of the benchmarks */
  setoDataType_t datatype;
  setoRedOp_t op;
  setoComm_t comm;
  int ranks; /* 0: 2 */
  int nodes; /* 0: 1 */
  int sites; /* 0: 1 */
  /* A path: the hosts, sites and links of this topology file hold (nodes and sites: 0). ranks: 0 for one on each GPU, or on each
   * host without one; else a multiple of that, on copies of the hosts, or without GPUs any number, evenly on the hosts. NULL:
   * ranks, nodes and sites hold. */
  const char *topologyFile;
  uint64_t bytesTo; /* 0: one size; else a table of the choices for bytes, 2 * bytes, ... to this size, with the crossovers */
  /* Instead of topologyFile: several files, as in setoSimulation_t, which together state the hosts, sites and links. NULL: none */
  const setoTopologyText_t *files;
  size_t fileCount;
} setoQuestion_t;
#define SETO_QUESTION_INITIALIZER \
  { sizeof(setoQuestion_t), SETO_QUESTION_MAGIC, SETO_VERSION_CODE, NULL, 0, setoFloat32, setoSum, NULL, 0, 0, 0, NULL, 0, NULL, 0 }
SETO_API setoResult_t setoExplain(const setoQuestion_t *question, setoFormat_t format, char *text, size_t capacity, size_t *size);

/* Describes topologies: the sites, hosts, NUMA nodes, PCI switches, GPUs, NICs and links of files, and where each fact comes
 * from. The files are NCCL's topology XML, AMD's variant of it, or hwloc's XML. A file may state only a part; what it does not
 * state is guessed, and the text says so. setoFormatXml writes NCCL's format without guesses, setoFormatSvg a drawing; only this
 * function knows these two. Without files it describes this machine, which takes some 50 ms. */
SETO_API setoResult_t setoTopology(const setoTopologyText_t *files, size_t count, setoFormat_t format, char *text,
                                   size_t capacity, size_t *size);

/* Writes the topology of this rank's host as a part of its job, as XML: the host with the source of each fact, the sites of the
 * job, and the measured links between them. An empty text on all ranks but the first of each host, so that a host is described
 * once. It takes some 50 ms and sends nothing: gather the texts, and give those that are not empty to setoTopology, which makes
 * one topology of them. */
SETO_API setoResult_t setoCommTopology(setoComm_t comm, char *text, size_t capacity, size_t *size);

/* Simulates a call on a topology (files as above): its predicted time and the load of each link. Nothing is measured and nothing
 * is sent. What the files do not state is assumed, and the text says so. setoFormatSvg draws a Gantt chart of the lanes of some
 * ranks. SETO_CODEC and SETO_TUNING_FILE hold as for setoExplain. 10,000 ranks take about 90 seconds and 1 GiB. */
#define SETO_SIMULATION_MAGIC 0x5e70514du
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  const char *collective; /* "all_reduce", "all_gather", ... */
  const char *algorithm;  /* NULL: the one that the library chooses for these links */
  uint64_t bytes;         /* as in the size column of the benchmarks */
  setoDataType_t datatype;
  int ranks; /* as in setoQuestion_t with a topologyFile */
  const setoTopologyText_t *files;
  size_t fileCount; /* at least 1 */
} setoSimulation_t;
#define SETO_SIMULATION_INITIALIZER \
  { sizeof(setoSimulation_t), SETO_SIMULATION_MAGIC, SETO_VERSION_CODE, NULL, NULL, 0, setoFloat32, 0, NULL, 0 }
SETO_API setoResult_t setoSimulatePlan(const setoSimulation_t *simulation, setoFormat_t format, char *text, size_t capacity,
                                       size_t *size);

/* Writes the state of a communicator, from any thread, also while a call waits: operations issued, begun and done here; the first
 * failure; for every rank whether it is alive, has left or is dead, how many operations it has done, and its last report; the
 * last calls with their times, and what calls under way wait for (they get some 20 ms to report that). setoReport reads the
 * JSON form (docs/flight_recorder.md). */
SETO_API setoResult_t setoCommDump(setoComm_t comm, setoFormat_t format, char *text, size_t capacity, size_t *size);

/* Combines JSON dumps of several ranks, of one communicator or of several, and finds the rank that keeps others waiting. The
 * first line is the diagnosis. A dump that cannot be used is left out and named; setoInvalidArgument if none is left. It needs no
 * communicator. */
typedef struct {
  const char *name; /* file name, for messages */
  const char *text;
  size_t size;
} setoDumpText_t;
SETO_API setoResult_t setoReport(const setoDumpText_t *dumps, size_t count, setoFormat_t format, char *text, size_t capacity,
                                 size_t *size);

/* Asks the processes of this user on this host (in this network namespace) that have a communicator of two ranks or more what
 * they do, or one of them (pid; 0: all). Writes JSON (docs/status_command.md): their communicators, sites and links between
 * sites. *found (may be NULL) is the number of processes. It waits up to 2 s for those that do not answer, and names them. It
 * needs no communicator. */
SETO_API setoResult_t setoStatus(int pid, char *text, size_t capacity, size_t *size, int *found);
/* The JSON of setoStatus for people, or as JSON. With an earlier one of the same host (before; NULL: none) the bytes per second
 * of each link between the two are added. Both are terminated by a zero. */
SETO_API setoResult_t setoStatusReport(const char *now, const char *before, setoFormat_t format, char *text, size_t capacity,
                                       size_t *size);

#ifdef __cplusplus
}
#endif

#endif /* SETO_SETO_H_ */
