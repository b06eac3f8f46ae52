"""Replays the checkpoint-and-restart process over known faults, to predict what a run with these faults measures."""
