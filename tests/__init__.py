"""Tests: the folders mirror the packages; sql/, golden/ and tidy/ are found by loops."""
