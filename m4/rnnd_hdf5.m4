dnl RNND_HDF5: HDF5 by pkg-config, the serial build first. (On Debian, plain `hdf5' is the build
dnl that was installed last.) Sets HDF5_CFLAGS, HDF5_LIBS and HDF5_PC, the module for rnn_dist.pc.
AC_DEFUN([RNND_HDF5], [
  HDF5_PC=hdf5-serial
  PKG_CHECK_MODULES([HDF5], [hdf5-serial], [], [
    HDF5_PC=hdf5
    PKG_CHECK_MODULES([HDF5], [hdf5], [], [AC_MSG_ERROR([HDF5 was not found:
neither hdf5-serial nor hdf5 is known to pkg-config (Debian: libhdf5-dev).])])])
  AC_SUBST([HDF5_PC])
  rnnd_hdf5="$HDF5_PC `$PKG_CONFIG --modversion $HDF5_PC`"
])
