# ZeroMQ: events of the KV cache for gateways (hearth serve --kv-events). Optional: without it, the
# flag only says what to install. Only the shared library is used: the static one needs libraries
# that its package does not name.
hearth_find_header(HEARTH_ZMQ_INCLUDE zmq.h)
hearth_find_library(HEARTH_ZMQ_LIBRARY libzmq.so)
if(HEARTH_ZMQ_INCLUDE AND HEARTH_ZMQ_LIBRARY)
  hearth_define(zmq INCLUDE "${HEARTH_ZMQ_INCLUDE}" LIBRARIES "${HEARTH_ZMQ_LIBRARY}"
    DEFINES HEARTH_HAS_ZMQ=1)
else()
  message(STATUS "third_party: ZeroMQ is not installed (package libzmq3-dev); hearth serve "
    "--kv-events is left out")
  hearth_define(zmq)
endif()
