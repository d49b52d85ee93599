/* The rows of a square grid that this rank holds, with a row of its neighbours' values on either side. */
#ifndef EXAMPLES_HPC_CG_GRID_H_
#define EXAMPLES_HPC_CG_GRID_H_

#include <seto/seto.h>
#include <stddef.h>

typedef struct {
  setoComm_t comm; /* NULL: the whole grid is here */
  int rank, ranks;
  size_t size;  /* points in a row, and rows of the whole grid */
  size_t first; /* number of our first row */
  size_t rows;  /* ours */
} Grid;

/* Blocks of rows, as even as they can be. */
Grid grid_of(setoComm_t comm, int rank, int ranks, size_t size);

/* A field on it: rows + 2 rows, ours from row 1 on. Zero at first, which is also the value beyond the edge of the grid. NULL
 * without memory. */
double* field_on(const Grid* grid);
static inline double* row_of(double* field, const Grid* grid, size_t row) { return field + (row + 1) * grid->size; }

/* The outer rows of the field become those of the neighbours: a send and a receive on either side, all in one group. */
setoResult_t exchange_edges(double* field, const Grid* grid);

/* result = A field, A being the five-point Laplacian: 4 x - left - right - above - below. Wants the edges. */
void apply_laplacian(double* result, double* field, const Grid* grid);

/* The sum over all ranks of x . y */
setoResult_t dot_product(double* result, double* x, double* y, const Grid* grid);

#endif /* EXAMPLES_HPC_CG_GRID_H_ */
