"""Users' tables: CSV, Parquet, NPZ, NPY and LIBSVM files, and data frames, by the same rules.

A text table is read in three steps, `dialect`, `names` and `numbers`. Each format gives a `Table`
of columns with labels. The same checks turn each table into one matrix of numbers, and columns that
are kept apart, such as labels. `columns` decides what is a number and what is missing, for files
and for data frames. Nothing is dropped or filled in silently: `Table.guesses` has every guess, with
the option against it. CSV and Parquet are read by pyarrow, in the extra ``files``. LIBSVM files and
NPZ files of `scipy.sparse.save_npz` give sparse matrices.
"""
