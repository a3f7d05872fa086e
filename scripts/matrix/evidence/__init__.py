"""Read compatibility facts out of wheels: the core behind `scripts/refresh_matrix.py`."""
