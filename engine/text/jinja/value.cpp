#include "engine/text/jinja/value.h"

namespace hearth::jinja {

const Marks kAllInput{};

std::string_view type_name(const Value& value) {
  switch (value.kind) {
    case Kind::kMissing:
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kIterator:
      return value.iterator->type;
    case Kind::kView:
      switch (value.view->part) {
        case View::Part::kKeys:
          return "dict_keys";
        case View::Part::kValues:
          return "dict_values";
        case View::Part::kItems:
          return "dict_items";
      }
      break;
    case Kind::kRange:
      return "range";
    case Kind::kFunction:
      return "function";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kObject:
      return "object";
  }
  return "object";
}

bool is_true(const Value& value) {
  switch (value.kind) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
      return value.boolean;
    case Kind::kInt:
      return value.integer != 0;
    case Kind::kFloat:
      return value.number != 0;
    case Kind::kString:
      return value.size != 0;
    case Kind::kList:
    case Kind::kTuple:
      return value.list->size != 0;
    case Kind::kDict:
      return value.dict->size != 0;
    case Kind::kView:
      return value.view->dict->size != 0;
    case Kind::kRange:
      return value.range->count != 0;
    case Kind::kNamespace:
    case Kind::kIterator:
    case Kind::kFunction:
    case Kind::kLoop:
    case Kind::kObject:
      return true;
  }
  return true;
}

}  // namespace hearth::jinja
