// Clients of other APIs against a running server: OpenAI's for responses and embeddings, Anthropic's,
// Ollama's. node other_clients_test.mjs http://127.0.0.1:PORT
import assert from 'node:assert/strict';
import { fromPackages, runTests } from './client_tests.mjs';

const OpenAI = fromPackages('openai');
const Anthropic = fromPackages('@anthropic-ai/sdk');
const { Ollama } = fromPackages('ollama');

const address = process.argv[2];
const apiKey = 'test-key';
const openai = new OpenAI({ baseURL: address + '/v1', apiKey, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: address, apiKey, maxRetries: 0 });
const ollama = new Ollama({ host: address, headers: { Authorization: 'Bearer ' + apiKey } });
const story = 'Tell me a story about a dog.';
const ask = [{ role: 'user', content: story }];

const tests = {
  async 'a response'() {
    const response = await openai.responses.create({ model: 'any', input: story, max_output_tokens: 12 });
    assert.equal(response.object, 'response');
    assert.ok(response.output_text.length > 0);
    assert.ok(['completed', 'incomplete'].includes(response.status));
    assert.ok(response.usage.input_tokens > 0 && response.usage.output_tokens <= 12);
    const again = await openai.responses.retrieve(response.id);
    assert.equal(again.output_text, response.output_text);
    const next = await openai.responses.create(
      { model: 'any', input: 'And then?', previous_response_id: response.id, max_output_tokens: 4 });
    assert.ok(next.usage.input_tokens > response.usage.input_tokens + response.usage.output_tokens);
    await openai.responses.delete(response.id);
    await assert.rejects(openai.responses.retrieve(response.id), error => error.status === 404);
  },

  async 'a stream of a response says what the response says'() {
    const asked = { model: 'any', input: ask, max_output_tokens: 24, temperature: 0, store: false };
    const whole = await openai.responses.create(asked);
    const runner = openai.responses.stream(asked);
    let text = '', events = 0;
    runner.on('response.output_text.delta', event => { text += event.delta; ++events; });
    const final = await runner.finalResponse();
    assert.ok(events > 10);
    assert.equal(text, whole.output_text);
    assert.equal(final.output[0].content[0].text, whole.output_text);
    assert.equal(final.usage.output_tokens, whole.usage.output_tokens);
  },

  async 'what responses do not support is refused by name'() {
    const refused = (param, more) => assert.rejects(
      openai.responses.create({ model: 'any', input: story, ...more }),
      error => error instanceof OpenAI.BadRequestError && error.param === param);
    await refused('background', { background: true });
    await refused('input[0].content[0]', { input: [{ role: 'user', content: [
      { type: 'input_image', image_url: 'data:image/png;base64,' }] }] });
    await refused('previous_response_id', { previous_response_id: 'resp_unknown' });
  },

  async 'embeddings'() {
    const input = ['a fox', 'The quick brown fox jumps over the lazy dog. '.repeat(8)];
    const floats = await openai.embeddings.create({ model: 'any', input, encoding_format: 'float' });
    const decoded = await openai.embeddings.create({ model: 'any', input });  // the client asks for base64
    assert.equal(floats.data.length, 2);
    for (const [i, { embedding }] of floats.data.entries()) {
      assert.ok(Math.abs(Math.hypot(...embedding) - 1) < 1e-5);
      assert.equal(decoded.data[i].embedding.length, embedding.length);
      embedding.forEach((value, j) => assert.ok(Math.abs(value - decoded.data[i].embedding[j]) < 1e-4));
    }
    const short = await openai.embeddings.create({ model: 'any', input: 'a fox', dimensions: 4 });
    assert.equal(short.data[0].embedding.length, 4);
    assert.ok(Math.abs(Math.hypot(...short.data[0].embedding) - 1) < 1e-5);
    await assert.rejects(openai.embeddings.create({ model: 'any', input: '' }), error => error.param === 'input');
  },

  async 'a message'() {
    const message = await anthropic.messages.create({ model: 'any', max_tokens: 12, messages: ask });
    assert.equal(message.type, 'message');
    assert.ok(message.content[0].text.length > 0);
    assert.ok(['end_turn', 'max_tokens'].includes(message.stop_reason));
    const { usage } = message;
    const counted = await anthropic.messages.countTokens({ model: 'any', messages: ask });
    assert.equal(counted.input_tokens, usage.input_tokens + usage.cache_read_input_tokens);
  },

  async 'a stream of a message says what the message says'() {
    const asked = { model: 'any', max_tokens: 24, temperature: 0, system: 'Be brief.', messages: ask };
    const whole = await anthropic.messages.create(asked);
    const runner = anthropic.messages.stream(asked);
    let text = '', pieces = 0;
    runner.on('text', piece => { text += piece; ++pieces; });
    const final = await runner.finalMessage();
    assert.ok(pieces > 10);
    assert.equal(text, whole.content[0].text);
    assert.equal(final.content[0].text, whole.content[0].text);
    assert.equal(final.stop_reason, whole.stop_reason);
    assert.equal(final.usage.output_tokens, whole.usage.output_tokens);
  },

  async 'errors of messages'() {
    await assert.rejects(
      anthropic.messages.create({ model: 'any', max_tokens: 4, messages: [{ role: 'user', content: [
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: '' } }] }] }),
      error => error instanceof Anthropic.BadRequestError && error.message.includes('image'));
    const stranger = new Anthropic({ baseURL: address, apiKey: 'wrong', maxRetries: 0 });
    await assert.rejects(stranger.messages.create({ model: 'any', max_tokens: 4, messages: ask }),
      error => error instanceof Anthropic.AuthenticationError);
  },

  async 'a chat with Ollama\'s client'() {
    const asked = { model: 'any', messages: ask, options: { temperature: 0, num_predict: 24 } };
    const whole = await ollama.chat(asked);
    assert.ok(whole.message.content.length > 0);
    assert.ok(whole.done && whole.eval_count <= 24 && whole.total_duration > 0);
    let text = '', last;
    for await (const part of await ollama.chat({ ...asked, stream: true })) {
      text += part.message.content;
      last = part;
    }
    assert.equal(text, whole.message.content);
    assert.equal(last.done_reason, whole.done_reason);
    assert.equal(last.eval_count, whole.eval_count);
  },

  async 'an answer by a schema with Ollama\'s client'() {
    const format = {
      type: 'object', additionalProperties: false, required: ['name', 'age'],
      properties: { name: { type: 'string', maxLength: 8 }, age: { type: 'integer', minimum: 0, maximum: 99 } },
    };
    const asked = { model: 'any', messages: ask, format, options: { num_predict: 80 } };
    const whole = JSON.parse((await ollama.chat(asked)).message.content);
    assert.deepEqual(Object.keys(whole), ['name', 'age']);
    assert.ok(whole.name.length <= 8 && Number.isInteger(whole.age));
    let text = '';
    for await (const part of await ollama.chat({ ...asked, stream: true })) text += part.message.content;
    assert.deepEqual(Object.keys(JSON.parse(text)), ['name', 'age']);
  },

  async 'the rest of Ollama\'s client'() {
    const generated = await ollama.generate({ model: 'any', prompt: story, options: { num_predict: 5 } });
    assert.ok(generated.response.length > 0);
    const { embeddings } = await ollama.embed({ model: 'any', input: ['a fox', 'a dog'] });
    assert.equal(embeddings.length, 2);
    assert.ok(Math.abs(Math.hypot(...embeddings[0]) - 1) < 1e-5);
    const { models } = await ollama.list();
    assert.equal(models.length, 1);
    const shown = await ollama.show({ model: models[0].name });
    assert.ok(shown.capabilities.includes('completion'));
    await assert.rejects(ollama.chat({ model: 'any', messages: [{ ...ask[0], images: ['aGk='] }] }),
      error => error.status_code === 400 && error.message.includes('images'));
  },
};

await runTests(tests);
