// The tool, streaming-tool and reasoning examples of OpenAI's client, and the tool examples of
// Ollama's, against a model that gives prepared replies: node openai_tools_test.mjs SCRIPTED_SERVER
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fromPackages, runTests } from './client_tests.mjs';

const OpenAI = fromPackages('openai');
const { Ollama } = fromPackages('ollama');

const call = (name, args) => `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;
const tools = [{
  type: 'function',
  function: {
    name: 'get_weather', description: 'Current weather of a city.', strict: true,
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'],
                  additionalProperties: false },
  },
}];
const messages = [{ role: 'developer', content: 'Use tools.' }, { role: 'user', content: 'Weather in Paris?' }];
const asked = { model: 'any', messages, tools };

// Runs `use` with a client of a model that gives this reply, and the server's address.
async function withReply(reply, use, template) {
  const server = spawn(process.argv[2], template ? [reply, template] : [reply],
                       { stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    const address = String(await once(server.stdout, 'data')).trim();
    await use(new OpenAI({ baseURL: address + '/v1', apiKey: 'none', maxRetries: 0 }), address);
  } finally {
    server.stdin.end();
    await once(server, 'exit');
  }
}

const paris = call('get_weather', '{"city": "Paris"}');

const tests = {
  async 'a function is called with Ollama\'s client, whole and in a stream'() {
    await withReply('Let me look.\n' + paris, async (_, address) => {
      const ollama = new Ollama({ host: address });
      const question = { model: 'any', messages: [{ role: 'user', content: 'Weather in Paris?' }], tools };
      const { message } = await ollama.chat(question);
      assert.equal(message.content, 'Let me look.');
      assert.deepEqual(message.tool_calls[0].function, { name: 'get_weather', arguments: { city: 'Paris' } });
      const result = { role: 'tool', content: '21 degrees', tool_name: 'get_weather' };
      const second = await ollama.chat({ ...question, messages: [...question.messages, message, result] });
      assert.ok(second.done);
      const calls = [];
      for await (const part of await ollama.chat({ ...question, stream: true }))
        calls.push(...part.message.tool_calls ?? []);
      assert.deepEqual(calls.map(call => call.function), [message.tool_calls[0].function]);
    });
  },

  async 'a function is called, and its result goes back'() {
    await withReply('Let me look.\n' + paris, async client => {
      const reply = await client.chat.completions.create(asked);
      const { message, finish_reason } = reply.choices[0];
      assert.equal(finish_reason, 'tool_calls');
      assert.equal(message.content, 'Let me look.');
      assert.equal(message.tool_calls.length, 1);
      assert.equal(message.tool_calls[0].type, 'function');
      assert.equal(message.tool_calls[0].function.name, 'get_weather');
      assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), { city: 'Paris' });
      const result = { role: 'tool', tool_call_id: message.tool_calls[0].id, content: '{"temperature": 21}' };
      const second = await client.chat.completions.create({ ...asked, messages: [...messages, message, result] });
      assert.ok(second.usage.prompt_tokens > reply.usage.prompt_tokens);
    });
  },

  async 'the tools helper runs the function'() {
    await withReply(paris, async client => {
      const cities = [];
      const runner = client.chat.completions.runTools({
        model: 'any', messages,
        tools: [{ type: 'function', function: {
          ...tools[0].function, parse: JSON.parse,
          function: ({ city }) => { cities.push(city); return '21'; } } }],
      }, { maxChatCompletions: 2 });
      await runner.done().catch(() => {});
      assert.deepEqual([...new Set(cities)], ['Paris']);
    });
  },

  async 'two calls in a stream'() {
    const reply = paris + '\n' + call('get_weather', '{"city": "Oslo"}');
    await withReply(reply, async client => {
      const calls = [];
      let finish = null;
      for await (const chunk of await client.chat.completions.create({ ...asked, stream: true })) {
        const choice = chunk.choices[0];
        finish = choice.finish_reason ?? finish;
        for (const piece of choice.delta.tool_calls ?? []) {
          if (piece.id) {
            // The first delta of a call: everything but arguments.
            assert.equal(piece.index, calls.length);
            assert.deepEqual(Object.keys(piece).sort(), ['function', 'id', 'index', 'type']);
            assert.deepEqual(piece.function, { name: 'get_weather', arguments: '' });
            calls.push('');
          } else {
            assert.deepEqual(Object.keys(piece).sort(), ['function', 'index']);
            assert.deepEqual(Object.keys(piece.function), ['arguments']);
            calls[piece.index] += piece.function.arguments;
          }
        }
      }
      assert.equal(finish, 'tool_calls');
      assert.deepEqual(calls.map(text => JSON.parse(text).city), ['Paris', 'Oslo']);

      const runner = client.chat.completions.stream(asked);
      const final = await runner.finalChatCompletion();
      assert.deepEqual(final.choices[0].message.tool_calls.map(made => JSON.parse(made.function.arguments).city),
                       ['Paris', 'Oslo']);
      assert.equal(new Set(final.choices[0].message.tool_calls.map(made => made.id)).size, 2);
    });
  },

  async 'arguments that are not JSON come as text'() {
    await withReply(call('get_weather', '{city: Paris}'), async client => {
      // A schema that cannot be enforced, or the arguments would be kept inside it.
      const loose = { type: 'function', function: { name: 'get_weather', parameters: {
        type: 'object', properties: { tags: { type: 'array', items: { type: 'string' }, uniqueItems: true } } } } };
      const { message } = (await client.chat.completions.create({ ...asked, tools: [loose] })).choices[0];
      assert.equal(message.tool_calls[0].function.arguments.trim(), '{city: Paris}}');
      assert.match(message.tool_calls[0].warning, /not a JSON object/);
    });
  },

  async 'with tool_choice none a call is text'() {
    await withReply(paris, async client => {
      const { message, finish_reason } =
        (await client.chat.completions.create({ ...asked, tool_choice: 'none' })).choices[0];
      assert.equal(finish_reason, 'stop');
      assert.equal(message.content, paris);
      assert.equal(message.tool_calls, undefined);
    });
  },

  async 'reasoning comes beside the content'() {
    const template = '{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: ' +
      '{% if reasoning_effort == "high" %}<think>{% endif %}';
    await withReply('17 * 3 = 51\n</think>\n\nIt is 51.', async client => {
      const ask = { model: 'any', messages: [{ role: 'user', content: '17 * 3?' }], reasoning_effort: 'high' };
      const { message } = (await client.chat.completions.create(ask)).choices[0];
      assert.equal(message.reasoning_content, '17 * 3 = 51');
      assert.equal(message.content, 'It is 51.');
      let reasoning = '', content = '';
      for await (const chunk of await client.chat.completions.create({ ...ask, stream: true })) {
        reasoning += chunk.choices[0].delta.reasoning_content ?? '';
        content += chunk.choices[0].delta.content ?? '';
      }
      assert.equal(reasoning, message.reasoning_content);
      assert.equal(content, message.content);
    }, template);
  },
};

await runTests(tests);
