// The page in headless Chromium: node page_test.mjs http://127.0.0.1:PORT. Leaves screenshots,
// page.png and page-phone.png, in the working folder.
import assert from 'node:assert/strict';
import { fromPackages, runTests } from './client_tests.mjs';

const { chromium } = fromPackages('playwright-core');

const address = process.argv[2];
const kModel = 'hearth-storyteller-Q8_0';
const authorization = { headers: { Authorization: 'Bearer test-key' } };
const metrics = async () => (await fetch(address + '/metrics', authorization)).text();
const launch = executablePath => chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
const browser = await launch('chromium').catch(() => launch('/usr/bin/chromium'));
const errors = [], foreign = [];
let context = null, page = null;

// A page of its own, with nothing stored.
async function open(options = {}) {
  await context?.close();
  context = await browser.newContext({ viewport: { width: 1000, height: 760 }, ...options });
  page = await context.newPage();
  page.setDefaultTimeout(90000);  // other tests may have the cores
  page.on('pageerror', error => errors.push(error.message));
  page.on('request', request => { if (!request.url().startsWith(address)) foreign.push(request.url()); });
  await page.goto(address + '/#key=test-key');
  await page.waitForFunction(name => document.querySelector('#model').textContent === name, kModel);
}
const texts = selector => page.$$eval(selector, boxes => boxes.map(box => box.textContent));
const done = () => page.waitForFunction(() => document.querySelector('#send').textContent === 'Send');
async function send(text) {
  await page.fill('#text', text);
  await page.press('#text', 'Enter');
}
async function say(text) {
  await send(text);
  await page.waitForFunction(() => document.querySelector('#send').textContent === 'Stop');
}
// What the page asks the API, from now on; `change` may add fields.
async function spy(change = {}) {
  const asked = [];
  await page.unroute('**/v1/chat/completions').catch(() => {});
  await page.route('**/v1/chat/completions', route => {
    const body = route.request().postDataJSON();
    asked.push(body);
    route.continue({ postData: JSON.stringify({ ...body, ...change }) });
  });
  return asked;
}

