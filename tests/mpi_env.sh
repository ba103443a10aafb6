# shellcheck shell=sh
# mpi_env.sh - sourced: what Open MPI needs to run on any test machine. A variable that is set
# already keeps its value.
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
# More ranks than cores; no pinning of two jobs to the same core; a waiting rank yields.
: "${OMPI_MCA_rmaps_base_oversubscribe=1}"
: "${OMPI_MCA_hwloc_base_binding_policy=none}"
: "${OMPI_MCA_mpi_yield_when_idle=1}"
# Where the kernel denies reading another process's memory, this avoids a complaint a message.
: "${OMPI_MCA_btl_vader_single_copy_mechanism=none}"
export OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_hwloc_base_binding_policy \
    OMPI_MCA_mpi_yield_when_idle OMPI_MCA_btl_vader_single_copy_mechanism
# Where /sys is not mounted, hwloc says so for every process, and works all the same.
: "${HWLOC_HIDE_ERRORS=2}"
export HWLOC_HIDE_ERRORS
# Idle OpenMP threads of one rank must not spin on the cores of the next.
: "${OMP_WAIT_POLICY=passive}"
export OMP_WAIT_POLICY
