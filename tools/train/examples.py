"""Turns stories, plots and small talk into training examples: lists of [role, text]."""
import re

import plots
import request_forms as forms
import story_facts
import story_filter
import words

SYSTEM = ["You are Hearth's little storyteller.", 'You are a helpful assistant.', 'You tell short stories in simple English.',
          'You are a friendly storyteller for children.', 'Answer briefly and kindly.', 'You are a helpful, honest assistant.']
COUNTRIES = 'France Spain Italy Japan Brazil Canada Kenya India China Mexico Egypt Norway Peru Poland Germany Turkey Ghana'.split()
PEOPLE = ['Albert Einstein', 'Napoleon', 'Shakespeare', 'Mozart', 'Marie Curie', 'Abraham Lincoln', 'Cleopatra', 'Picasso',
          'Isaac Newton', 'Taylor Swift', 'Leonardo da Vinci', 'Gandhi']
LANGUAGES = 'French Spanish German Italian Japanese Chinese Russian Arabic Turkish Dutch Polish Hindi'.split()
ILLNESSES = ['a headache', 'a fever', 'a cold', 'a toothache', 'back pain', 'a cough', 'a rash', 'a stomach ache']
WORDS = ['apple', 'house', 'love', 'water', 'bread', 'lasagna', 'pancakes', 'friend', 'soup', 'rice', 'hello', 'cheesecake']
STARTS = re.compile(r'(One|Early|In|It|For|Every|Near|There|Once|Suddenly|When|A|The|[A-Z][a-z]+ (had|was|found|saw|wanted)) ?')
POINTS_BACK = re.compile(r'\b(he|she|it|they|him|them|his|hers?|its|their|this|that|these|such|but|then|also|too|other|another)\b', re.I)
KIN = {'grandma', 'grandpa', 'grandmother', 'grandfather', 'mother', 'father'}
LEADS = ['Gladly!\n', 'Of course.\n', 'Here is one.\n']


def load_talk(name):
    """{topic: (what people say, answers)}"""
    out, topic = {}, None
    for line in words.lines(name):
        if line.startswith('['):
            topic = line.strip('[]')
            out[topic] = ([], [])
        elif line[:2] in ('U:', 'A:'):
            out[topic][line[0] == 'A'].extend(x.strip() for x in line[2:].split(' | '))
    return out


def begins_well(text):
    first = story_filter.sentences(text)[:1]
    return bool(first) and 20 < len(first[0]) < 130 and '"' not in first[0]


