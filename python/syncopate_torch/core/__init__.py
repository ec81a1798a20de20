"""What every front end stands on: the C interface, errors, arguments, groups and the process of a worker."""
