"""Tables of one's own: CSV, Parquet, NPZ, NPY and LIBSVM files, and data frames, by one rule.

A text table is read in three steps, `dialect`, `names` and `numbers`. Each format gives a `Table`
of columns with labels, and the same checks make it one matrix of numbers, and columns that are kept
apart, such as labels. `columns` says what is a number and what is missing, for files as for data
frames. Nothing is dropped or filled in silently: what is guessed stands in `Table.guesses`, and an
option says otherwise. CSV and Parquet are read by pyarrow, in the extra ``files``. LIBSVM files and
NPZ files of `scipy.sparse.save_npz` give sparse matrices.
"""
