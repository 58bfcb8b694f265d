#include "runtime/kernel_constants.h"

namespace hearth {

std::optional<size_t> KernelConstants::index_of(std::string_view name) const {
  if (declaration_ == nullptr) return std::nullopt;
  for (size_t i = 0; i < declaration_->constants.size(); ++i)
    if (name == declaration_->constants[i].name) return i;
  return std::nullopt;
}

void KernelConstants::set(std::string_view name, uint32_t value) {
  const std::optional<size_t> index = index_of(name);
  if (!index) {
    if (unknown_name_.empty()) unknown_name_ = name;
    return;
  }
  for (size_t i = words_.size(); i <= *index; ++i) words_.push_back(declaration_->defaults[i]);
  words_[*index] = value;
}

uint32_t KernelConstants::operator[](std::string_view name) const {
  const std::optional<size_t> index = index_of(name);
  assert(index && "the kernel has no constant of this name");
  if (!index) return 0;
  return *index < words_.size() ? words_[*index] : declaration_->defaults[*index];
}

std::vector<KernelConstants::Named> KernelConstants::named() const {
  std::vector<Named> all;
  for (size_t i = 1; declaration_ != nullptr && i < words_.size(); ++i) {
    const params::DeclaredConstant& constant = declaration_->constants[i];
    all.push_back({constant.name, words_[i], constant.is_float});
  }
  return all;
}

}  // namespace hearth
