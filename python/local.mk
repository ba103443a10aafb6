# python/local.mk - one file, to be copied; it is installed with the program's other data.
dist_pkgdata_DATA = python/rnn_dist.py
