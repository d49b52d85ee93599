/* Seto: collective communication over islands of GPUs and CPUs.
 *
 * C99, and the whole ABI. Names, argument order and enumeration values are those of NCCL 2.27 and later with the prefix
 * replaced; what is added is marked "beyond NCCL".
 *
 * Rules that hold for every function unless its comment says otherwise:
 * - Failure: a setoResult_t other than setoSuccess; setoGetLastError() then has the text: what, which peer, which value, what to
 *   do. No exception leaves the library and no network failure ends the process.
 * - Threads: different communicators may be used from different threads at once. One communicator takes calls from one thread at
 *   a time; query functions, setoCommAbort and setoGetLastError may run beside them, from any thread, until destroy begins.
 * - Order: every rank of a communicator issues the same collectives in the same order. What differs between ranks (collective,
 *   count, type, op, root, codec) is found, named on every rank, and ends the communicator everywhere. A call that is rejected
 *   (setoInvalidArgument) takes its place in the order all the same, so it is not to be repeated on this rank alone: the matching
 *   call of every other rank ends with setoRemoteError and names this rank and the reason, and the calls after it match again.
 * - Blocking, host communicator: with stream NULL a call returns when the operation has ended on this rank, successful or not,
 *   and no peer can still write into its buffers. With a host stream it queues the operation and returns.
 * - Blocking, device communicator: every call queues on the CUDA stream; NULL is the legacy default stream.
 * - Lifetime: buffers, of any alignment that suits the type, belong to the operation until it has ended. Arrays, strings and
 *   config structs are copied before the call returns.
 * - Counts are elements, never bytes. Zero elements is legal: the operation still matches and orders.
 * - Every wait has a deadline: operations 30 minutes, liveness of a peer 5 seconds, both by config. What has not ended after
 *   10 seconds, or half its deadline if that is less, is said once in the log: for whom and for what it waits.
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

typedef struct setoComm *setoComm_t;       /* one rank's end of a communicator */
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
  setoSystemError = 2,     /* the environment lacks something: memory, descriptors, a device */
  setoInternalError = 3,   /* a bug in the library */
  setoInvalidArgument = 4, /* this call is wrong; the communicator stays usable. A collective takes its place: see Order */
  setoInvalidUsage = 5,    /* right elsewhere, or its time has not come */
  setoRemoteError = 6,     /* a peer failed, rejected its call or disagreed */
  setoInProgress = 7,      /* not an error: ask again */
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

/* Values from setoNumOps to setoMaxRedOp name custom operations, but for those of bits, which integers alone have. Floats of 16
 * and 8 bits are summed in fp32 and rounded where the plan says; integer sums wrap; an integer average truncates toward zero. All
 * ranks get the same bits, of processors and threads that treat denormal numbers alike. */
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

/* In every config struct 0 (or NULL) means inherit: from the parent communicator, the environment (SETO_*), then the default.
 * So enumerations start at 1 and "off" is a value of its own. Start from the initializer; a struct from a newer header is
 * accepted if what this library does not know is zero. */
typedef enum { setoOn = 1, setoOff = 2 } setoSwitch_t;

typedef enum {
  setoMemoryHost = 1,
  setoMemoryDevice = 2,
  setoMemoryAuto = 3 /* device only if the calling thread has a current CUDA context */
} setoMemory_t;

/* Contributes `size` bytes at `mine` and fills all[rank * size] for every rank, in rank order. Called on the thread that
 * initializes, with the same sizes in the same order on every rank; returns 0, or anything else for failure. */
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
  setoSwitch_t splitShare; /* setoOff: a child communicator gets a context of its own */
  const char *commName;    /* for logs, metrics and dumps */
  setoMemory_t memory;     /* must agree between ranks */
  setoContext_t context;   /* join this context; NULL: the parent's, or a new one */
  setoBootstrap_t bootstrap;
  uint32_t operationTimeoutMs;
  uint32_t initTimeoutMs;
  uint32_t livenessTimeoutMs;
  setoSwitch_t deterministic; /* setoOn: choose by shipped constants only, so that reruns give the same bits */
  const char *algorithm;      /* pin, by name */
  const char
      *codec; /* sums of floats may travel in it: "fp16", "world=fp16" (on that tier alone, of groups of equal size), "none" */
  const char *affinity;     /* CPU list such as "0-3,8" for the library's threads */
  const char *hostId;       /* equal on two ranks: same node */
  const char *siteId;       /* equal on two ranks: same site */
  const char *topologyFile; /* read instead of discovered and measured */
} setoConfig_t;

