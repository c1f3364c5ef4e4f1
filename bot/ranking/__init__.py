"""The learned numbers: weights, word vectors, an optional text model."""

import os

# One thread: the matrices are small, threads that wait for one another cost more than they save, and how a sum is
# shared out among them changes its last digits.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
