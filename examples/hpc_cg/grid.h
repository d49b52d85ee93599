/* The rows of a square grid that this rank holds, with a row of the adjacent rank's values on either side. */
#ifndef EXAMPLES_HPC_CG_GRID_H_
#define EXAMPLES_HPC_CG_GRID_H_

#include <seto/seto.h>
#include <stddef.h>

typedef struct {
  setoComm_t comm; /* NULL: the whole grid is here */
  int rank, ranks;
  size_t size;  /* points in a row, and rows of the whole grid */
  size_t first; /* number of this rank's first row */
  size_t rows;  /* rows of this rank */
} Grid;

/* Assigns blocks of rows to the ranks, as evenly as possible. */
Grid grid_of(setoComm_t comm, int rank, int ranks, size_t size);

/* Allocates a field: rows + 2 rows, of which this rank's start at row 1. It is zero at first, which is also the value beyond the
 * edge of the grid. Returns NULL if there is no memory. */
double* field_on(const Grid* grid);
static inline double* row_of(double* field, const Grid* grid, size_t row) { return field + (row + 1) * grid->size; }

/* Fills the outer rows of the field from the adjacent ranks: a send and a receive on either side, all in one group. */
setoResult_t exchange_edges(double* field, const Grid* grid);

/* result = A field, where A is the five-point Laplacian: 4 x - left - right - above - below. Call exchange_edges() before. */
void apply_laplacian(double* result, double* field, const Grid* grid);

/* Computes the sum over all ranks of x . y */
setoResult_t dot_product(double* result, double* x, double* y, const Grid* grid);

#endif /* EXAMPLES_HPC_CG_GRID_H_ */
