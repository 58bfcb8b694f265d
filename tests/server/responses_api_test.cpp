// OpenAI's Responses API: requests and replies alone, then over HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/adapted_apis.h"
#include "tools/server/api/input_items.h"
#include "tools/server/api/response_store.h"
#include "tools/server/api/responses_reply.h"
#include "tools/server/api/responses_request.h"

namespace hearth::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

json responses(const std::string& body) {
  return translated(
      parse_responses_request(
          body,
          [](const std::string& id) -> std::optional<std::string> {
            if (id == "resp_calls")
              return R"([{"role":"user","content":"A?"},{"role":"assistant","content":null,
                "tool_calls":[{"id":"d","type":"function",
                               "function":{"name":"f","arguments":"{}"}}]}])";
            if (id != "resp_1") return std::nullopt;
            return R"([{"role":"user","content":"A?"},{"role":"assistant","content":"B."}])";
          }),
      &ResponsesRequest::chat);
}

TEST(ResponsesRequest, BecomesAChat) {
  const Translation cases[] = {
      {R"({"input":"Hi"})", R"({"messages":[{"role":"user","content":"Hi"}]})"},
      {R"({"input":"Hi","instructions":"Be brief.","max_output_tokens":5,"temperature":0,
           "stream":true,"store":false,"text":{"format":{"type":"text"}},"metadata":{"a":"b"},
           "truncation":"disabled","include":[],"background":false,"top_p":null})",
       R"({"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}],
           "max_tokens":5,"temperature":0,"stream":true,"response_format":{"type":"text"}})"},
      {R"({"input":[{"role":"user","content":[{"type":"input_text","text":"a"},
                                              {"type":"input_text","text":"b"}]},
                    {"type":"reasoning","summary":[],"content":[
                      {"type":"reasoning_text","text":"Hm."}]},
                    {"type":"message","role":"assistant","id":"msg_1","status":"completed",
                     "content":[{"type":"output_text","text":"c","annotations":[]}]},
                    {"type":"function_call","call_id":"1","name":"f","arguments":"{}"},
                    {"type":"function_call_output","call_id":"1","output":"42"}]})",
       R"({"messages":[{"role":"user","content":"ab"},
                       {"role":"assistant","content":"c","reasoning_content":"Hm.","tool_calls":[
                         {"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},
                       {"role":"tool","tool_call_id":"1","content":"42"}]})"},
      {R"({"input":"C?","previous_response_id":"resp_1","instructions":"New."})",
       R"({"messages":[{"role":"system","content":"New."},{"role":"user","content":"A?"},
                       {"role":"assistant","content":"B."},{"role":"user","content":"C?"}]})"},
      {R"({"input":"Hi","text":{"format":{"type":"json_schema","name":"n","strict":true,
                                          "schema":{"type":"object"}}},
           "tools":[{"type":"function","name":"f","parameters":{}}],
           "tool_choice":{"type":"function","name":"f"},"reasoning":{"effort":"low"}})",
       R"({"messages":[{"role":"user","content":"Hi"}],
           "response_format":{"type":"json_schema","json_schema":{
             "name":"n","strict":true,"schema":{"type":"object"}}},
           "tools":[{"type":"function","function":{"name":"f","parameters":{}}}],
           "tool_choice":{"type":"function","function":{"name":"f"}},"reasoning_effort":"low"})"},
  };
  for (const Translation& test : cases)
    EXPECT_EQ(responses(test.from), json::parse(test.to)) << test.from;
}

TEST(ResponsesRequest, RefusesByName) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({})", "input"},
      {R"({"input":[]})", "input"},
      {R"({"input":[{"role":"user"}]})", "input[0].content"},
      {R"({"input":[{"role":"robot","content":"x"}]})", "input[0].role"},
      {R"({"input":[{"type":"item_reference","id":"x"}]})", "input[0]"},
      {R"({"input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]})",
       "input[0].content[0]"},
      {R"({"input":"x","background":true})", "background"},
      {R"({"input":"x","conversation":"c"})", "conversation"},
      {R"({"input":"x","include":["a"]})", "include"},
      {R"({"input":"x","truncation":"auto"})", "truncation"},
      {R"({"input":"x","tools":[{"type":"web_search"}]})", "tools[0]"},
      {R"({"input":"x","reasoning":{"summary":"auto"}})", "reasoning.summary"},
      {R"({"input":"x","text":{"colour":"red"}})", "text.colour"},
      {R"({"input":"x","previous_response_id":"resp_2"})", "previous_response_id"},
      {R"({"input":"x","max_tokens":5})", "max_tokens"},
      {R"({"input":"x","store":1})", "store"},
  };
  for (const auto& [body, field] : cases) EXPECT_EQ(responses(body)["refused"], field) << body;
}

