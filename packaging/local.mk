# packaging/local.mk - recipes for packages: Debian's in debian/, Spack and Apptainer here.
EXTRA_DIST += \
	debian/changelog \
	debian/control \
	debian/copyright \
	debian/librnn-dist-dev.examples \
	debian/librnn-dist-dev.install \
	debian/rnn-dist.docs \
	debian/rnn-dist.install \
	debian/rules \
	debian/source/format \
	packaging/rnn_dist.def \
	packaging/spack/packages/rnn-dist/package.py \
	packaging/spack/repo.yaml
