# bin/local.mk - the program: one file per command.
