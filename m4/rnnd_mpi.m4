dnl RNND_MPI: MPI by pkg-config, so that any plain compiler builds; Open MPI first.
dnl Sets MPI_CFLAGS, MPI_LIBS and MPI_PC, the module for rnn_dist.pc.
AC_DEFUN([RNND_MPI], [
  MPI_PC=ompi-c
  PKG_CHECK_MODULES([MPI], [ompi-c], [], [
    MPI_PC=mpi
    PKG_CHECK_MODULES([MPI], [mpi], [], [AC_MSG_ERROR([MPI was not found:
neither ompi-c nor mpi is known to pkg-config (Debian: libopenmpi-dev openmpi-bin).])])])
  AC_SUBST([MPI_PC])
  rnnd_mpi="$MPI_PC `$PKG_CONFIG --modversion $MPI_PC`"
])
