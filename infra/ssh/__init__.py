"""The ssh driver: hosts are existing machines, listed in an inventory. A run claims them while it lasts."""