// The error named a field and a place of the chat completion that the request becomes.
TEST(ResponsesRequest, AResultWithoutItsCallIsRefusedWhereItIs) {
  const std::string before = R"({"input":[{"role":"user","content":"x"},
      {"type":"function_call","call_id":"a","name":"f","arguments":"{}"},
      {"type":"function_call","call_id":"b","name":"f","arguments":"{}"},
      {"type":"function_call_output","call_id":")";
  const std::string after = R"(","output":"1"}]})";
  EXPECT_EQ(responses(before + "c" + after)["refused"], "input[3].call_id");
  EXPECT_EQ(responses(before + "b" + after)["messages"].back()["tool_call_id"], "b");
  // A call of the response that is continued.
  const std::string later = R"({"previous_response_id":"resp_calls",
      "input":[{"type":"function_call_output","call_id":")";
  EXPECT_EQ(responses(later + "d" + after)["messages"].back()["tool_call_id"], "d");
  EXPECT_EQ(responses(later + "a" + after)["refused"], "input[0].call_id");
}

TEST(InputItems, AreTheMessagesBeforeTheResponse) {
  const json conversation = json::parse(R"([
      {"role":"developer","content":"Be kind."},
      {"role":"user","content":"Hi"},
      {"role":"assistant","content":null,"reasoning_content":"Hm.","tool_calls":[
        {"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},
      {"role":"tool","tool_call_id":"c1","content":"42"},
      {"role":"assistant","content":"So it is."}, {"role":"user","content":"More"},
      {"role":"assistant","content":"The response itself."}])");
  EXPECT_EQ(json(input_items(conversation, "resp_9")), json::parse(R"([
      {"id":"msg_9_in0","type":"message","status":"completed","role":"developer",
       "content":[{"type":"input_text","text":"Be kind."}]},
      {"id":"msg_9_in1","type":"message","status":"completed","role":"user",
       "content":[{"type":"input_text","text":"Hi"}]},
      {"id":"rs_9_in2","type":"reasoning","summary":[],
       "content":[{"type":"reasoning_text","text":"Hm."}]},
      {"id":"fc_9_in3","type":"function_call","status":"completed","call_id":"c1","name":"f",
       "arguments":"{}"},
      {"id":"fco_9_in4","type":"function_call_output","status":"completed","call_id":"c1",
       "output":"42"},
      {"id":"msg_9_in5","type":"message","status":"completed","role":"assistant",
       "content":[{"type":"output_text","text":"So it is.","annotations":[]}]},
      {"id":"msg_9_in6","type":"message","status":"completed","role":"user",
       "content":[{"type":"input_text","text":"More"}]}])"));
}

TEST(InputItems, ComeInPages) {
  std::vector<json> items;
  for (int i = 0; i < 25; ++i) items.push_back({{"id", "i" + std::to_string(i)}});
  // The ids of a page, or what was refused.
  const auto page = [&](const std::string& query) -> std::string {
    const auto result = list_page(items, query);
    if (const ApiError* error = std::get_if<ApiError>(&result)) return "refused " + error->param;
    const json& list = std::get<json>(result);
    EXPECT_EQ(list["object"], "list");
    std::string text;
    if (!list["data"].empty()) {
      EXPECT_EQ(list["first_id"], list["data"].front()["id"]);
      EXPECT_EQ(list["last_id"], list["data"].back()["id"]);
      text = list["first_id"].get<std::string>() + ".." + list["last_id"].get<std::string>() + " ";
    } else {
      EXPECT_TRUE(list["first_id"].is_null() && list["last_id"].is_null());
    }
    return text + std::to_string(list["data"].size()) + (list["has_more"] == true ? " more" : "");
  };
  const std::pair<std::string, std::string> cases[] = {
      {"", "i24..i5 20 more"},
      {"order=asc", "i0..i19 20 more"},
      {"order=asc&after=i19", "i20..i24 5"},
      {"after=i5&limit=5&order=desc", "i4..i0 5"},
      {"limit=1&after=i%31", "i0..i0 1"},
      {"order=asc&after=i24", "0"},
      {"limit=25", "i24..i0 25"},
      {"include[]=x&=&&limit", "refused limit"},
      {"limit=0", "refused limit"},
      {"limit=101", "refused limit"},
      {"limit=-1", "refused limit"},
      {"limit=5x", "refused limit"},
      {"limit=99999999999999999999", "refused limit"},
      {"order=up", "refused order"},
      {"after=nothing", "refused after"},
  };
  for (const auto& [query, expected] : cases) EXPECT_EQ(page(query), expected) << query;
}

TEST(ResponseStore, DropsTheOldest) {
  ResponseStore store(/*most_responses=*/2, /*most_bytes=*/2000);
  store.add("a", {.object = "A", .conversation = "[]"});
  store.add("b", {.object = "B", .conversation = "[]"});
  EXPECT_TRUE(store.remove("a"));
  EXPECT_FALSE(store.remove("a"));
  store.add("c", {.object = "C", .conversation = "[]"});
  store.add("d", {.object = "D", .conversation = "[]"});
  EXPECT_FALSE(store.find("b"));
  EXPECT_EQ(store.find("c")->object, "C");
  store.add("e", {.object = std::string(1200, 'e'), .conversation = "[]"});
  EXPECT_FALSE(store.find("c"));
  EXPECT_TRUE(store.find("e"));
  store.add("f", {.object = std::string(3000, 'f'), .conversation = "[]"});
  EXPECT_FALSE(store.find("f")) << "larger than the store";
  EXPECT_FALSE(store.find("e"));
}

TEST(ResponsesReply, StreamsTheEventsOfItsObject) {
  ResponseStore store;
  const auto make = [&](ResponseStore* place) {
    return ResponsesReply(
        {.id = "resp_7", .model = "m", .created = 1, .echo = json::object(), .conversation = "[]"},
        place);
  };
  ResponsesReply streamed = make(&store), at_once = make(nullptr);
  const std::vector<json> events = lines_of(run_stream(streamed, chunks_with_everything(), kEnd));
  EXPECT_THAT(types_of(events),
              ElementsAre("response.created", "response.in_progress", "response.output_item.added",
                          "response.content_part.added", "response.reasoning_text.delta",
                          "response.reasoning_text.delta", "response.reasoning_text.done",
                          "response.content_part.done", "response.output_item.done",
                          "response.output_item.added", "response.content_part.added",
                          "response.output_text.delta", "response.output_text.delta",
                          "response.output_text.done", "response.content_part.done",
                          "response.output_item.done", "response.output_item.added",
                          "response.function_call_arguments.delta",
                          "response.function_call_arguments.delta",
                          "response.function_call_arguments.done", "response.output_item.done",
                          "response.output_item.added", "response.function_call_arguments.done",
                          "response.output_item.done", "response.completed"));
  for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i]["sequence_number"], i);
  const json whole = json::parse(at_once.whole(kWholeCompletion, kEnd));
  EXPECT_EQ(events.back()["response"], whole);
  ASSERT_EQ(whole["output"].size(), 4u);
  EXPECT_EQ(whole["output"][0]["content"][0]["text"], "Hmm.");
  EXPECT_EQ(whole["output"][1]["content"][0]["text"], "Let me look.");
  EXPECT_EQ(whole["output"][2]["arguments"], "{\"a\":1}");
  EXPECT_EQ(whole["output"][3]["call_id"], "c2");
  EXPECT_EQ(whole["usage"]["total_tokens"], 29);
  EXPECT_EQ(json::parse(store.find("resp_7")->object), whole);
  EXPECT_EQ(json::parse(store.find("resp_7")->conversation)[0]["tool_calls"][1]["id"], "c2");
}

class ServedResponses : public ServedApis {};
class ServedResponseCalls : public ServedCalls {};

TEST_F(ServedResponses, AreStoredContinuedAndDeleted) {
  const json first = post("/v1/responses", R"({"input":"Hi","instructions":"Be brief."})").json();
  EXPECT_EQ(first["status"], "completed") << first;
  EXPECT_EQ(first["output"][0]["content"][0]["text"], kText);
  EXPECT_EQ(first["instructions"], "Be brief.");
  EXPECT_EQ(first["usage"]["total_tokens"],
            first["usage"]["input_tokens"].get<int>() + first["usage"]["output_tokens"].get<int>());
  const std::string id = first["id"];
  EXPECT_EQ(get("/v1/responses/" + id).json(), first);
  const json second = post("/v1/responses",
                           R"({"input":"And?","store":false,"previous_response_id":")" + id + "\"}")
                          .json();
  EXPECT_EQ(second["previous_response_id"], id);
  const json same = post("/v1/responses", R"({"store":false,"input":[
      {"role":"user","content":"Hi"},{"role":"assistant","content":")" +
                                              std::string(kText) + R"("},
      {"role":"user","content":"And?"}]})")
                        .json();
  EXPECT_EQ(second["usage"]["input_tokens"], same["usage"]["input_tokens"]);
  EXPECT_EQ(get("/v1/responses/" + second["id"].get<std::string>()).status, 404);
  const std::string request = "DELETE /v1/responses/" + id + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (const int status : {200, 404}) {
    HttpClient client(server_->port());
    ASSERT_TRUE(client.send(request));
    EXPECT_EQ(client.read().status, status);
  }
  EXPECT_EQ(get("/v1/responses/" + id).status, 404);
  EXPECT_EQ(post("/v1/responses/" + id, "{}").status, 405);
}

