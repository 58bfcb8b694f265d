// The page's Markdown renderer in plain Node: node page_markdown_test.mjs. It is cut out of page.html,
// where it needs nothing of a browser.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

const page = readFileSync(new URL('../../../tools/server/page.html', import.meta.url), 'utf8');
const source = page.match(/\/\/ ---- Markdown -+\n(.*?)\n\/\/ ---- /s)[1];
const markdown = new Function(`${source}\nreturn markdown;`)();

const cases = {
  'plain text': ['one\ntwo\n\nthree', '<p>one<br>two</p><p>three</p>'],
  'emphasis': ['**a** *b* _c_ ~~d~~ a*b', '<p><strong>a</strong> <em>b</em> <em>c</em> <del>d</del> a*b</p>'],
  'code is not emphasized': ['`a * b * c`', '<p><code>a * b * c</code></p>'],
  'headings begin at the third level': ['# Title\n## Part', '<h3>Title</h3><h4>Part</h4>'],
  'lists in lists': ['- a\n  - b\n- c', '<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>'],
  'a list that starts at three': ['3. a\n4. b', '<ol start="3"><li>a</li><li>b</li></ol>'],
  'an item of two lines keeps its dollars': ["- a\n  costs $1 and $&", '<ul><li>a<br>costs $1 and $&#38;</li></ul>'],
  'quotes': ['> a\n> b', '<blockquote><p>a<br>b</p></blockquote>'],
  'tables': ['a | b\n--|--\n1 | 2',
    '<div class="table"><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table></div>'],
  'links': ['[a](https://example.org/x)',
    '<p><a href="https://example.org/x" target="_blank" rel="noopener noreferrer">a</a></p>'],
  'tags are text': ['<script>alert("1")</script>', '<p>&#60;script&#62;alert(&#34;1&#34;)&#60;/script&#62;</p>'],
};
for (const [name, [text, html]] of Object.entries(cases))
  test(name, () => assert.equal(markdown(text), html));

test('a code block keeps its text and escapes it', () => {
  const html = markdown('```cpp\nif (a < b) *p;\n```\nafter');
  assert.match(html, /<span>cpp<\/span>/);
  assert.match(html, /<pre><code>if \(a &#60; b\) \*p;<\/code><\/pre>/);
  assert.match(html, /<p>after<\/p>$/);
});

test('an unfinished code block, as it streams in, is a code block', () =>
  assert.match(markdown('```\nint x'), /<pre><code>int x<\/code><\/pre>/));

test('links lead to web and mail addresses only', () => {
  for (const url of ['javascript:alert(1)', 'data:text/html,x', ' javascript:alert(1)'])
    assert.doesNotMatch(markdown(`[a](${url})`), /href/);
});

test('whatever the text, no tag comes from it', () => {
  const pieces = ['<img src=x onerror=1>', '"', "'", '`', '**', '](', '[a', 'http://a', '|', '\n', '- ', '> ', '#', '\u0001' + '0\u0001', '&'];
  let seed = 1;
  for (let i = 0; i < 3000; ++i) {
    let text = '';
    for (let j = 0; j < 12; ++j) text += pieces[(seed = (seed * 48271) % 2147483647) % pieces.length];
    assert.doesNotMatch(markdown(text), /<img/);
  }
});
