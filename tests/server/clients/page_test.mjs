// The page in headless Chromium: node page_test.mjs http://127.0.0.1:PORT. Leaves a screenshot,
// page.png, in the working folder.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(process.cwd() + '/');
const { chromium } = require('playwright-core');

const address = process.argv[2];
const browser = await chromium.launch({ executablePath: 'chromium', args: ['--no-sandbox', '--disable-gpu'] })
  .catch(async () => chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] }));
try {
  const page = await browser.newPage({ viewport: { width: 900, height: 700 } });
  page.setDefaultTimeout(90000);  // other tests may have the cores
  const errors = [], foreign = [];
  page.on('pageerror', error => errors.push(error.message));
  page.on('request', request => { if (!request.url().startsWith(address)) foreign.push(request.url()); });
  await page.goto(address + '/#key=test-key');
  await page.waitForFunction(() => document.querySelector('#model').textContent.includes('storyteller'));

  // A message is answered to its end.
  await page.fill('#text', 'Tell me a story about a dog.');
  await page.press('#text', 'Enter');
  await page.waitForSelector('.user');
  await page.waitForFunction(() => document.querySelector('#send').textContent === 'Send'
    && document.querySelector('.assistant').textContent.length > 100);
  assert.ok(await page.evaluate(() => Number(document.querySelector('#speed').textContent) > 0), 'live numbers');
  await page.screenshot({ path: 'page.png' });

  // One that does not end by itself streams, and can be stopped.
  await page.route('**/v1/chat/completions', route => route.continue({
    postData: JSON.stringify({ ...route.request().postDataJSON(), max_tokens: 700, ignore_eos: true }) }));
  await page.fill('#text', 'Tell me another.');
  // Stopped from inside the page at its third growth: the model may be quicker than this test.
  await page.evaluate(() => {
    window.growths = 0;
    new MutationObserver((_, observer) => {
      if (!document.querySelectorAll('.assistant')[1]?.textContent || ++window.growths < 3) return;
      observer.disconnect();
      window.label = document.querySelector('#send').textContent;
      document.querySelector('#send').click();
    }).observe(document.querySelector('#talk'), { childList: true, subtree: true });
  });
  await page.click('#send');
  await page.waitForFunction(() => window.label === 'Stop');
  const text = () => page.evaluate(() => document.querySelectorAll('.assistant')[1].textContent);
  await page.waitForFunction(() => document.querySelector('#send').textContent === 'Send');
  const stopped = await text();
  await page.waitForTimeout(300);
  assert.equal(await text(), stopped);
  const metrics = await (await fetch(address + '/metrics', { headers: { Authorization: 'Bearer test-key' } })).text();
  assert.match(metrics, /hearth_requests_running 0\n/);
  assert.match(metrics, /hearth_requests_finished_total{reason="cancelled"} 1\n/);

  assert.deepEqual(errors, []);
  assert.deepEqual(foreign, []);
  console.log('ok: the page chats, streams and stops');
} finally {
  await browser.close();
}
