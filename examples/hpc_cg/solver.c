#define _POSIX_C_SOURCE 200809L

#include "examples/hpc_cg/solver.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRY(call)                           \
  do {                                      \
    const setoResult_t tried = (call);      \
    if (tried != setoSuccess) return tried; \
  } while (0)

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* x += factor * y */
static void add(double* x, double factor, double* y, const Grid* grid) {
  double* const to = row_of(x, grid, 0);
  const double* const from = row_of(y, grid, 0);
  for (size_t i = 0; i < grid->rows * grid->size; ++i) to[i] += factor * from[i];
}

/* The fields that an iteration needs: the residual, the direction, and A times that. */
typedef struct {
  double *residual, *direction, *image;
} Work;

/* One step along the direction. `*square` is the square of the residual, before and after. */
static setoResult_t iterate(double* x, const Work* work, const Grid* grid, double* square) {
  double curvature = 0, next = 0;
  TRY(exchange_edges(work->direction, grid));
  apply_laplacian(work->image, work->direction, grid);
  TRY(dot_product(&curvature, work->direction, work->image, grid));
  const double step = *square / curvature;
  add(x, step, work->direction, grid);
  add(work->residual, -step, work->image, grid);
  TRY(dot_product(&next, work->residual, work->residual, grid));
  double* const direction = row_of(work->direction, grid, 0);
  const double* const residual = row_of(work->residual, grid, 0);
  for (size_t i = 0; i < grid->rows * grid->size; ++i) direction[i] = residual[i] + next / *square * direction[i];
  *square = next;
  return setoSuccess;
}

static void report(const Outcome* outcome, double seconds) {
  printf("iteration %6d   residual %.3e   %8.1f us each\n", outcome->iterations, outcome->residual,
         seconds / outcome->iterations * 1e6);
  fflush(stdout);
}

static setoResult_t run(double* x, double* b, const Work* work, const Grid* grid, const Limits* limits, Outcome* outcome) {
  const size_t size = grid->rows * grid->size * sizeof(double);
  memcpy(row_of(work->residual, grid, 0), row_of(b, grid, 0), size);
  memcpy(row_of(work->direction, grid, 0), row_of(b, grid, 0), size);
  double first = 0;
  TRY(dot_product(&first, work->residual, work->residual, grid));
  double square = first;
  const double began = now();
  outcome->residual = first > 0;
  while (outcome->iterations < limits->most_iterations && outcome->residual > limits->tolerance) {
    TRY(iterate(x, work, grid, &square));
    ++outcome->iterations;
    outcome->residual = sqrt(square / first);
    if (limits->report_every > 0 && outcome->iterations % limits->report_every == 0 && grid->rank == 0)
      report(outcome, now() - began);
  }
  outcome->seconds = now() - began;
  return setoSuccess;
}

setoResult_t solve(double* x, double* b, const Grid* grid, const Limits* limits, Outcome* outcome) {
  const Work work = {field_on(grid), field_on(grid), field_on(grid)};
  const Outcome none = {0, 0, 0};
  setoResult_t result = setoSystemError;
  *outcome = none;
  if (work.residual != NULL && work.direction != NULL && work.image != NULL) result = run(x, b, &work, grid, limits, outcome);
  free(work.residual);
  free(work.direction);
  free(work.image);
  return result;
}
