// Links between ranks that are processes started by mpirun, on one machine or several.
//
// A thread of the link makes progress and receives: it polls, and sleeps for a sixteenth of the
// time since the last message, at most 1 ms, so that an idle rank takes about 1 % of a core (a
// blocked MPI_Recv takes a whole one). The processes of one machine watch each other by process
// descriptors and notice a death at once; those of other machines notice within kLostSeconds that
// they hear nothing more.
//
// Shared memory and TCP are used through `ob1` unless OMPI_MCA_pml or OMPI_MCA_btl say otherwise:
// what mpirun chooses by itself took twice as long for small messages.
#pragma once

#include <memory>

#include "engine/ranks/link.h"

namespace hearth {

inline constexpr double kLostSeconds = 3;

// Whether mpirun started this process as one of several.
bool started_by_mpirun();
// This process's number among them; 0 if mpirun did not start it.
uint32_t mpi_rank();

// Connects the processes. Once per process, on its main thread. Fails in a build without MPI.
// Destroying the link waits for the other ranks to do so, too, unless it has failed.
Result<std::unique_ptr<Link>> open_mpi_link();

}  // namespace hearth
