# Google Benchmark, optional: ask with if(TARGET hearth::benchmark). Not worth a download.
find_package(Threads REQUIRED)
hearth_find_header(HEARTH_BENCHMARK_INCLUDE benchmark/benchmark.h)
hearth_find_library(HEARTH_BENCHMARK_LIBRARY benchmark INSTALLED)
if(HEARTH_BENCHMARK_INCLUDE AND HEARTH_BENCHMARK_LIBRARY)
  hearth_define(benchmark INCLUDE "${HEARTH_BENCHMARK_INCLUDE}"
    LIBRARIES "${HEARTH_BENCHMARK_LIBRARY}" Threads::Threads)
else()
  message(STATUS "third_party: no Google Benchmark (package libbenchmark-dev); left out")
endif()
