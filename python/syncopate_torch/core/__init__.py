"""The base of every front end: the C interface, errors, arguments, groups and the process of a worker."""
