"""What crosses between processes: client steps by name and fingerprint, and plain values as bytes.

No code crosses. A step is its module, its qualified name, the fingerprint of its code and the plain
values that it holds; the receiver finds the step in its own installation.
"""
