#include "examples/hpc_cg/grid.h"

#include <stdlib.h>

Grid grid_of(setoComm_t comm, int rank, int ranks, size_t size) {
  const size_t count = (size_t)ranks, index = (size_t)rank, share = size / count, more = size % count;
  Grid grid = {comm, rank, ranks, size, 0, share + (index < more)};
  grid.first = index * share + (index < more ? index : more);
  return grid;
}

double* field_on(const Grid* grid) { return calloc((grid->rows + 2) * grid->size, sizeof(double)); }

setoResult_t exchange_edges(double* field, const Grid* grid) {
  const size_t count = grid->size;
  const int above = grid->rank - 1, below = grid->rank + 1;
  if (grid->ranks == 1) return setoSuccess;
  setoResult_t result = setoGroupStart();
  if (result != setoSuccess) return result;
  if (above >= 0) {
    setoSend(row_of(field, grid, 0), count, setoFloat64, above, grid->comm, NULL);
    setoRecv(field, count, setoFloat64, above, grid->comm, NULL);
  }
  if (below < grid->ranks) {
    setoSend(row_of(field, grid, grid->rows - 1), count, setoFloat64, below, grid->comm, NULL);
    setoRecv(row_of(field, grid, grid->rows), count, setoFloat64, below, grid->comm, NULL);
  }
  return setoGroupEnd(); /* the first failure of the calls in the group */
}

void apply_laplacian(double* result, double* field, const Grid* grid) {
  const size_t size = grid->size;
  for (size_t row = 0; row < grid->rows; ++row) {
    const double *const here = row_of(field, grid, row), *const above = here - size, *const below = here + size;
    double* const out = row_of(result, grid, row);
    for (size_t i = 0; i < size; ++i) {
      const double left = i > 0 ? here[i - 1] : 0, right = i + 1 < size ? here[i + 1] : 0;
      out[i] = 4 * here[i] - left - right - above[i] - below[i];
    }
  }
}

setoResult_t dot_product(double* result, double* x, double* y, const Grid* grid) {
  const double *const a = row_of(x, grid, 0), *const b = row_of(y, grid, 0);
  double mine = 0;
  for (size_t i = 0; i < grid->rows * grid->size; ++i) mine += a[i] * b[i];
  *result = mine;
  if (grid->ranks == 1) return setoSuccess;
  return setoAllReduce(&mine, result, 1, setoFloat64, setoSum, grid->comm, NULL);
}
