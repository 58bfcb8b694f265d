#include "tools/terminal_columns.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace hearth {

uint32_t terminal_columns(int file_descriptor) {
  constexpr uint32_t kUsualColumns = 80;
  if (isatty(file_descriptor) == 0) return 0;
  winsize size{};
  if (ioctl(file_descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualColumns;
  return size.ws_col;
}

}  // namespace hearth
