/* The sum of a vector over all workers, in C. Usage: allreduce_c [VALUES] */
#include <stdio.h>
#include <stdlib.h>
#include <syncopate.h>

static int failed(const char *what) {
  fprintf(stderr, "allreduce_c: %s: %s\n", what, syncopate_last_error());
  return 1;
}

static int sum(syncopate_job *job, size_t count) {
  float *values = malloc(count * sizeof *values);
  if (values == NULL) {
    fprintf(stderr, "allreduce_c: no memory for %zu values\n", count);
    return 1;
  }
  for (size_t i = 0; i < count; ++i) {
    values[i] = (float)(syncopate_rank(job) + 1);
  }
  int status = 0;
  syncopate_group *everyone = syncopate_everyone(job);
  if (syncopate_allreduce(everyone, values, count, SYNCOPATE_FLOAT32, SYNCOPATE_SUM, NULL) == SYNCOPATE_OK) {
    printf("worker %u of %u: every value is %g\n", syncopate_rank(job), syncopate_worker_count(job), values[count - 1]);
  } else {
    status = failed("allreduce");
  }
  free(values);
  return status;
}

int main(int argc, char **argv) {
  const size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
  syncopate_job *job = NULL;
  if (count == 0) {
    fprintf(stderr, "allreduce_c: expected a number of values above 0, found %s\n", argv[1]);
    return 2;
  }
  if (syncopate_join(NULL, &job) != SYNCOPATE_OK) {
    return failed("join");
  }
  const int status = sum(job, count);
  syncopate_leave(job);
  return status;
}