const tests = {
  async 'a message is answered, with numbers beside it'() {
    await open();
    const asked = await spy({ max_tokens: 60 });
    assert.equal(await page.getAttribute('#text', 'placeholder'), 'Message ' + kModel);
    assert.ok((await page.textContent('#hello')).includes(kModel));
    await say('Tell me a story about a dog.');
    await done();
    assert.equal((await texts('.user .text'))[0], 'Tell me a story about a dog.');
    assert.ok((await texts('.assistant .text'))[0].length > 50);
    assert.match((await texts('.assistant .actions'))[0], /60 tokens · [\d.]+ tokens\/s · first after/);
    // Sampling is the model's unless somebody changes it.
    assert.deepEqual(Object.keys(asked[0]).sort(), ['messages', 'stream', 'stream_options']);
    await page.screenshot({ path: 'page.png' });
  },

  async 'idle gauges agree'() {
    const read = () => page.evaluate(() => Object.fromEntries(
      ['running', 'waiting', 'used', 'cached', 'free'].map(id => [id, document.getElementById(id).textContent])));
    await page.waitForFunction(() => document.querySelector('#used').textContent === '0');
    await page.waitForFunction(() => document.querySelector('#speed').textContent === '0');
    const shown = await read(), truth = await metrics();
    const gauge = name => truth.match(new RegExp(`^hearth_${name} (\\d+)$`, 'm'))[1];
    assert.deepEqual(shown, { running: '0', waiting: '0', used: '0', cached: gauge('kv_blocks_cached'), free: gauge('kv_blocks_free') });
    assert.equal(gauge('kv_blocks_used'), '0');
    assert.ok(Number(shown.cached) > 0, 'the prompt is still cached');
  },

  async 'an answer can be regenerated, and the last message edited'() {
    const asked = await spy({ max_tokens: 12 });
    await page.click('text=Regenerate');
    await page.waitForFunction(() => document.querySelector('#send').textContent === 'Stop');
    await done();
    assert.equal((await texts('.assistant')).length, 1);
    assert.deepEqual(asked[0].messages.map(message => message.role), ['user']);
    await page.click('.user >> text=Edit');
    assert.equal(await page.inputValue('#text'), 'Tell me a story about a dog.');
    await page.press('#text', 'Escape');
    assert.equal(await page.inputValue('#text'), '');
    await page.press('#text', 'ArrowUp');
    await say('Tell me a story about a cat.');
    await done();
    assert.deepEqual(await texts('.user .text'), ['Tell me a story about a cat.']);
    assert.deepEqual(asked[1].messages, [{ role: 'user', content: 'Tell me a story about a cat.' }]);
  },

  async 'settings are sent, kept and reset'() {
    const asked = await spy({ max_tokens: 4 });
    await page.click('#configure');
    assert.equal(await page.getAttribute('[name=temperature]', 'placeholder'), '0.7');
    assert.equal(await page.getAttribute('[name=min_p]', 'placeholder'), '0.05');
    await page.fill('[name=temperature]', '0');
    await page.fill('[name=seed]', '7');
    await page.fill('[name=system]', 'Be brief.');
    await page.click('text=Done');
    await page.waitForFunction(() => localStorage.getItem('hearth.settings')?.includes('brief'));
    await say('Again.');
    await done();
    assert.equal(asked[0].temperature, 0);
    assert.equal(asked[0].seed, 7);
    assert.deepEqual(asked[0].messages[0], { role: 'system', content: 'Be brief.' });
    assert.ok(!('top_p' in asked[0]) && !('system' in asked[0]));
    await page.reload();
    await page.click('#configure');
    assert.equal(await page.inputValue('[name=seed]'), '7');
    await page.click('text=Use defaults');
    await page.click('text=Done');
    await page.waitForFunction(() => localStorage.getItem('hearth.settings') === '{}');
  },

  async 'conversations are kept, opened and deleted'() {
    await page.waitForSelector('#chats li');
    assert.equal((await texts('#chats .open')).length, 1);
    await page.click('#chats .open');
    assert.equal((await texts('.user')).length, 2);
    await page.click('#new');
    assert.equal((await texts('.user')).length, 0);
    await spy({ max_tokens: 4 });
    await say('A second one.');
    await done();
    assert.deepEqual(await texts('#chats .open'), ['A second one.', 'Tell me a story about a cat.']);
    await page.click('#chats li:nth-child(2) .delete');
    assert.deepEqual(await texts('#chats .open'), ['A second one.']);
    assert.equal((await texts('.user')).length, 1);
    await page.click('#chats .delete');
    assert.equal((await texts('#chats .open')).length, 0);
    assert.equal((await texts('.user')).length, 0);
    await page.reload();
    await page.waitForSelector('#hello');
    assert.equal((await texts('#chats .open')).length, 0);
  },

  async 'an answer can be stopped'() {
    const cancelled = async () => Number((await metrics()).match(/finished_total{reason="cancelled"} (\d+)/)[1]);
    const before = await cancelled();
    await spy({ max_tokens: 700, ignore_eos: true });
    await page.fill('#text', 'Tell me another.');
    // Stopped from inside the page at its third growth: the model may be quicker than this test.
    await page.evaluate(() => {
      window.growths = 0;
      new MutationObserver((_, observer) => {
        if (!document.querySelector('.assistant .text')?.textContent || ++window.growths < 3) return;
        observer.disconnect();
        window.label = document.querySelector('#send').textContent;
        document.querySelector('#send').click();
      }).observe(document.querySelector('#talk'), { childList: true, subtree: true });
    });
    await page.click('#send');
    await page.waitForFunction(() => window.label === 'Stop');
    await done();
    const stopped = await texts('.assistant .text');
    await page.waitForTimeout(300);
    assert.deepEqual(await texts('.assistant .text'), stopped);
    assert.match((await texts('.assistant .actions'))[0], /stopped/);
    assert.equal(await cancelled(), before + 1);
    assert.match(await metrics(), /hearth_requests_running 0\n/);
  },

  async 'an error is shown and can be tried again'() {
    await page.click('#new');
    await page.unroute('**/v1/chat/completions');
    await page.route('**/v1/chat/completions', route => route.fulfill({
      status: 503, contentType: 'application/json', body: '{"error":{"message":"<b>no room</b>"}}' }));
    await send('Hello?');
    await page.waitForSelector('.error');
    assert.deepEqual(await texts('.error'), ['<b>no room</b>']);
    await spy({ max_tokens: 4 });
    await page.click('text=Try again');
    await page.waitForSelector('.assistant');
    await done();
    assert.equal((await texts('.error')).length, 0);
  },

  async 'Markdown is rendered, and nothing in it runs'() {
    await page.click('#new');
    await page.unroute('**/v1/chat/completions');
    const answer = '# Title\n**bold** *it* `a<b` [site](https://example.org/a_b_c) [bad](javascript:alert(1))\n\n' +
      '- one\n  - inner\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted\n\n```js\nif (a < b) c();\n```\n' +
      '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\n' +
      '[x](https://y" onmouseover="window.hacked=1) `<i>`';
    await page.route('**/v1/chat/completions', route => route.fulfill({ status: 200, contentType: 'text/event-stream',
      body: `data: ${JSON.stringify({ choices: [{ delta: { content: answer } }] })}\n\ndata: [DONE]\n\n` }));
    await send('Show me.');
    await page.waitForSelector('.assistant h3');
    await done();
    const seen = await page.$eval('.assistant .text', box => ({
      title: box.querySelector('h3').textContent, bold: box.querySelector('strong').textContent,
      italic: box.querySelector('em').textContent, code: box.querySelector('p code').textContent,
      links: [...box.querySelectorAll('a')].map(link => link.href), items: box.querySelectorAll('ul li').length,
      nested: box.querySelectorAll('li li').length, cells: box.querySelectorAll('td, th').length,
      quote: box.querySelector('blockquote').textContent, block: box.querySelector('pre code').textContent,
      elements: [...new Set([...box.querySelectorAll('*')].map(item => item.localName))].sort(),
      attributes: [...new Set([...box.querySelectorAll('*')].flatMap(item => item.getAttributeNames()))].sort() }));
    assert.equal(seen.title, 'Title');
    assert.equal(seen.bold, 'bold');
    assert.equal(seen.italic, 'it');
    assert.equal(seen.code, 'a<b');
    assert.ok(seen.links.every(link => /^https:\/\/(example\.org\/a_b_c|y\/?)$/.test(link)), seen.links.join());
    assert.equal(seen.items, 3);
    assert.equal(seen.nested, 1);
    assert.equal(seen.cells, 4);
    assert.equal(seen.quote, 'quoted');
    assert.equal(seen.block, 'if (a < b) c();');
    assert.ok(!seen.elements.includes('img') && !seen.elements.includes('script') && !seen.elements.includes('i'));
    assert.deepEqual(seen.attributes, ['class', 'href', 'rel', 'target']);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.click('.copy-code');
    await page.waitForFunction(() => document.querySelector('.copy-code').textContent === 'Copied');
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'if (a < b) c();');
  },

  async 'reasoning is folded, and calls are boxes'() {
    await open();
    const deltas = [{ role: 'assistant', content: '' }, { reasoning_content: 'I need <b>' }, { reasoning_content: ' rain.' },
                    { content: 'I look.' },
                    { tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'weather', arguments: '' } }] },
                    { tool_calls: [{ index: 0, function: { arguments: '{"city": ' } }] },
                    { tool_calls: [{ index: 0, function: { arguments: '"Paris"}' } }] }];
    await page.route('**/v1/chat/completions', route => route.fulfill({
      contentType: 'text/event-stream',
      body: deltas.map(delta => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`).join('') +
        'data: [DONE]\n\n' }));
    await send('Weather?');
    await page.waitForSelector('.call');
    await done();
    assert.deepEqual(await texts('.assistant .text'), ['I look.']);
    assert.deepEqual(await texts('.call'), ['weather({"city": "Paris"})']);
    assert.deepEqual(await texts('.reasoning div'), ['I need <b> rain.']);
    assert.ok(!(await page.isVisible('.reasoning div')), 'it is folded');
    await page.click('.reasoning summary');
    await page.waitForSelector('.reasoning div', { state: 'visible' });
    // All of it is kept.
    await page.reload();
    await page.click('#chats .open');
    await page.waitForSelector('.call');
    assert.deepEqual(await texts('.reasoning div'), ['I need <b> rain.']);
  },

  async 'it works on a phone, in the dark'() {
    await open({ viewport: { width: 390, height: 780 }, colorScheme: 'dark', hasTouch: true, isMobile: true });
    await spy({ max_tokens: 30 });
    await page.fill('#text', 'Tell me a story about a bee.');
    await page.tap('#send');
    await page.waitForSelector('.assistant');
    await done();
    assert.ok(!(await page.isVisible('#new')), 'the conversations are out of the way');
    await page.tap('#menu');
    await page.waitForSelector('#new', { state: 'visible' });
    await page.tap('#new');
    await page.waitForSelector('#hello');
    assert.ok(!(await page.isVisible('#new')));
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, 'nothing sticks out: ' + width);
    await page.screenshot({ path: 'page-phone.png' });
  },

  async 'nothing failed or came from elsewhere'() {
    assert.deepEqual(errors, []);
    assert.deepEqual(foreign, []);
  },
};

await runTests(tests, () => browser.close());
