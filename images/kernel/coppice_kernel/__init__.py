"""What runs in a kernel container: a supervisor that starts kernels for the gateway."""
