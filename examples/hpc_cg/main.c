/* Solves -Laplace(u) = f on the unit square, u = 0 on its edge, by conjugate gradients: see README.md. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/hpc_cg/solver.h"

typedef struct {
  size_t size;
  int check;
  Limits limits;
} Options;

static int usage(const char* program) {
  fprintf(stderr,
          "usage: %s [--size N] [--iterations N] [--tolerance T] [--every N] [--check]\n"
          "  --size N         the grid has N x N points (512)\n"
          "  --iterations N   limit of iterations (10000)\n"
          "  --tolerance T    final residual, relative to the first (1e-8)\n"
          "  --every N        print a line every N iterations (100)\n"
          "  --check          rank 0 also solves it alone, and the results are compared\n",
          program);
  return 2;
}

static int parse(int count, char** arguments, Options* options) {
  for (int i = 1; i < count; ++i) {
    const char* const name = arguments[i];
    if (strcmp(name, "--check") == 0) {
      options->check = 1;
      continue;
    }
    if (i + 1 == count) return 0;
    char* end = NULL;
    const double value = strtod(arguments[++i], &end);
    if (*end != '\0' || value < 0 || value > 1e6) return 0;
    if (strcmp(name, "--size") == 0)
      options->size = (size_t)value;
    else if (strcmp(name, "--iterations") == 0)
      options->limits.most_iterations = (int)value;
    else if (strcmp(name, "--tolerance") == 0)
      options->limits.tolerance = value;
    else if (strcmp(name, "--every") == 0)
      options->limits.report_every = (int)value;
    else
      return 0;
  }
  return options->size > 0;
}

/* A bump off the centre, times the square of the mesh width. */
static void set_right_side(double* b, const Grid* grid) {
  const double width = 1.0 / (double)(grid->size + 1);
  for (size_t row = 0; row < grid->rows; ++row)
    for (size_t i = 0; i < grid->size; ++i) {
      const double x = (double)(i + 1) * width - 0.3, y = (double)(grid->first + row + 1) * width - 0.6;
      row_of(b, grid, row)[i] = width * width * exp(-20 * (x * x + y * y));
    }
}

/* Gathers all parts of x on rank 0. Parts differ in size, so it is an all-to-all whose other counts are zero. Returns NULL on
 * other ranks, or if there is no memory.
 */
static double* gathered(double* x, const Grid* grid) {
  size_t *const counts = calloc((size_t)grid->ranks, sizeof *counts), *const none = calloc((size_t)grid->ranks, sizeof *none);
  double* const all = grid->rank == 0 ? malloc(grid->size * grid->size * sizeof *all) : NULL;
  setoResult_t result = setoSystemError;
  if (counts != NULL && none != NULL && (all != NULL || grid->rank != 0)) {
    none[0] = grid->rows * grid->size;
    for (int rank = 0; grid->rank == 0 && rank < grid->ranks; ++rank)
      counts[rank] = grid_of(NULL, rank, grid->ranks, grid->size).rows * grid->size;
    result = setoAllToAllv(row_of(x, grid, 0), none, NULL, all, counts, NULL, setoFloat64, grid->comm, NULL);
  }
  free(counts);
  free(none);
  if (result == setoSuccess) return all;
  free(all);
  return NULL;
}

/* On rank 0: the largest difference from a serial run, relative to the largest value. Negative if there is no memory. */
static double difference(const double* parallel, const Options* options, Outcome* alone) {
  const Grid grid = grid_of(NULL, 0, 1, options->size);
  double *const x = field_on(&grid), *const b = field_on(&grid);
  Limits silent = options->limits;
  double largest = 0, wrong = 0;
  silent.report_every = 0;
  int solved = 0;
  if (x != NULL && b != NULL) {
    set_right_side(b, &grid);
    solved = solve(x, b, &grid, &silent, alone) == setoSuccess;
    for (size_t i = 0; i < grid.size * grid.size; ++i) {
      largest = fmax(largest, fabs(row_of(x, &grid, 0)[i]));
      wrong = fmax(wrong, fabs(row_of(x, &grid, 0)[i] - parallel[i]));
    }
  }
  free(x);
  free(b);
  return solved && largest > 0 ? wrong / largest : -1;
}

/* Returns 0 if the two runs agree, within a little more than the tolerance, because their roundings differ. */
static int check(double* x, const Grid* grid, const Options* options, const Outcome* outcome) {
  double* const all = gathered(x, grid);
  int wrong = 0;
  if (grid->rank == 0 && all != NULL) {
    Outcome alone = {0};
    const double apart = difference(all, options, &alone);
    wrong = !(apart >= 0 && apart <= 100 * options->limits.tolerance) || alone.residual > 2 * outcome->residual;
    printf("serial: %d iterations, residual %.3e, %.3f s; largest difference %.1e: %s\n", alone.iterations, alone.residual,
           alone.seconds, apart, wrong ? "WRONG" : "the same solution");
  } else if (grid->rank == 0) {
    wrong = 1;
  }
  free(all);
  return wrong;
}

static int run(setoComm_t comm, const Options* options) {
  int rank = 0, ranks = 0;
  setoCommUserRank(comm, &rank);
  setoCommCount(comm, &ranks);
  if ((size_t)ranks > options->size) return fprintf(stderr, "%d ranks, but the grid has %zu rows\n", ranks, options->size), 1;
  const Grid grid = grid_of(comm, rank, ranks, options->size);
  double *const x = field_on(&grid), *const b = field_on(&grid);
  Outcome outcome = {0, 0, 0};
  int failed = x == NULL || b == NULL;
  if (!failed) {
    set_right_side(b, &grid);
    if (rank == 0) printf("%zu x %zu points, ranks: %d\n", options->size, options->size, ranks);
    failed = solve(x, b, &grid, &options->limits, &outcome) != setoSuccess;
  }
  if (failed) {
    fprintf(stderr, "rank %d: %s\n", rank, setoGetLastError(comm));
  } else {
    failed = outcome.residual > options->limits.tolerance;
    if (rank == 0)
      printf("%s after %d iterations, residual %.3e, %.3f s, %.1f us each\n", failed ? "NOT CONVERGED" : "converged",
             outcome.iterations, outcome.residual, outcome.seconds,
             outcome.iterations > 0 ? outcome.seconds / outcome.iterations * 1e6 : 0);
    if (options->check) failed |= check(x, &grid, options, &outcome);
  }
  free(x);
  free(b);
  return failed;
}

int main(int count, char** arguments) {
  Options options = {512, 0, {10000, 1e-8, 100}};
  setoComm_t comm = SETO_COMM_NULL;
  if (!parse(count, arguments, &options)) return usage(arguments[0]);
  if (setoCommInitEnvironment(&comm, NULL) != setoSuccess) return fprintf(stderr, "%s\n", setoGetLastError(NULL)), 1;
  const int failed = run(comm, &options);
  setoCommDestroy(comm);
  return failed;
}