#define SETO_CONFIG_INITIALIZER                                                                                                \
  {                                                                                                                            \
    sizeof(setoConfig_t), SETO_CONFIG_MAGIC, SETO_VERSION_CODE, (setoSwitch_t)0, (setoSwitch_t)0, NULL, (setoMemory_t)0, NULL, \
        {NULL, NULL}, 0, 0, 0, (setoSwitch_t)0, NULL, NULL, NULL, NULL, NULL, NULL                                             \
  }

#define SETO_CALL_CONFIG_MAGIC 0x5e70ca11u

/* What one call may change. Codec and algorithm are ids from setoCodecId and setoAlgorithmId, so that a call never looks up a
 * name. All ranks pass the same values, except tag, label, errorFeedback, deadlineMs and waitsNext. */
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int codec; /* leave to encode, used where that wins; where it takes nothing (no sum of wider floats): setoInvalidArgument */
  int algorithm;
  setoErrorFeedback_t errorFeedback; /* residual of earlier calls, added before encoding and updated */
  uint32_t deadlineMs;               /* from the call to its end */
  setoSwitch_t deterministic;
  /* Shown in dumps, never compared: the caller's number of the call, and what it is called where it comes from. The label is not
   * copied: text that stays as long as the process. A group's sends and receives are shown without. */
  uint64_t tag;
  const char *label;
  /* Of a collective other than all-to-all with counts. setoOn: this thread waits for the stream next (setoStreamWait), so that
   * the call wakes no other thread to drive it meanwhile. If it does not, the call begins a moment later. */
  setoSwitch_t waitsNext;
  /* Of a send or receive: messages between two ranks meet in their order, under one tag. If their tags differ, nothing is
   * received and the communicator has failed. A receive from any rank takes messages of its tag alone. */
  uint32_t messageTag;
} setoCallConfig_t;

#define SETO_CALL_CONFIG_INITIALIZER                                                                              \
  {                                                                                                               \
    sizeof(setoCallConfig_t), SETO_CALL_CONFIG_MAGIC, SETO_VERSION_CODE, 0, 0, NULL, 0, (setoSwitch_t)0, 0, NULL, \
        (setoSwitch_t)0, 0                                                                                        \
  }

/* Ids of names, for setoCallConfig_t. An unknown name is setoInvalidArgument; the text lists the known ones. Any thread. */
SETO_API setoResult_t setoCodecId(const char *name, int *id);
SETO_API setoResult_t setoAlgorithmId(const char *name, int *id);
/* Bytes that count elements are encoded to; of "none" what they are. Any thread. */
SETO_API setoResult_t setoCodecSize(int codec, setoDataType_t datatype, size_t count, size_t *size);
/* How far an element of a sum over so many ranks may be from the exact one, if no rank's elements are larger than `largest` in
 * magnitude: each contribution is encoded once, and their sum once. A pinned algorithm may encode more often. "none": 0.
 * An average is a sum of elements that were divided first. Any thread. */
SETO_API setoResult_t setoCodecErrorBound(int codec, setoDataType_t datatype, int ranks, double largest, double *bound);

/* ---- Version and errors: any thread, never block ----------------------------------------------------------------- */

/* SETO_VERSION_CODE of the library in use, which may be newer than this header. */
SETO_API setoResult_t setoGetVersion(int *version);
/* A constant text for a code, for any int. */
SETO_API const char *setoGetErrorString(setoResult_t result);
/* NULL: the last failure of a call on this thread. A communicator: its first asynchronous failure if it has one, else as NULL.
 * Never NULL; valid until the next call of the library on this thread. */
