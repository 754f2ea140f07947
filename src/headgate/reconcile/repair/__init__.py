"""Sending again what the cloud lacks or has wrong: planned, shown, applied, and resumable."""
