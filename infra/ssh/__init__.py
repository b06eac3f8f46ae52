"""The ssh driver: hosts are machines that exist, listed in an inventory. A run claims them while it lasts."""
