# minja runs the Jinja templates of chat models; headers only, over nlohmann/json.
hearth_use(json)
hearth_find_header(HEARTH_MINJA_INCLUDE minja/minja.hpp)
if(HEARTH_MINJA_INCLUDE)
  set(folder "${HEARTH_MINJA_INCLUDE}")
else()
  # minja has no releases. This is the commit of Debian's libminja-dev 0~git20250922, which
  # tools/setup installs and the tests use.
  hearth_download(minja https://github.com/google/minja.git
    021c2293c187789ef13d56c6cfd89c9b134fd80f libminja-dev)
  set(folder "${minja_SOURCE}/include")
endif()
hearth_define(minja INCLUDE "${folder}" "${folder}/minja" LIBRARIES hearth::json)
