// Owns the precompiled header; main() is in hearth_test_support.
