"""Plots as pictures: what each shows is in words and numbers first, and drawn only when its address is asked for."""