SETO_API const char *setoGetLastError(setoComm_t comm);

/* ---- Making communicators ---------------------------------------------------------------------------------------- */

/* An id for one communicator, made on one rank and handed to the others by any means. Does not block; the process that made it
 * must stay alive until every rank's init has returned. */
SETO_API setoResult_t setoGetUniqueId(setoUniqueId *uniqueId);
/* The same for any number of communicators, one after another, until the process that made it ends: a rank's n-th init by it
 * meets the n-th of the others, also after a failure. Beyond NCCL. */
SETO_API setoResult_t setoGetJobId(setoUniqueId *jobId);
/* Blocks until all nranks have called, or the init deadline. Inside a group one thread may init several ranks. */
SETO_API setoResult_t setoCommInitRank(setoComm_t *comm, int nranks, setoUniqueId commId, int rank);
/* The same with a config, which may be NULL. With config.bootstrap the id is ignored. Not blocking if config.blocking is off. */
SETO_API setoResult_t setoCommInitRankConfig(setoComm_t *comm, int nranks, setoUniqueId commId, int rank, setoConfig_t *config);
/* Several ids, made by several ranks, the same on all: one of them serves, and the ranks share its load. */
SETO_API setoResult_t setoCommInitRankScalable(setoComm_t *newcomm, int nranks, int myrank, int nId, setoUniqueId *commIds,
                                               setoConfig_t *config);
/* Beyond NCCL: all processes of the job that this one was started in, one rank each, found from the environment: SETO_ROOT with
 * SETO_RANK and SETO_RANKS (seto run sets them), else the variables of torchrun, Open MPI's mpirun, MPICH's and Intel MPI's
 * mpiexec, or srun; with none of them one rank alone. What contradicts itself is setoInvalidArgument, naming the variables. Ranks
 * that meet over a network want SETO_SECRET_FILE or SETO_SECRET. config may be NULL; its bootstrap must not be set. A later call
 * makes another communicator of the same ranks; all ranks call in the same order. A program that calls MPI_Init uses
 * setoCommInitMPI of seto/mpi.h instead: mpiexec speaks to one library of a process only. */
SETO_API setoResult_t setoCommInitEnvironment(setoComm_t *comm, setoConfig_t *config);
/* All ranks of a communicator in this process: comms[0..ndev). devlist may be NULL (0, 1, ...; on hosts it is not looked at).
 * Each rank may then be driven by a thread of its own, or all by one inside a group. */
SETO_API setoResult_t setoCommInitAll(setoComm_t *comms, int ndev, const int *devlist);

/* Collective over comm. Ranks with the same color form a communicator, ordered by key, then rank; with SETO_SPLIT_NOCOLOR
 * *newcomm is SETO_COMM_NULL. config NULL inherits everything. If comm does not block, it is in progress until the split has
 * ended, takes no other call until then, and *newcomm is written before that end. */
#define SETO_SPLIT_NOCOLOR (-1)
SETO_API setoResult_t setoCommSplit(setoComm_t comm, int color, int key, setoComm_t *newcomm, setoConfig_t *config);
/* Called by the survivors only: a communicator without the ranks of the list. SETO_SHRINK_ABORT ends pending operations of comm
 * first, and is legal after a failure. */
#define SETO_SHRINK_DEFAULT 0x00
#define SETO_SHRINK_ABORT 0x01
SETO_API setoResult_t setoCommShrink(setoComm_t comm, int *excludeRanksList, int excludeRanksCount, setoComm_t *newcomm,
                                     setoConfig_t *config, int shrinkFlags);
