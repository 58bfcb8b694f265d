// What an op must move and compute at the least, whichever kernel runs it: to compare the time that
// it takes with what a device can do. Each op's header has its function.
#pragma once

namespace hearth {

struct OpCost {
  double memory_bytes = 0;      // weights, keys and values: more than caches hold
  double activation_bytes = 0;  // rows that ops pass on to each other, which caches may hold
  double operations = 0;        // in floats, or in integers in their place

  double bytes() const { return memory_bytes + activation_bytes; }
  OpCost& operator+=(const OpCost& other) {
    memory_bytes += other.memory_bytes;
    activation_bytes += other.activation_bytes;
    operations += other.operations;
    return *this;
  }
};

}  // namespace hearth
