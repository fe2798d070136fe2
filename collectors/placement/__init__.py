"""Placement: what the kubelet of this node gave to whom."""
