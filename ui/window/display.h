// Whether there is a display; apart from window.h because it needs nothing.
#pragma once

namespace hearth {

// A window could be opened here, as far as the environment says.
bool display_is_there();

// And the display answers.
bool display_answers();

}  // namespace hearth