TEST_F(ServedResponses, ListTheirInput) {
  const std::string first =
      post("/v1/responses", R"({"input":"Hi","instructions":"Be brief."})").json()["id"];
  const std::string second =
      post("/v1/responses", R"({"input":"And?","previous_response_id":")" + first + "\"}")
          .json()["id"];
  const auto texts = [&](const std::string& path) {
    const json list = get("/v1/responses/" + path).json();
    std::vector<std::string> found;
    for (const json& item : list["data"]) found.push_back(item["content"][0]["text"]);
    return found;
  };
  EXPECT_THAT(texts(first + "/input_items"), ElementsAre("Hi"));
  EXPECT_THAT(texts(second + "/input_items"), ElementsAre("And?", kText, "Hi"));
  EXPECT_THAT(texts(second + "/input_items?order=asc&limit=1"), ElementsAre("Hi"));
  EXPECT_EQ(get("/v1/responses/" + second + "/input_items?limit=x").status, 400);
  EXPECT_EQ(get("/v1/responses/resp_nothing/input_items").status, 404);
  EXPECT_EQ(get("/v1/responses/input_items").status, 404);
}

TEST_F(ServedResponses, CanBeIncompleteOrAStream) {
  const json cut = post("/v1/responses", R"({"input":"Hi","max_output_tokens":3})").json();
  EXPECT_EQ(cut["status"], "incomplete");
  EXPECT_EQ(cut["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(cut["usage"]["output_tokens"], 3);
  const HttpAnswer stream = post("/v1/responses", R"({"input":"Hi","stream":true})");
  EXPECT_THAT(stream.head, HasSubstr("text/event-stream"));
  std::string text;
  for (const json& event : lines_of(stream.body))
    if (event["type"] == "response.output_text.delta") text += event["delta"];
  EXPECT_EQ(text, kText);
  EXPECT_THAT(stream.body, Not(HasSubstr("[DONE]")));
}

TEST_F(ServedResponseCalls, GetTheirResults) {
  const std::string tools = R"(,"tools":[{"type":"function","name":"look","parameters":{}}]})";
  const json first = post("/v1/responses", R"({"input":"Hi")" + tools).json();
  ASSERT_EQ(first["output"].size(), 2u) << first;
  EXPECT_EQ(first["output"][0]["content"][0]["text"], "Let me look.");
  const json& call = first["output"][1];
  EXPECT_EQ(call["type"], "function_call");
  EXPECT_EQ(call["name"], "look");
  EXPECT_EQ(json::parse(call["arguments"].get<std::string>()), (json{{"a", 1}}));
  const json result = {
      {"type", "function_call_output"}, {"call_id", call["call_id"]}, {"output", "42"}};
  const json second = post("/v1/responses", R"({"previous_response_id":)" + first["id"].dump() +
                                                R"(,"input":[)" + result.dump() + "]" + tools)
                          .json();
  EXPECT_EQ(second["status"], "completed") << second;
}

}  // namespace
}  // namespace hearth::testing
