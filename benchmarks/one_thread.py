"""One thread of BLAS. Imported before NumPy, with which BLAS reads how many there are."""

import os

for _library in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "VECLIB_MAXIMUM"):
    os.environ[f"{_library}_THREADS"] = "1"
