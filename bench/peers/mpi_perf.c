/* Times one collective of the MPI that it was compiled with, as Seto's benchmark programs do.
 *
 *   mpirun -n N mpi_perf COLLECTIVE --sizes BYTES,... [--budget SECONDS] [--least CALLS] [--most CALLS]
 *
 * COLLECTIVE: all_reduce all_gather reduce_scatter broadcast all_to_all; fp32, sum. A size is the whole buffer of a rank: for
 * all_gather what it receives, for reduce_scatter what it sends, for all_to_all either. For each size: a barrier, warm-up, a
 * barrier, then calls back to back; the figure is the mean per call of the slowest rank. The number of calls follows from the
 * time budget. Rank 0 prints one JSON object per line. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <signal.h>
#include <sys/prctl.h>
#endif

enum { kMaxSizes = 64, kWarmUp = 2 };

struct options {
  const char* collective;
  size_t sizes[kMaxSizes];
  int size_count;
  double budget;
  int least;
  int most;
};

struct buffers {
  float* input;
  float* output;
};

static int rank, ranks;

static int call_all_reduce(struct buffers b, int count) {
  return MPI_Allreduce(b.input, b.output, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static int call_all_gather(struct buffers b, int count) {
  const int part = count / ranks;
  return MPI_Allgather(b.input, part, MPI_FLOAT, b.output, part, MPI_FLOAT, MPI_COMM_WORLD);
}
static int call_reduce_scatter(struct buffers b, int count) {
  return MPI_Reduce_scatter_block(b.input, b.output, count / ranks, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static int call_broadcast(struct buffers b, int count) { return MPI_Bcast(b.output, count, MPI_FLOAT, 0, MPI_COMM_WORLD); }
static int call_all_to_all(struct buffers b, int count) {
  const int part = count / ranks;
  return MPI_Alltoall(b.input, part, MPI_FLOAT, b.output, part, MPI_FLOAT, MPI_COMM_WORLD);
}

struct collective {
  const char* name;
  int (*call)(struct buffers, int);
  int divided; /* the buffer is cut into one part for each rank */
};

static const struct collective kCollectives[] = {
    {"all_reduce", call_all_reduce, 0}, {"all_gather", call_all_gather, 1}, {"reduce_scatter", call_reduce_scatter, 1},
    {"broadcast", call_broadcast, 0},   {"all_to_all", call_all_to_all, 1},
};

static const struct collective* find_collective(const char* name) {
  for (size_t i = 0; i < sizeof kCollectives / sizeof *kCollectives; ++i) {
    if (strcmp(kCollectives[i].name, name) == 0) return &kCollectives[i];
  }
  return NULL;
}

static int parse_sizes(const char* text, struct options* options) {
  while (*text != '\0' && options->size_count < kMaxSizes) {
    char* end = NULL;
    const unsigned long long size = strtoull(text, &end, 10);
    if (end == text || size < sizeof(float) || (*end != ',' && *end != '\0')) return 0;
    options->sizes[options->size_count++] = (size_t)size;
    text = *end == ',' ? end + 1 : end;
  }
  return *text == '\0' && options->size_count > 0;
}

static int parse(int argc, char** argv, struct options* options) {
  if (argc < 4 || argc % 2 != 0) return 0;
  options->collective = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--sizes") == 0) {
      if (!parse_sizes(argv[i + 1], options)) return 0;
    } else if (strcmp(argv[i], "--budget") == 0) {
      options->budget = atof(argv[i + 1]);
    } else if (strcmp(argv[i], "--least") == 0) {
      options->least = atoi(argv[i + 1]);
    } else if (strcmp(argv[i], "--most") == 0) {
      options->most = atoi(argv[i + 1]);
    } else {
      return 0;
    }
  }
  return options->size_count > 0 && options->least > 0 && options->most >= options->least;
}

/* Rank r fills its buffer with r + 1; the expected values below follow from that. */
static void fill(struct buffers b, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    b.input[i] = (float)(rank + 1);
    b.output[i] = rank == 0 ? 1.0F : 0.0F; /* broadcast sends rank 0's output buffer */
  }
}

static int wrong_elements(const char* name, struct buffers b, int count) {
  const int reduces = strcmp(name, "all_reduce") == 0 || strcmp(name, "reduce_scatter") == 0;
  const int broadcasts = strcmp(name, "broadcast") == 0;
  const int part = count / ranks;
  const int filled = strcmp(name, "reduce_scatter") == 0 ? part : count;
  int wrong = 0;
  for (int i = 0; i < filled; ++i) {
    const int source = part > 0 ? i / part : 0;
    const float expected = reduces ? (float)(ranks * (ranks + 1) / 2) : broadcasts ? 1.0F : (float)(source + 1);
    wrong += b.output[i] != expected;
  }
  return wrong;
}

static double time_calls(const struct collective* collective, struct buffers b, int count, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) collective->call(b, count);
  const double mine = (MPI_Wtime() - start) / calls;
  double slowest = mine;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

static int clamp_calls(double budget, double once, const struct options* options) {
  const double calls = once > 0 ? budget / once : options->most;
  if (calls < options->least) return options->least;
  return calls > options->most ? options->most : (int)calls;
}

static int measure(const struct collective* collective, size_t size, struct buffers b, const struct options* options) {
  const int granule = collective->divided ? ranks : 1;
  const int count = (int)(size / sizeof(float)) / granule * granule;
  if (count == 0) return 0;
  fill(b, (size_t)count);
  collective->call(b, count);
  int wrong = wrong_elements(collective->name, b, count), wrong_anywhere = 0;
  MPI_Allreduce(&wrong, &wrong_anywhere, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  double once = time_calls(collective, b, count, kWarmUp);
  int calls = clamp_calls(options->budget / 10, once, options);
  if (calls > options->least) once = time_calls(collective, b, count, calls); /* a better estimate for short calls */
  calls = clamp_calls(options->budget, once, options);
  const double seconds = time_calls(collective, b, count, calls);
  if (rank == 0) {
    printf("{\"collective\": \"%s\", \"ranks\": %d, \"size\": %zu, \"time_us\": %.4f, \"calls\": %d, \"wrong\": %d}\n",
           collective->name, ranks, size, seconds * 1e6, calls, wrong_anywhere);
    fflush(stdout);
  }
  return wrong_anywhere;
}

static float* allocate(size_t size) {
  void* memory = NULL;
  if (posix_memalign(&memory, 4096, size) != 0) {
    fprintf(stderr, "rank %d: no memory for a buffer of %zu bytes\n", rank, size);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  return memory;
}

int main(int argc, char** argv) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* a rank that outlives its launcher would spin and distort later figures */
#endif
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  struct options options = {.budget = 0.1, .least = 3, .most = 100000};
  const struct collective* collective = argc > 1 ? find_collective(argv[1]) : NULL;
  if (!parse(argc, argv, &options) || collective == NULL) {
    if (rank == 0) fprintf(stderr, "usage: %s COLLECTIVE --sizes BYTES,... [--budget SECONDS] [--least N] [--most N]\n", argv[0]);
    MPI_Finalize();
    return 2;
  }
  size_t largest = 0;
  for (int i = 0; i < options.size_count; ++i) largest = options.sizes[i] > largest ? options.sizes[i] : largest;
  const struct buffers buffers = {allocate(largest), allocate(largest)};
  int wrong = 0;
  for (int i = 0; i < options.size_count; ++i) wrong += measure(collective, options.sizes[i], buffers, &options);
  free(buffers.input);
  free(buffers.output);
  MPI_Finalize();
  return wrong != 0;
}