/* An id with which newcomers reach comm; called on one rank. */
SETO_API setoResult_t setoCommGetUniqueId(setoComm_t comm, setoUniqueId *uniqueId);
/* A communicator of nRanks: members pass comm and rank -1, newcomers pass comm NULL, the id and their rank. */
SETO_API setoResult_t setoCommGrow(setoComm_t comm, int nRanks, const setoUniqueId *uniqueId, int rank, setoComm_t *newcomm,
                                   setoConfig_t *config);

/* ---- Ending communicators ---------------------------------------------------------------------------------------- */

/* Collective: waits until everything issued on comm has ended everywhere, then only queries and destroy are legal. */
SETO_API setoResult_t setoCommFinalize(setoComm_t comm);
/* Local: waits until what this rank has issued has ended here, unless something failed, and never for a peer that is still at it:
 * peers end what this rank has ended, and hear of a call that it rejected. comm is invalid afterwards. */
SETO_API setoResult_t setoCommDestroy(setoComm_t comm);
/* Any thread. Ends pending operations on every rank it reaches, frees comm; never waits for a peer. An operation for which all
 * that a rank needs had come may still end well there, with the right result; its next call fails. */
SETO_API setoResult_t setoCommAbort(setoComm_t comm);
/* Any thread. As abort, but comm stays for queries, dump, shrink and destroy. Flags: SETO_REVOKE_DEFAULT. */
#define SETO_REVOKE_DEFAULT 0x00
SETO_API setoResult_t setoCommRevoke(setoComm_t comm, int revokeFlags);

/* ---- Queries: any thread, never block ---------------------------------------------------------------------------- */

/* setoInProgress while a non-blocking call is under way, setoSuccess, or the first failure, which stays until destroy. A
 * rank that has no call under way hears here of a peer that died, stopped answering, or gave up. One that destroyed the
 * communicator is not missed before a call needs it; one whose process ended without that is lost, with messages of it that
 * nobody had asked for. */
SETO_API setoResult_t setoCommGetAsyncError(setoComm_t comm, setoResult_t *asyncError);
SETO_API setoResult_t setoCommCount(const setoComm_t comm, int *count);
/* CUDA device of the rank; -1 on a host communicator. */
SETO_API setoResult_t setoCommCuDevice(const setoComm_t comm, int *device);
SETO_API setoResult_t setoCommUserRank(const setoComm_t comm, int *rank);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Memory that peers may map, so that operations on it need fewer copies. Host memory, or device memory if this thread has a
 * current CUDA context. Any thread; not bound to a communicator. */
SETO_API setoResult_t setoMemAlloc(void **ptr, size_t size);
/* NULL is legal. No operation may still use the memory. */
SETO_API setoResult_t setoMemFree(void *ptr);
/* Prepares the caller's memory for operations of comm. Local; a hint: unregistered memory works everywhere. */
SETO_API setoResult_t setoCommRegister(const setoComm_t comm, void *buff, size_t size, void **handle);
SETO_API setoResult_t setoCommDeregister(const setoComm_t comm, void *handle);

/* ---- Custom operations ------------------------------------------------------------------------------------------- */

/* sum over ranks of scalar_rank * x_rank. The scalar is one value of `datatype`, read now (setoScalarHostImmediate) or on the
 * device when the operation runs. The op is valid for this communicator and type only. */
SETO_API setoResult_t setoRedOpCreatePreMulSum(setoRedOp_t *op, void *scalar, setoDataType_t datatype,
                                               setoScalarResidence_t residence, setoComm_t comm);
/* Operations already issued keep what they need. */
SETO_API setoResult_t setoRedOpDestroy(setoRedOp_t op, setoComm_t comm);

/* ---- Collectives ------------------------------------------------------------------------------------------------- */

/* Each has a plain form and a ...Config form (beyond NCCL 2.31), whose config may be NULL. Buffers may not overlap, except where
 * "in place" says so. sendbuff and recvbuff that a rank does not use may be NULL. */

/* Every recvbuff: the reduction of count elements. In place: sendbuff == recvbuff. */
SETO_API setoResult_t setoAllReduce(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype, setoRedOp_t op,
                                    setoComm_t comm, setoStream_t stream);
