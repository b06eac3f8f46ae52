"""The ssh driver: hosts are machines that exist, listed in an inventory, and claimed for one run at a time."""
