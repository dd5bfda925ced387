"""Shared parts of tools/bench_peers.py and tools/bench_all.py."""