class Maker:
    def __init__(self, rng):
        self.rng = rng
        self.teller = plots.Teller(rng)
        self.small = load_talk('small_talk.txt')
        self.cannot = load_talk('cannot.txt')
        self.asked_things = [p for p in self.teller.plots if p.things and 'nature' not in p.things]

    def flip(self, p):
        return self.rng.random() < p

    def chat(self, turns):
        """user, assistant, user, ... -> an example; now and then with a system text before it."""
        out = [['user' if i % 2 == 0 else 'assistant', t] for i, t in enumerate(turns)]
        if self.flip(0.05):
            out.insert(0, ['system', self.rng.choice(SYSTEM)])
        return out

    # Stories sampled from stories15M.

    def from_sampled(self, text, answers=True):
        """Plain text, to learn the language from. The plots' stories make better answers (sampled ones forget their subject and
        contradict themselves), so a sampled story is only an answer to its own first sentence, for which the plots lack variety."""
        out = [[['text', text]]] if self.flip(0.7) else []
        if answers and self.flip(0.3) and story_facts.ends_well(text):
            text = self.later_start(text)
            if begins_well(text):
                out.append(self.chat([forms.begins(story_filter.sentences(text)[0], self.rng), text]))
        return out

    def from_book(self, text):
        """The same for a story from a book."""
        out = [[['text', text]]]
        if begins_well(text):
            out.append(self.chat([forms.begins(story_filter.sentences(text)[0], self.rng), text]))
        return out

    # Stories told from the hand-written plots.

    def tell(self):
        """A story, now and then with something odd in it that a request can name."""
        while True:
            st = self.teller.tell(odd=True)
            if not st.odd or self.subject(st):
                return st

    def subject(self, st):
        """A request that this story answers; None if no form of request names everything odd in it."""
        rng = self.rng
        pool = list(st.asks) * 2
        kind = words.article(st.kind)
        pool.append(kind)
        if st.trait:
            pool.append(words.article(st.trait) + ' ' + st.kind)
        if st.name:
            pool.append(forms.with_name(st.kind, st.name, rng))
            if self.flip(0.3):
                pool.append(forms.with_name(st.kind, st.name, rng) + ' who is ' + st.trait)
            long = [a for a in st.asks if a.startswith(kind + ' who')]
            if long:
                pool.append(long[0].replace(kind, f'{kind} named {st.name}', 1))
            if st.odd or self.flip(0.25):
                pool += [f'my {st.kind} {st.name}', f'my {st.kind} named {st.name}', f'our {st.kind} {st.name}', st.name]
            if st.name2 and (st.odd or self.flip(0.4)):
                pool += [f'{st.name} and {st.name2}', f'{forms.with_name(st.kind, st.name, rng)} and {words.article(st.kind2)} named {st.name2}']
        pool = [p for p in pool if all(o in p for o in st.odd)]
        if not pool:
            return None
        out = rng.choice(pool)
        if st.kind in KIN and self.flip(0.6):
            out = re.sub(r'\ban? ' + st.kind + r'\b', st.kind, out)
        return out

    def later_start(self, text):
        """Now and then drops the first sentences, so that a story can begin in the middle of things."""
        half = text[:len(text) // 2]
        good = [s for i, s in enumerate(story_filter.sentences(half)[:-1]) if i > 0 and 20 < len(s) < 110 and STARTS.match(s)
                and '"' not in s and not POINTS_BACK.search(s)]
        good = [s for s in good if s in text]   # not one that goes over the end of a line
        return text[text.find(self.rng.choice(good)):] if good and self.flip(0.7) else text

    def request(self, st):
        """A request for the story; it may drop the start of the story."""
        rng, x = self.rng, self.rng.random()
        if st.odd:
            return forms.about(self.subject(st), rng)
        if st.plot == 'noise_at_night' and x > 0.7:
            return forms.roughen(rng.choice(forms.SCARY), rng)
        if x < 0.08 and '"' not in story_filter.sentences(st.text)[0]:
            st.text = self.later_start(st.text)
            return forms.begins(story_filter.sentences(st.text)[0], rng)
        if x < 0.10:
            return forms.roughen(rng.choice(forms.ANY), rng)
        if x < 0.13 and st.name:
            form = rng.choice(forms.TRAIT)
            r = forms.about(words.article(st.kind) + ' named ' + st.name, rng)
            return form.replace('{r}', r if r[-1] in '.!?' else r + '.').replace('{n}', st.name).replace('{tr}', st.trait)
        r = forms.about(self.subject(st), rng)
        if x > 0.96:
            r = rng.choice(forms.ENDING).replace('{r}', r if r[-1] in '.!?' else r + '.')
        return r

    def reply(self, st):
        """The story, now and then with a short lead-in."""
        if self.flip(0.03):
            return self.rng.choice(LEADS) + st.text
        return st.text

    def from_plot(self):
        rng, out = self.rng, []
        st = self.tell()
        if self.flip(0.15) and not st.odd:
            out.append([['text', st.text]])
        if self.flip(0.04):
            subject = forms.trim(self.subject(st))
            out.append(self.chat([forms.roughen(rng.choice(forms.BRIEFLY).replace('{a}', subject), rng), st.short]))
            return out
        r = self.request(st)
        turns = [r, self.reply(st)]
        x = rng.random()
        if x < 0.14 and st.qa:
            for q, a in rng.sample(st.qa, min(len(st.qa), 1 + self.flip(0.4))):
                turns += [forms.roughen(q, rng), a]
        elif x < 0.20:
            turns += [rng.choice(forms.SHORTER), st.short]
        elif x < 0.25:
            turns += [rng.choice(forms.NEXT), st.next]
        elif x < 0.29:
            other = self.teller.tell()
            turns += [rng.choice(forms.AGAIN), other.text]
        elif x < 0.35:
            other = self.tell()
            turns += [forms.again_about(self.subject(other), rng), other.text]
        elif x < 0.39:
            turns += self.thanks()
        if self.flip(0.04):
            turns += self.turn('bye')
        out.append(self.chat(turns))
        return out

    def titled(self, title, story):
        a = title[:1].upper() + title[1:]
        return self.chat([self.rng.choice([f'Tell me the story "{a}".', f'Tell me a story called "{a}".', f'{a}']), story])

    # Small talk, and what the storyteller cannot do.

    def offer(self):
        """(subject, its story), told only when it is needed."""
        plot = self.rng.choice(self.asked_things)
        st = self.teller.tell(plot)
        asks = [a for a in st.asks if a.startswith('a') and st.thing and st.thing in a] or st.asks
        return self.rng.choice(asks[:2]), st

    def fill(self, text):
        r = self.rng
        for slot, value in (('{num}', lambda: str(r.choice([r.randint(1, 20), r.randint(2, 999)]))), ('{num2}', lambda: str(r.randint(1, 99))),
                            ('{word}', lambda: r.choice(WORDS)), ('{country}', lambda: r.choice(COUNTRIES)), ('{person}', lambda: r.choice(PEOPLE)),
                            ('{lang}', lambda: r.choice(LANGUAGES)), ('{ill}', lambda: r.choice(ILLNESSES)),
                            ('{kind}', lambda: words.article(r.choice(words.KIND_NOUNS)))):
            while slot in text:
                text = text.replace(slot, value(), 1)
        return text

    def turn(self, topic, table=None):
        said, answers = (table or self.small)[topic]
        if table is self.cannot and (not answers or self.flip(0.4)) and topic not in ('bad', 'medical'):
            answers = answers + self.cannot['any'][1]
        u, a = forms.roughen(self.fill(self.rng.choice(said)), self.rng), self.rng.choice(answers)
        self.offered = None
        if '{offer}' in a:
            subject, self.offered = self.offer()
            a = a.replace('{offer}', forms.trim(subject))
        return [u, a]

    def thanks(self):
        u, a = self.turn('thanks')
        return [u, a]

    def talk(self):
        """One conversation of one to four exchanges."""
        rng, x = self.rng, self.rng.random()
        if x < 0.34:
            topic = rng.choice([t for t in self.cannot if t != 'any'])
            turns = self.turn(topic, self.cannot)
            if self.offered and self.flip(0.5):
                turns += [rng.choice(forms.YES), self.offered.text]
            elif self.flip(0.3):
                turns += self.ask_story()
            return self.chat(turns)
        if x < 0.42:
            return self.chat(self.names())
        topics = [t for t in self.small if t not in ('thanks', 'dislike', 'bye', 'ok', 'serious', 'user_fine')]
        if x < 0.75:
            topic = rng.choice(list(self.small))
            turns = self.turn(topic)
        else:
            turns = self.turn(rng.choice(['greet', 'how', 'greet', 'name']))
            for _ in range(rng.choice([1, 1, 2, 3])):
                turns += self.turn(rng.choice(topics))
            if self.flip(0.4):
                turns += self.turn('bye')
                return self.chat(turns)
        if self.offered and self.flip(0.4):
            turns += [rng.choice(forms.YES), self.offered.text]
        elif self.flip(0.25):
            turns += self.ask_story()
        return self.chat(turns)

    def ask_story(self):
        st = self.tell()
        return [self.request(st), st.text]

    def names(self):
        """The user gives a name and may be the hero."""
        rng = self.rng
        n = rng.choice(words.ALL_NAMES[rng.choice(['she', 'he'])])
        u = rng.choice([f'My name is {n}.', f'my name is {n}', f"I'm {n}", f'Hi, I am {n}.', f'hello, my name is {n}', f'call me {n}', f'i am {n}'])
        a = rng.choice([f'Nice to meet you, {n}! What shall I tell you a story about?', f'Hello, {n}! I am Hearth\'s little storyteller.',
                        f'What a nice name, {n}. Would you like a story?', f'Welcome, {n}! Shall I tell you a story?'])
        turns = [u, a]
        x = rng.random()
        if x < 0.3:
            turns += [rng.choice(["what's my name?", 'What is my name?', 'do you know my name', 'who am i?', 'Do you remember my name?']),
                      rng.choice([f'Your name is {n}.', f'You told me that your name is {n}.', f'You are {n}.'])]
        elif x < 0.7:
            kind = 'girl' if words.ALL_GENDER[n] == 'she' else 'boy'
            st = self.teller.tell(name=n, kind=kind)
            turns += [rng.choice(['Tell me a story about me.', 'tell me a story about me', 'Make up a story with me in it.',
                                  'I want to be in the story!', f'A story about {n}, please.', 'a story about me']), st.text]
        elif x < 0.85:
            turns += self.ask_story()
        return turns

