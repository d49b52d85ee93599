/* Texts about Seto: what it knows, chose and does. seto.h includes this file. Beyond NCCL. Functions of any thread, which never
 * block unless their comment says so. */
#ifndef SETO_INTROSPECTION_H_
#define SETO_INTROSPECTION_H_

#include "seto/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* These functions write at most `capacity` bytes, always zero-terminated if capacity > 0, and set *size (may be NULL) to the
 * length of the whole text without the zero. To learn the length pass text NULL and capacity 0. A text that was cut is still
 * setoSuccess. */
typedef enum { setoFormatText = 1, setoFormatJson = 2, setoFormatXml = 3, setoFormatSvg = 4 } setoFormat_t;

/* topic: a word that `seto info --help` lists, such as "machine", "gpus", "rdma", "constants", "calibration"; NULL: all.
 * "gpus" and NULL initialise CUDA in this process if a driver is installed, so that processes forked later cannot use it. */
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
  /* Instead of topologyFile: several files, as in setoSimulation_t, which together state hosts, sites and links. NULL: none */
  const setoTopologyText_t *files;
  size_t fileCount;
} setoQuestion_t;
#define SETO_QUESTION_INITIALIZER                                                                                                \
  {                                                                                                                              \
    sizeof(setoQuestion_t), SETO_QUESTION_MAGIC, SETO_VERSION_CODE, NULL, 0, setoFloat32, setoSum, NULL, 0, 0, 0, NULL, 0, NULL, \
        0                                                                                                                        \
  }
SETO_API setoResult_t setoExplain(const setoQuestion_t *question, setoFormat_t format, char *text, size_t capacity, size_t *size);

/* Describes topologies: the sites, hosts, NUMA nodes, PCI switches, GPUs, NICs and links of files, and where each fact comes
 * from. The files are NCCL's topology XML, AMD's variant of it, or hwloc's XML. A file may state only a part; what it does not
 * state is guessed, and the text says so. setoFormatXml writes NCCL's format without guesses, setoFormatSvg a drawing; only this
 * function knows these two. Without files it describes this machine, which takes some 50 ms and initialises CUDA (see setoInfo).
 */
SETO_API setoResult_t setoTopology(const setoTopologyText_t *files, size_t count, setoFormat_t format, char *text,
                                   size_t capacity, size_t *size);

/* Writes the topology of this rank's host as a part of its job, as XML: the host with the source of each fact, the sites of the
 * job, and the measured links between them. An empty text on all ranks but the first of each host, so that a host is described
 * once. It takes some 50 ms, initialises CUDA (see setoInfo), and sends nothing: gather the texts, and give those that are not
 * empty to setoTopology, which makes one topology of them. */
SETO_API setoResult_t setoCommTopology(setoComm_t comm, char *text, size_t capacity, size_t *size);

/* Simulates a call on a topology (files as above): its predicted time and the load of each link. Nothing is measured and nothing
 * is sent. What the files do not state is assumed, and the text says so. setoFormatSvg draws a Gantt chart of the lanes of some
 * ranks. SETO_CODEC and SETO_TUNING_FILE hold as for setoExplain. 10,000 ranks take about 90 seconds and 1 GiB.
 * With memory "device" the ranks are the GPUs of the only host of the files, and the time follows from the programs that their
 * blocks would execute and from published figures of GPUs: text or JSON, each row marked as a prediction. */
#define SETO_SIMULATION_MAGIC 0x5e70514du
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  const char *collective; /* "all_reduce", "all_gather", ... */
  const char *algorithm;  /* NULL: the one that the library chooses for these links */
  uint64_t bytes;         /* as in the size column of the benchmarks; 0 with device memory: a table of 8 bytes to 1 GiB */
  setoDataType_t datatype;
  int ranks; /* as in setoQuestion_t with a topologyFile */
  const setoTopologyText_t *files;
  size_t fileCount;   /* at least 1 */
  const char *memory; /* "host" or "device"; NULL: host */
  int blocks;         /* device memory: of each GPU, 1 to 132; 0: 32 */
} setoSimulation_t;
#define SETO_SIMULATION_INITIALIZER \
  { sizeof(setoSimulation_t), SETO_SIMULATION_MAGIC, SETO_VERSION_CODE, NULL, NULL, 0, setoFloat32, 0, NULL, 0, NULL, 0 }
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

#endif /* SETO_INTROSPECTION_H_ */
