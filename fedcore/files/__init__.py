"""Write files completely or not at all, and detect damage by checksums."""

HDF5_ENDINGS = (".h5", ".hdf5")  # of histories and of problems
END = b"\r\n\0\x1a"  # of a text file; the last one by DOS
