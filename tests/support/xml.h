// Reads XML strictly, as far as our pictures use it: elements, attributes, text and the five named
// entities. Anything else is an error, and so is everything that XML forbids in those.
#pragma once

#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/utf8.h"

namespace hearth::testing {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  // directly inside it

  double number(const std::string& attribute) const {
    const auto place = attributes.find(attribute);
    return place == attributes.end() ? 0 : std::strtod(place->second.c_str(), nullptr);
  }
  bool has_class(std::string_view wanted) const {
    const auto place = attributes.find("class");
    return place != attributes.end() &&
           (" " + place->second + " ").find(" " + std::string(wanted) + " ") != std::string::npos;
  }
};

class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : text_(text) {}

  // All elements in the order in which they begin; nothing if this is not well-formed.
  std::optional<std::vector<XmlElement>> read() {
    if (utf8_valid_prefix(text_) != text_.size()) return std::nullopt;
    if (!element()) return std::nullopt;
    while (at_ < text_.size())
      if (std::isspace(static_cast<unsigned char>(text_[at_++])) == 0) return std::nullopt;
    return elements_;
  }

 private:
  bool take(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }
  void skip_spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  std::string name() {
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  text_[at_] == '-' || text_[at_] == ':'))
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  // Text up to `end`, which is left.
  std::optional<std::string> characters(char end) {
    std::string result;
    while (at_ < text_.size() && text_[at_] != end) {
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '<' || (c < ' ' && c != '\n' && c != '\t' && c != '\r')) return std::nullopt;
      if (c != '&') {
        result += text_[at_++];
        continue;
      }
      bool known = false;
      for (const auto& [entity, meaning] : {std::pair{"&lt;", '<'},
                                            {"&gt;", '>'},
                                            {"&amp;", '&'},
                                            {"&quot;", '"'},
                                            {"&apos;", '\''}})
        if (take(entity)) {
          result += meaning;
          known = true;
          break;
        }
      if (!known) return std::nullopt;
    }
    if (at_ == text_.size()) return std::nullopt;
    return result;
  }
  bool attributes(XmlElement& element) {
    while (true) {
      const size_t before = at_;
      skip_spaces();
      const std::string key = name();
      if (key.empty()) return true;
      if (at_ == before + key.size() || !take("=\"")) return false;
      const std::optional<std::string> value = characters('"');
      if (!value || !take("\"") || !element.attributes.emplace(key, *value).second) return false;
    }
  }
  bool element() {
    if (!take("<")) return false;
    const size_t index = elements_.size();
    elements_.emplace_back();
    XmlElement head{.name = name(), .attributes = {}, .text = {}};
    if (head.name.empty() || !attributes(head)) return false;
    elements_[index] = head;
    if (take("/>")) return true;
    if (!take(">")) return false;
    while (true) {
      const std::optional<std::string> text = characters('<');
      if (!text) return false;
      elements_[index].text += *text;
      if (take("</")) return name() == head.name && take(">");
      if (!element()) return false;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<XmlElement> elements_;
};

}  // namespace hearth::testing
