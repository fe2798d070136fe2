"""NVML, the library of the NVIDIA driver: a typed port to it, and the collector on top."""
