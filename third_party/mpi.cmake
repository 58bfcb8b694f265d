# Open MPI: ranks in several processes. Optional: without it, ranks are devices of one process, and
# a program that mpirun started says what to install. Debian keeps the headers in a folder of the
# library's own.
hearth_find_header(HEARTH_MPI_INCLUDE mpi.h
  PATHS "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openmpi/include"
  "/usr/lib/${CMAKE_SYSTEM_PROCESSOR}-linux-gnu/openmpi/include"
  PATH_SUFFIXES openmpi openmpi-${CMAKE_SYSTEM_PROCESSOR})
hearth_find_library(HEARTH_MPI_LIBRARY libmpi.so)
if(HEARTH_MPI_INCLUDE AND HEARTH_MPI_LIBRARY)
  # Without the C++ bindings, which only old programs use.
  hearth_define(mpi INCLUDE "${HEARTH_MPI_INCLUDE}" LIBRARIES "${HEARTH_MPI_LIBRARY}"
    DEFINES HEARTH_HAS_MPI=1 OMPI_SKIP_MPICXX=1)
else()
  message(STATUS "third_party: Open MPI is not installed (package libopenmpi-dev); ranks are devices "
    "of one process only")
  hearth_define(mpi)
endif()
