// GBNF and Lark's format.
#include <gtest/gtest.h>

#include "tests/engine/grammar/grammar_texts.h"

namespace hearth::grammar {
namespace {

using testing::accepts;
using testing::compiled;
using testing::refusal;

TEST(Gbnf, Arithmetic) {
  const auto grammar = compiled(Grammar::compile_gbnf(R"gbnf(
# sums, in llama.cpp's style
root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
)gbnf"));
  EXPECT_TRUE(accepts(grammar, "a+(b*3)=7\n"));
  EXPECT_TRUE(accepts(grammar, "((1))=x \nq=2\n"));
  EXPECT_FALSE(accepts(grammar, "a+=7\n"));
  EXPECT_FALSE(accepts(grammar, "(a=7\n"));
}

TEST(Gbnf, LeftRecursionAndAmbiguity) {
  const auto grammar =
      compiled(Grammar::compile_gbnf("root ::= root \"a\" root | \"b\" | root root\n"));
  EXPECT_TRUE(accepts(grammar, "b"));
  EXPECT_TRUE(accepts(grammar, "babbab"));
  EXPECT_FALSE(accepts(grammar, "ab"));
  EXPECT_FALSE(accepts(grammar, ""));
}

TEST(Gbnf, RepetitionsAndEscapes) {
  const auto grammar =
      compiled(Grammar::compile_gbnf("root ::= item{2,3} (\"\\x41\" | [^\\]a-z\\u00e4])? list\n"
                                     "item ::= \"ab\"\n"
                                     "list ::= (\"[\" list \"]\"){0,2}\n"));
  EXPECT_TRUE(accepts(grammar, "abab"));
  EXPECT_TRUE(accepts(grammar, "abababA[[]][]"));
  EXPECT_FALSE(accepts(grammar, "ab"));
  EXPECT_FALSE(accepts(grammar, "abab]"));
  EXPECT_FALSE(accepts(grammar, "abab[][][]"));
}

TEST(Gbnf, EmptyTextWhereEverythingIsOptional) {
  const auto grammar =
      compiled(Grammar::compile_gbnf("root ::= list?\nlist ::= \"(\" list? \")\"\n"));
  EXPECT_TRUE(accepts(grammar, ""));
  EXPECT_TRUE(accepts(grammar, "(())"));
  EXPECT_FALSE(accepts(grammar, "(()"));
}

TEST(Gbnf, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(refusal(Grammar::compile_gbnf("a ::= \"x\"\n")), "the grammar has no rule \"root\"");
  EXPECT_EQ(refusal(Grammar::compile_gbnf("root ::= b\n")), "the grammar has no rule \"b\"");
  EXPECT_EQ(refusal(Grammar::compile_gbnf("\nroot ::= \"x\n")),
            "grammar, line 2: a text without its closing quote");
  EXPECT_EQ(refusal(Grammar::compile_gbnf("root ::= (\"a\"\n")), "grammar, line 2: expected )");
  EXPECT_EQ(refusal(Grammar::compile_gbnf("root ::= <think>\n")),
            "grammar, line 1: control tokens are named by their ids, as in <[17]>");
  EXPECT_EQ(refusal(Grammar::compile_gbnf("root ::= \"(\" root \")\"\n")),
            "the grammar matches no text at all");
}

TEST(Lark, RulesTerminalsAndIgnore) {
  const auto grammar = compiled(Grammar::compile_lark(R"lark(
start: sum
?sum: product | sum "+" product -> add
product: atom ("*" atom)*
atom: NUMBER | "(" sum ")" | "pi"i
%import common.NUMBER
%import common.WS
%ignore WS
)lark"));
  EXPECT_TRUE(accepts(grammar, "1 + 2*(3.5 + PI)"));
  EXPECT_TRUE(accepts(grammar, " 1 "));
  EXPECT_FALSE(accepts(grammar, "1 +"));
  EXPECT_FALSE(accepts(grammar, "1 2"));
}

TEST(Lark, RangesRepetitionsRegularExpressions) {
  const auto grammar =
      compiled(Grammar::compile_lark("start: \"a\"..\"c\" ~ 2..3 [\"!\"] /[0-9]{2}\\/x/\n"));
  EXPECT_TRUE(accepts(grammar, "abc12/x"));
  EXPECT_TRUE(accepts(grammar, "ab!12/x"));
  EXPECT_FALSE(accepts(grammar, "a12/x"));
}

TEST(Lark, SchemasInsideOfText) {
  const auto grammar =
      compiled(Grammar::compile_lark("start: \"<call>\" %json {\"type\": \"object\", "
                                     "\"properties\": {\"a}\": {\"type\": \"integer\"}}, "
                                     "\"required\": [\"a}\"]} \"</call>\"\n"));
  EXPECT_TRUE(accepts(grammar, "<call>{\"a}\": 1}</call>"));
  EXPECT_FALSE(accepts(grammar, "<call>{}</call>"));
  EXPECT_EQ(refusal(Grammar::compile_lark("start: %json {\"type\": \"x\"}\n")).substr(0, 17),
            "%json: type at #:");
}

TEST(Lark, TheFormatIsFoundByItself) {
  EXPECT_TRUE(accepts(compiled(Grammar::compile_grammar("start: \"x\"\n")), "x"));
  EXPECT_TRUE(accepts(compiled(Grammar::compile_grammar("root ::= \"x\"\n")), "x"));
}

}  // namespace
}  // namespace hearth::grammar
