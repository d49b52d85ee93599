/* Types, enumerations and config structs of Seto: see seto.h, which includes this file. */
#ifndef SETO_TYPES_H_
#define SETO_TYPES_H_

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
  setoMemoryAuto = 3 /* device if the calling thread has a current CUDA context, and the library has kernels for GPUs */
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
  const char *affinity; /* CPU list such as "0-3,8" for the library's threads */
  const char *hostId;   /* ranks with equal values share a node */
  const char *siteId;   /* ranks with equal values share a site; found by round trips if no rank states one */
  /* A path: the hosts of this topology file (seto topo --xml) state their sites where siteId is NULL, and its rates hold for
   * sites whose ranks state none. All ranks need equal content; what it does not state is found by measuring. */
  const char *topologyFile;
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

#ifdef __cplusplus
}
#endif

#endif /* SETO_TYPES_H_ */