SETO_API setoResult_t setoAllReduceConfig(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype,
                                          setoRedOp_t op, setoComm_t comm, setoStream_t stream, const setoCallConfig_t *config);

/* The root's recvbuff: the reduction. In place on the root: sendbuff == recvbuff. */
SETO_API setoResult_t setoReduce(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype, setoRedOp_t op,
                                 int root, setoComm_t comm, setoStream_t stream);
SETO_API setoResult_t setoReduceConfig(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype,
                                       setoRedOp_t op, int root, setoComm_t comm, setoStream_t stream,
                                       const setoCallConfig_t *config);

/* Every recvbuff: the root's sendbuff. In place: sendbuff == recvbuff. */
SETO_API setoResult_t setoBroadcast(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype, int root,
                                    setoComm_t comm, setoStream_t stream);
SETO_API setoResult_t setoBroadcastConfig(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype, int root,
                                          setoComm_t comm, setoStream_t stream, const setoCallConfig_t *config);
/* setoBroadcast in place. */
SETO_API setoResult_t setoBcast(void *buff, size_t count, setoDataType_t datatype, int root, setoComm_t comm,
                                setoStream_t stream);

/* sendbuff holds nranks parts of recvcount; recvbuff gets the reduction of part `rank`.
 * In place: recvbuff == sendbuff + rank * recvcount. */
SETO_API setoResult_t setoReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount, setoDataType_t datatype,
                                        setoRedOp_t op, setoComm_t comm, setoStream_t stream);
SETO_API setoResult_t setoReduceScatterConfig(const void *sendbuff, void *recvbuff, size_t recvcount, setoDataType_t datatype,
                                              setoRedOp_t op, setoComm_t comm, setoStream_t stream,
                                              const setoCallConfig_t *config);

/* recvbuff holds nranks parts of sendcount, part r from rank r. In place: sendbuff == recvbuff + rank * sendcount. */
SETO_API setoResult_t setoAllGather(const void *sendbuff, void *recvbuff, size_t sendcount, setoDataType_t datatype,
                                    setoComm_t comm, setoStream_t stream);
SETO_API setoResult_t setoAllGatherConfig(const void *sendbuff, void *recvbuff, size_t sendcount, setoDataType_t datatype,
                                          setoComm_t comm, setoStream_t stream, const setoCallConfig_t *config);

/* Both buffers hold nranks parts of count: part r of recvbuff is part `rank` of rank r's sendbuff. No in place. */
SETO_API setoResult_t setoAlltoAll(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype, setoComm_t comm,
                                   setoStream_t stream);
SETO_API setoResult_t setoAlltoAllConfig(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype,
                                         setoComm_t comm, setoStream_t stream, const setoCallConfig_t *config);
#define setoAllToAll setoAlltoAll
#define setoAllToAllConfig setoAlltoAllConfig

/* The root's recvbuff holds nranks parts of count, part r from rank r. In place on the root:
 * sendbuff == recvbuff + root * count. */
SETO_API setoResult_t setoGather(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype, int root,
                                 setoComm_t comm, setoStream_t stream);
SETO_API setoResult_t setoGatherConfig(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype, int root,
                                       setoComm_t comm, setoStream_t stream, const setoCallConfig_t *config);

/* Rank r's recvbuff: part r of the root's sendbuff, which holds nranks parts of count. In place on the root:
 * recvbuff == sendbuff + root * count. */
SETO_API setoResult_t setoScatter(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype, int root,
                                  setoComm_t comm, setoStream_t stream);
SETO_API setoResult_t setoScatterConfig(const void *sendbuff, void *recvbuff, size_t count, setoDataType_t datatype, int root,
                                        setoComm_t comm, setoStream_t stream, const setoCallConfig_t *config);

/* Ends when every rank has entered. Beyond NCCL. */
SETO_API setoResult_t setoBarrier(setoComm_t comm, setoStream_t stream);
SETO_API setoResult_t setoBarrierConfig(setoComm_t comm, setoStream_t stream, const setoCallConfig_t *config);

