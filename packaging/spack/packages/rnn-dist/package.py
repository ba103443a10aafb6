"""A recipe for Spack: `spack repo add packaging/spack`, then `spack dev-build rnn-dist@0.1.0`
in the top folder of the sources."""
from spack.package import *


class RnnDist(AutotoolsPackage):
    """Training of recurrent networks on sequences of unequal length, over MPI."""

    license("Apache-2.0")

    version("0.1.0")

    variant("npz", default=True, description="read and write .npz files")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("autoconf@2.69:", type="build")
    depends_on("automake@1.15:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("openmpi@4:")
    depends_on("hdf5@1.10:~mpi")
    depends_on("onednn@2.6:")
    depends_on("inih")
    depends_on("jansson@2.14:")
    depends_on("zlib-api")
    depends_on("libzip", when="+npz")

    def autoreconf(self, spec, prefix):
        Executable("./autogen.sh")()

    def configure_args(self):
        return ["--without-onnx", "--without-cuda", *self.with_or_without("libzip", variant="npz")]
