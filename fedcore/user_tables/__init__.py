"""Read users' tables (CSV, Parquet, NPZ, NPY, LIBSVM files, data frames) by the same rules.

The modules `dialect`, `names` and `numbers` read a text table in three steps. The reader of each
file format returns a `Table` with labelled columns. The same checks turn each table into a matrix
of numbers and into separate columns, such as labels. The module `columns` decides which values are
numbers and which are missing. No value is dropped or filled in silently. `Table.guesses` lists
every guess and, if there is one, the option that overrides it. CSV and Parquet files need pyarrow
(extra ``files``). LIBSVM files and NPZ files of `scipy.sparse.save_npz` become sparse matrices.
"""
