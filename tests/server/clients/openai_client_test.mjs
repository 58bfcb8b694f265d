// The official client against a running server: node openai_client_test.mjs http://127.0.0.1:PORT
import assert from 'node:assert/strict';
import { fromPackages, runTests } from './client_tests.mjs';

const OpenAI = fromPackages('openai');

const address = process.argv[2];
const client = new OpenAI({ baseURL: address + '/v1', apiKey: 'test-key', maxRetries: 0 });
const ask = [{ role: 'user', content: 'Tell me a story about a dog.' }];
const metric = async name => {
  const response = await fetch(address + '/metrics', { headers: { Authorization: 'Bearer test-key' } });
  return Number((await response.text()).split('\n').find(line => line.startsWith(name + ' ')).split(' ')[1]);
};

const tests = {
  async 'list models'() {
    const models = [];
    for await (const model of client.models.list()) models.push(model.id);
    assert.equal(models.length, 1);
  },

  async 'chat'() {
    const reply = await client.chat.completions.create({ model: 'any', messages: ask, max_completion_tokens: 12 });
    assert.equal(reply.object, 'chat.completion');
    assert.equal(reply.choices[0].message.role, 'assistant');
    assert.ok(reply.choices[0].message.content.length > 0);
    assert.ok(['stop', 'length'].includes(reply.choices[0].finish_reason));
    assert.ok(reply.usage.prompt_tokens > 0 && reply.usage.completion_tokens <= 12);
    assert.equal(reply.usage.total_tokens, reply.usage.prompt_tokens + reply.usage.completion_tokens);
    assert.equal(typeof reply.usage.prompt_tokens_details.cached_tokens, 'number');
  },

  async 'completions'() {
    const reply = await client.completions.create(
      { model: 'any', prompt: 'Once upon a time', max_tokens: 8, temperature: 0, logprobs: 2 });
    assert.equal(reply.object, 'text_completion');
    assert.equal(reply.choices[0].finish_reason, 'length');
    assert.equal(reply.choices[0].logprobs.tokens.join(''), reply.choices[0].text);
  },

  async 'a stream says what a whole reply says'() {
    const asked = { model: 'any', messages: ask, max_tokens: 24, temperature: 0 };
    const whole = await client.chat.completions.create(asked);
    const stream = await client.chat.completions.create(
      { ...asked, stream: true, stream_options: { include_usage: true } });
    let text = '', finish = null, usage = null, chunks = 0;
    for await (const chunk of stream) {
      ++chunks;
      text += chunk.choices[0]?.delta.content ?? '';
      finish = chunk.choices[0]?.finish_reason ?? finish;
      usage = chunk.usage ?? usage;
    }
    assert.ok(chunks > 10);
    assert.equal(text, whole.choices[0].message.content);
    assert.equal(finish, whole.choices[0].finish_reason);
    assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
  },

  async 'the stream helper puts a message together'() {
    const runner = client.chat.completions.stream({ model: 'any', messages: ask, max_tokens: 10, n: 2, seed: 4 });
    const final = await runner.finalChatCompletion();
    assert.equal(final.choices.length, 2);
    assert.ok(final.choices.every(choice => choice.message.role === 'assistant' && choice.message.content));
  },

  async 'abort in mid-stream'() {
    const cancelled = 'hearth_requests_finished_total{reason="cancelled"}';
    const before = await metric(cancelled);
    const stream = await client.chat.completions.create(
      { model: 'any', messages: ask, max_tokens: 900, stream: true, ignore_eos: true });
    let chunks = 0;
    for await (const chunk of stream) {
      if (++chunks === 5) stream.controller.abort();
      assert.ok(chunk.choices);
    }
    for (let i = 0; i < 400 && (await metric(cancelled)) === before; ++i)
      await new Promise(resolve => setTimeout(resolve, 5));
    assert.equal(await metric(cancelled), before + 1);
    assert.equal(await metric('hearth_requests_running'), 0);
  },

  async 'n=3'() {
    const reply = await client.chat.completions.create({ model: 'any', messages: ask, n: 3, max_tokens: 12, seed: 1 });
    assert.deepEqual(reply.choices.map(choice => choice.index), [0, 1, 2]);
    assert.ok(new Set(reply.choices.map(choice => choice.message.content)).size > 1);
  },

  async 'logprobs'() {
    const reply = await client.chat.completions.create(
      { model: 'any', messages: ask, max_tokens: 6, temperature: 0, logprobs: true, top_logprobs: 3 });
    const tokens = reply.choices[0].logprobs.content;
    assert.equal(tokens.length, 6);
    for (const token of tokens) {
      assert.equal(token.top_logprobs.length, 3);
      assert.ok(token.logprob <= 0);
      // The most likely token is what temperature 0 takes.
      assert.equal(token.token, token.top_logprobs[0].token);
      assert.equal(Buffer.from(token.bytes).toString(), token.token);
    }
  },

  async 'seed'() {
    const text = async seed => (await client.chat.completions.create(
      { model: 'any', messages: ask, max_tokens: 24, seed })).choices[0].message.content;
    const first = await text(11);
    assert.equal(await text(11), first);
    assert.notEqual(await text(12), first);
  },

  async 'stop strings that span tokens'() {
    const asked = { model: 'any', prompt: 'Once upon a time', max_tokens: 30, temperature: 0 };
    const text = (await client.completions.create(asked)).choices[0].text;
    const stop = text.slice(text.indexOf(' ', 5) - 2, text.indexOf(' ', 5) + 6);
    const reply = await client.completions.create({ ...asked, stop: ['never said', stop] });
    assert.equal(reply.choices[0].text, text.slice(0, text.indexOf(stop)));
    assert.equal(reply.choices[0].finish_reason, 'stop');
  },

  async 'response_format'() {
    const schema = {
      type: 'object', additionalProperties: false, required: ['name', 'legs', 'tame'],
      properties: { name: { type: 'string', maxLength: 20 }, legs: { type: 'integer', minimum: 0, maximum: 8 },
        tame: { type: 'boolean' } } };
    const asked = { model: 'any', messages: ask, max_tokens: 400, seed: 5,
      response_format: { type: 'json_schema', json_schema: { name: 'animal', strict: true, schema } } };
    const reply = await client.chat.completions.create({ ...asked, n: 3, logprobs: true, top_logprobs: 2 });
    for (const choice of reply.choices) {
      assert.equal(choice.finish_reason, 'stop');
      const animal = JSON.parse(choice.message.content);
      assert.deepEqual(Object.keys(animal), ['name', 'legs', 'tame']);
      assert.ok([...animal.name].length <= 20 && animal.legs >= 0 && animal.legs <= 8);
      assert.equal(typeof animal.tame, 'boolean');
      assert.ok(choice.logprobs.content.some(token => token.logprob === 0), 'keys leave no choice');
    }
    // The client can parse by itself, and a stream says the same.
    const parsed = await client.chat.completions.parse(asked);
    assert.equal(typeof parsed.choices[0].message.parsed.tame, 'boolean');
    const final = await client.chat.completions.stream(asked).finalChatCompletion();
    assert.deepEqual(JSON.parse(final.choices[0].message.content), parsed.choices[0].message.parsed);
    const free = await client.chat.completions.create(
      { ...asked, max_tokens: 40, response_format: { type: 'json_object' } });
    assert.match(free.choices[0].message.content, /^\s{0,8}\{/);
    const picked = await client.chat.completions.create(
      { model: 'any', messages: ask, structured_outputs: { choice: ['red', 'green'] } });
    assert.ok(['red', 'green'].includes(picked.choices[0].message.content));
    assert.ok(await metric('hearth_forced_tokens_total') > 0);
  },

  async 'harmless fields are accepted'() {
    const reply = await client.chat.completions.create({
      model: 'any', messages: [{ role: 'developer', content: 'Be brief.' }, ...ask], max_tokens: 2, user: 'u',
      metadata: { a: 'b' }, store: false, service_tier: 'auto', parallel_tool_calls: true, tool_choice: 'none',
      response_format: { type: 'text' }, modalities: ['text'], safety_identifier: 's', prompt_cache_key: 'k' });
    // An answer goes back as it came.
    const messages = [...ask, reply.choices[0].message, { role: 'user', content: [{ type: 'text', text: 'More.' }] }];
    const second = await client.chat.completions.create({ model: 'any', messages, max_tokens: 2 });
    assert.equal(second.choices.length, 1);
  },

  async 'a function is called if that is required'() {
    const tools = ['red', 'blue'].map(name => ({ type: 'function', function: { name, parameters: {
      type: 'object', properties: { shade: { enum: ['light', 'dark'] } }, required: ['shade'],
      additionalProperties: false } } }));
    const asked = { model: 'any', messages: ask, tools, parallel_tool_calls: false, max_tokens: 200 };
    for (const tool_choice of ['required', { type: 'function', function: { name: 'blue' } }]) {
      const choice = (await client.chat.completions.create({ ...asked, tool_choice })).choices[0];
      assert.equal(choice.finish_reason, 'tool_calls');
      const made = choice.message.tool_calls[0].function;
      assert.ok(tool_choice === 'required' ? ['red', 'blue'].includes(made.name) : made.name === 'blue');
      assert.ok(['light', 'dark'].includes(JSON.parse(made.arguments).shade));
    }
    const final = await client.chat.completions.stream({ ...asked, tool_choice: 'required' }).finalChatCompletion();
    assert.ok(JSON.parse(final.choices[0].message.tool_calls[0].function.arguments).shade);
  },

  async 'fields that would change the answer are refused by name'() {
    const refused = (param, fields, code = 'unsupported_parameter') => assert.rejects(
      client.chat.completions.create({ model: 'any', messages: ask, max_tokens: 2, ...fields }),
      error => error instanceof OpenAI.BadRequestError && error.param === param && error.code === code);
    await refused('functions', { functions: [{ name: 'f', parameters: {} }] });
    await refused('response_format.json_schema.schema', { response_format: { type: 'json_schema', json_schema: {
      name: 'tags', schema: { type: 'array', items: { type: 'string' }, uniqueItems: true } } } }, 'unsupported_schema');
    await refused('temprature', { temprature: 1 }, 'unknown_parameter');
    await refused('messages[0].content[0]', { messages: [{ role: 'user', content: [
      { type: 'image_url', image_url: { url: 'data:image/png;base64,' } }] }] }, 'unsupported_content');
    await refused('audio', { audio: { voice: 'alloy', format: 'wav' } });
  },

  async 'errors by status'() {
    const fails = (status, promise) => assert.rejects(promise, error => error.status === status);
    const chat = more => client.chat.completions.create({ model: 'any', messages: ask, max_tokens: 2, ...more });
    await assert.rejects(chat({ temperature: 'hot' }), error =>
      error instanceof OpenAI.BadRequestError && error.param === 'temperature' &&
      error.type === 'invalid_request_error');
    await fails(400, chat({ messages: [] }));
    await fails(400, chat({ n: 1000 }));
    await fails(413, chat({ messages: [{ role: 'user', content: 'x'.repeat(9 << 20) }] }));
    await fails(404, client.moderations.create({ input: 'x' }));
    const stranger = new OpenAI({ baseURL: address + '/v1', apiKey: 'wrong', maxRetries: 0 });
    await assert.rejects(stranger.models.list(), error =>
      error instanceof OpenAI.AuthenticationError && error.code === 'invalid_api_key');
  },
};

await runTests(tests);
