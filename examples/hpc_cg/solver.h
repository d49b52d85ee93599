/* Conjugate gradients for A x = b on a grid. */
#ifndef EXAMPLES_HPC_CG_SOLVER_H_
#define EXAMPLES_HPC_CG_SOLVER_H_

#include "examples/hpc_cg/grid.h"

typedef struct {
  int most_iterations;
  double tolerance; /* final residual, relative to that of x = 0 */
  int report_every; /* iterations between two lines; 0: none */
} Limits;

typedef struct {
  int iterations;
  double residual; /* relative to that of x = 0 */
  double seconds;
} Outcome;

/* Starts with x = 0 and writes the solution to `x`; `b` is not changed. */
setoResult_t solve(double* x, double* b, const Grid* grid, const Limits* limits, Outcome* outcome);

#endif /* EXAMPLES_HPC_CG_SOLVER_H_ */