/* Beyond NCCL, uneven parts. Counts and displacements are arrays of nranks elements (not bytes) in host memory; displacements
 * NULL: parts follow each other. */

/* Sends sendcounts[r] elements at sendbuff + sdispls[r] to rank r and receives recvcounts[r] at recvbuff + rdispls[r] from it.
 * sendcounts[r] here and recvcounts[this rank] on r must agree. No in place. */
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

/* recvcounts is the same on all ranks; sendbuff holds the parts one after another and recvbuff gets the reduction of part `rank`.
 * In place: recvbuff == sendbuff + recvcounts[0] + ... + recvcounts[rank - 1]. */
SETO_API setoResult_t setoReduceScatterv(const void *sendbuff, void *recvbuff, const size_t recvcounts[], setoDataType_t datatype,
                                         setoRedOp_t op, setoComm_t comm, setoStream_t stream);
SETO_API setoResult_t setoReduceScattervConfig(const void *sendbuff, void *recvbuff, const size_t recvcounts[],
                                               setoDataType_t datatype, setoRedOp_t op, setoComm_t comm, setoStream_t stream,
                                               const setoCallConfig_t *config);

/* ---- Point to point and groups ----------------------------------------------------------------------------------- */

/* Sends to a peer match its receives in order; counts and types must agree. Alone, a send ends when the receiver or the library
 * has taken the data; sends that face each other belong into a group. A rank may send to itself inside a group. */
SETO_API setoResult_t setoSend(const void *sendbuff, size_t count, setoDataType_t datatype, int peer, setoComm_t comm,
                               setoStream_t stream);
SETO_API setoResult_t setoRecv(void *recvbuff, size_t count, setoDataType_t datatype, int peer, setoComm_t comm,
                               setoStream_t stream);
SETO_API setoResult_t setoSendConfig(const void *sendbuff, size_t count, setoDataType_t datatype, int peer, setoComm_t comm,
                                     setoStream_t stream, const setoCallConfig_t *config);
SETO_API setoResult_t setoRecvConfig(void *recvbuff, size_t count, setoDataType_t datatype, int peer, setoComm_t comm,
                                     setoStream_t stream, const setoCallConfig_t *config);

/* Receives from whoever sends first something for which no receive was issued, and gives that rank: with a stream, source is
 * written before the call has ended, and must stay valid until then. Not part of a group. deadlineMs counts for the wait, and
 * again for the message. All-to-alls with counts are sends and receives too, in the order of their issue, but never what this
 * takes. */
SETO_API setoResult_t setoRecvAny(void *recvbuff, size_t count, setoDataType_t datatype, int *source, setoComm_t comm,
                                  setoStream_t stream);
SETO_API setoResult_t setoRecvAnyConfig(void *recvbuff, size_t count, setoDataType_t datatype, int *source, setoComm_t comm,
                                        setoStream_t stream, const setoCallConfig_t *config);

/* Calls of this thread between start and end are queued and issued as one, over any number of communicators. Groups nest; the
 * outermost end issues, and blocks for operations on stream NULL of host communicators. The first failure is its result.
 * What a group holds for one host stream is one item of it: all of it starts together, so no call may read what another one
 * writes, and the item has ended when all has. So one thread may drive every rank of a communicator through one stream; without a
 * group they would wait for each other, one behind the other. A rejected call does no harm to the rest of its group, and takes
 * its place in the order as ever. */
SETO_API setoResult_t setoGroupStart(void);
SETO_API setoResult_t setoGroupEnd(void);

/* Ends a group without issuing it and estimates its time: operations of one communicator one after another, those of several
 * side by side. What would be rejected is the result here, too. Local: other ranks need not call it. The end of an inner group
 * leaves its calls to the outer one. */
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

/* A queue of operations that run in order, of any host communicators of this process. An item is a call, or all calls of a group
 * on this stream; a position is the number of items ever queued on it. All functions of this section from any thread; a destroyed
 * or foreign handle is setoInvalidArgument. */
