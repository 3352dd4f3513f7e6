"""Parts of gen_test_data.py."""
