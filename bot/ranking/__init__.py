"""The learned numbers: weights, and an optional text model."""

import os

# One thread: the matrices are small, so threads cost more than they save, and how they split a sum changes its last
# digits.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