SETO_API setoResult_t setoStreamCreate(setoStream_t *stream);
/* Waits for what is queued, within the operation deadlines. */
SETO_API setoResult_t setoStreamDestroy(setoStream_t stream);
/* The position of the item queued last. */
SETO_API setoResult_t setoStreamPosition(setoStream_t stream, uint64_t *position);
/* Blocks until everything up to position has ended; the waiting thread drives the work. Gives the first failure up to there, or
 * setoTimeout after timeoutMs (0: the operation deadlines alone bound it), which leaves the stream as it was. */
SETO_API setoResult_t setoStreamWait(setoStream_t stream, uint64_t position, uint32_t timeoutMs);
/* As wait, but gives setoInProgress instead of blocking. */
SETO_API setoResult_t setoStreamPoll(setoStream_t stream, uint64_t position);
/* Items queued on stream from now on start after `other` has reached the position. Does not block. */
SETO_API setoResult_t setoStreamWaitFor(setoStream_t stream, setoStream_t other, uint64_t position);
/* Queues a call. It runs on a thread of the library or of a waiter, must not block and must not call this library. */
typedef void (*setoHostFunction_t)(void *argument);
SETO_API setoResult_t setoLaunchHostFunction(setoStream_t stream, setoHostFunction_t function, void *argument);
/* The same, and the function is told how the item before it ended, whatever ended before that: its own result and text, which is
 * valid during the call. */
typedef void (*setoOutcomeFunction_t)(setoResult_t result, const char *text, void *argument);
SETO_API setoResult_t setoLaunchOutcomeFunction(setoStream_t stream, setoOutcomeFunction_t function, void *argument);

/* ---- Contexts, error feedback: beyond NCCL ----------------------------------------------------------------------- */

/* Connections, slots and progress that several communicators of one rank share. Ranks that are threads have one each. config may
 * be NULL; memory, affinity, hostId, siteId and topologyFile are looked at. */
SETO_API setoResult_t setoContextCreate(setoContext_t *context, const setoConfig_t *config);
/* setoInvalidUsage while a communicator uses it. */
SETO_API setoResult_t setoContextDestroy(setoContext_t context);

/* What a lossy codec left out of one tensor's elements on this rank, call by call: a call that has it in its config adds it to
 * what this rank encodes (its contribution, what others have added to that, or the result, as the algorithm has it), and leaves
 * there what that leaves out. So the results of many calls add up to the exact sums, but for one call's error, if every rank has
 * one (a pinned recursive_doubling encodes sums again on the way, and forgets what that leaves out). Zero at first.
 * count: elements of the sendbuff (of a reduce_scatter: of all ranks together). datatype: setoFloat32, setoFloat64, setoBfloat16.
 * comm: whose calls may have it, and no other's. A call of another shape, or that is no sum, is setoInvalidArgument. Calls that
 * share a state run one after another; they may be queued, and the bits are the same. A call that travels exactly changes
 * nothing. After a call that failed: load or reset it. Not all ranks need one. A call may outlive the handle. */
SETO_API setoResult_t setoErrorFeedbackCreate(setoErrorFeedback_t *state, size_t count, setoDataType_t datatype, setoComm_t comm);
/* Reset, Save and Load are setoInvalidUsage while a call uses it, or was queued to; calls of a group count from its end. */
SETO_API setoResult_t setoErrorFeedbackReset(setoErrorFeedback_t state);
/* Bytes that Save writes: the residuals, of 4 bytes (of setoFloat64: 8), and a heading. */
SETO_API setoResult_t setoErrorFeedbackSize(setoErrorFeedback_t state, size_t *size);
SETO_API setoResult_t setoErrorFeedbackSave(setoErrorFeedback_t state, void *saved, size_t size);
/* Into a state of the same count and type, of any communicator. Bytes that are cut off, altered or of another shape are
 * setoInvalidArgument, and change nothing. */
SETO_API setoResult_t setoErrorFeedbackLoad(setoErrorFeedback_t state, const void *saved, size_t size);
SETO_API setoResult_t setoErrorFeedbackDestroy(setoErrorFeedback_t state);

/* ---- Seeing inside: beyond NCCL, any thread, never block --------------------------------------------------------- */

/* These write at most `capacity` bytes, always zero-terminated if capacity > 0, and set *size (may be NULL) to the length of the
 * whole text without the zero: text may be NULL with capacity 0 to learn it. A text that was cut is still setoSuccess. */
typedef enum { setoFormatText = 1, setoFormatJson = 2 } setoFormat_t;

/* topic: "version", "build", "machine", "config", "transports", "algorithms", "codecs", "status"; NULL: all. */
SETO_API setoResult_t setoInfo(const char *topic, setoFormat_t format, char *text, size_t capacity, size_t *size);

/* What codecs there are: bits, errors, what becomes of NaN, infinity, zero and denormals; and how fast one core of this machine
 * encodes and decodes, which takes some 0.2 s to measure. */
SETO_API setoResult_t setoCodecs(setoFormat_t format, char *text, size_t capacity, size_t *size);
/* What each codec would make of these numbers (a gradient, say): bytes, largest error, signal to noise. Any alignment. */
SETO_API setoResult_t setoCodecCheck(const void *values, setoDataType_t datatype, size_t count, setoFormat_t format, char *text,
                                     size_t capacity, size_t *size);

/* Checks this host for `ranks` ranks (0: one for each usable core): what it has, whether that is well, and what to mend. Each
 * line begins with ok, warn or bad; *bad (may be NULL) is how many are bad. Changes nothing, and needs no communicator. */
SETO_API setoResult_t setoDoctor(int ranks, setoFormat_t format, char *text, size_t capacity, size_t *size, int *bad);

/* Every candidate for a call, its estimated time and why it lost. With comm the question is about that communicator and the
 * shape is ignored; without, about a made-up one of `ranks` ranks spread over `nodes` nodes and `sites` sites. */
#define SETO_QUESTION_MAGIC 0x5e70a5c0u
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  const char *collective; /* "all_reduce", "all_gather", ... */
  uint64_t bytes;         /* of the size column of the benchmarks */
  setoDataType_t datatype;
  setoRedOp_t op;
  setoComm_t comm;
  int ranks; /* 0: 2 */
  int nodes; /* 0: 1 */
  int sites; /* 0: 1 */
  const char *topologyFile;
} setoQuestion_t;
#define SETO_QUESTION_INITIALIZER \
  { sizeof(setoQuestion_t), SETO_QUESTION_MAGIC, SETO_VERSION_CODE, NULL, 0, setoFloat32, setoSum, NULL, 0, 0, 0, NULL }
SETO_API setoResult_t setoExplain(const setoQuestion_t *question, setoFormat_t format, char *text, size_t capacity, size_t *size);

/* What a communicator knows of itself, any thread, also while a call waits: operations issued, begun and done here; the first
 * failure; of every rank whether it is alive, has left or is dead, how many operations it has done and what it said last; the
 * last calls with their times, and what those under way wait for, which they are given some 20 ms to say. As JSON it is what
 * setoReport reads (docs/flight_recorder.md). */
SETO_API setoResult_t setoCommDump(setoComm_t comm, setoFormat_t format, char *text, size_t capacity, size_t *size);

/* Puts together what several ranks dumped as JSON, of one communicator or of several, and says who keeps whom waiting: the first
 * line is the verdict. What cannot be used is left out and named; setoInvalidArgument if nothing is left. Needs no communicator.
 */
typedef struct {
  const char *name; /* for messages: its file */
  const char *text;
  size_t size;
} setoDumpText_t;
SETO_API setoResult_t setoReport(const setoDumpText_t *dumps, size_t count, setoFormat_t format, char *text, size_t capacity,
                                 size_t *size);

#ifdef __cplusplus
}
#endif

#endif /* SETO_SETO_H_ */
