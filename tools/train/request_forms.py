"""How people ask for a story: many forms around a subject such as "a fox and a kite"."""
from words import article

ABOUT = [
    'Tell me a story about {a}.', 'Tell me a story about {a}', 'Tell me a short story about {a}.', 'tell me a story about {a}',
    'Write a story about {a}.', 'Write a short story about {a}.', 'write a story about {a}', 'Write me a story about {a}.',
    'Can you tell me a story about {a}?', 'can you tell a story about {a}', 'Could you tell me a story about {a}, please?',
    'Please tell me a story about {a}.', 'I would like a story about {a}.', 'I want to hear a story about {a}.',
    'I want a story about {a}', 'A story about {a}, please.', 'a story about {a}', 'story about {a}', 'story about {a} pls',
    'Story: {a}', 'How about a story with {a}?', 'What about {a}?', 'Do you know a story about {a}?', 'tell me about {a}',
    'Tell me about {a}.', 'Make up a story about {a}.', 'make a story about {a}', 'Give me a story about {a}.',
    'give me a short story about {a}', 'Tell a story about {a}.', 'Tell my daughter a story about {a}.',
    'Tell us a story about {a}.', 'Tell me a bedtime story about {a}.', 'Read me a story about {a}.', '{A}.', '{a}', '{a} please',
    'Let me hear a story about {a}.', "I'd love a story about {a}!", 'Hi! Tell me a story about {a}.',
    'Hello, can you tell me a story about {a}?', 'Tell me a nice story about {a}.', 'Tell me a little story about {a}.',
    'Tell me a tale about {a}.', 'Once more: a story about {a}.', 'We want a story about {a}!', 'i need a story about {a}',
    'tel me a story about {a}', 'tell me story about {a}', 'can u tell me a story about {a}', 'stroy about {a}',
    'Tell me something about {a}.', 'Invent a story about {a}.',
    'Compose a story about {a}.', 'Tell me a funny story about {a}.', 'my kid wants a story about {a}',
    'Make it a story about {a}.', 'Write a children\'s story about {a}.', 'Tell me a story with {a} in it.',
    'a short story about {a} please', 'okay, a story about {a}', 'Could I have a story about {a}?', 'tell me a story abt {a}',
]
BRIEFLY = ['Write a very short story about {a}.', 'Tell me a very short story about {a}.', 'a very short story about {a}',
           'A short one about {a}, please.', 'in a few sentences: {a}', 'Tell me a story about {a}. Keep it short.',
           'quick story about {a}', 'Tell me a story about {a} in a few sentences.']
ANY = ['Tell me a story.', 'tell me a story', 'Tell me a short story.', 'story please', 'a story', 'Can you tell me a story?',
       'I want a story', 'Please tell me a story!', 'tell me something', 'Surprise me.', 'Tell me a bedtime story.', 'another story',
       'Write a short story.', 'Make up a story.', 'any story', 'Tell me any story you like.', 'Once upon a time?', 'story',
       'Start a story.', 'Tell me one of your stories.', 'i want to hear a story', 'go ahead, tell me a story', 'yes, tell me a story',
       'Tell me a funny story.', 'Tell me a happy story.', 'a good night story please', 'tell me a new story', 'Make me smile with a story.',
       'I need a story for my kids.', 'Tell me a story for bedtime.', 'something short please', 'Do you know a good story?', 'tell me your favorite story', 'Can you write a story for my class?']
SCARY = ['Tell me a scary story.', 'tell me a scary story', 'I want a spooky story', 'a ghost story please', 'Do you know a scary story?',
         'Tell me something spooky.', 'a scary one please', 'Can you tell a horror story?', 'Tell me a Halloween story.']
AGAIN = ['Tell me another one.', 'another one', 'Another one, please.', 'one more', 'One more story!', 'Tell me another story.',
         'more', 'again', 'Can I hear another one?', 'next one', 'and another?', 'Do you have another story?', 'another', 'one more pls']
AGAIN_ABOUT = ['Now tell me one about {a}.', 'Now one about {a}.', 'And one about {a}?', 'now a story about {a}', 'Next, {a}.',
               'Tell me another one, about {a}.', 'Another one, this time about {a}.', 'and now {a}', 'Can you do one about {a}?',
               'one more, about {a}', 'The same with {a}.', 'How about {a} now?', 'ok now tell me about {a}']
SHORTER = ['Make it shorter.', 'make it shorter', 'Can you make it shorter?', 'shorter', 'Shorter, please.', 'too long', 'That was too long.',
           'Tell it again, but shorter.', 'Please shorten it.', 'a shorter version please', 'Can you tell it in fewer words?',
           'Can you summarize it?', 'Sum it up.', 'make that shorter pls', 'The short version, please.']
NEXT = ['What happened next?', 'what happens next', 'And then?', 'and then what', 'Go on.', 'go on', 'continue', 'Tell me more.',
        'Then what happened?', 'What happened after that?', 'keep going', 'more of this story', 'Make it longer.', 'what happened then?']
YES = ['yes', 'Yes please!', 'yes please', 'ok', 'Sure!', 'okay, do it', 'Yes, tell me that story.', 'sure', 'please do', 'Go ahead.',
       'yeah', 'Yes!', 'why not', 'Do that.', 'ok tell me', 'I would like that.', 'yes tell me', 'sounds good', 'All right, tell me.']
BEGINS = ['Write a short story that begins with "{s}"', 'Write a story that begins with: {s}', 'Continue this story: {s}',
          'Finish this story: {s}', 'Tell me a story that starts with "{s}"', 'start with "{s}"', 'Begin with: {s}',
          'Please continue: {s}', 'Write a story. The first sentence is: {s}', 'Go on from here: {s}', 'complete this story: {s}']
ENDING = ['{r} It should have a happy ending.', '{r} With a happy ending, please.', '{r} I want a happy ending.', '{r} Let it end well.']
TRAIT = ['{r} {n} should be {tr}.', '{r} In it, {n} is {tr}.']


def trim(s):
    return s.rstrip(' .')


def roughen(text, rng):
    """Now and then writes it as people type: lower case, no full stop."""
    x = rng.random()
    if x < 0.14:
        text = text.lower()
    if 0.10 < x < 0.22:
        text = text.rstrip('.')
    return text


def about(subject, rng):
    form = ABOUT[int(rng.random() * rng.random() * len(ABOUT))] if rng.random() < 0.6 else rng.choice(ABOUT)
    subject = trim(subject)
    text = form.replace('{a}', subject).replace('{A}', subject[:1].upper() + subject[1:])
    return roughen(text, rng)


def again_about(subject, rng):
    return roughen(rng.choice(AGAIN_ABOUT).replace('{a}', trim(subject)), rng)


def begins(first_sentence, rng):
    form = rng.choice(BEGINS)
    s = first_sentence.replace('"', "'") if '"{s}"' in form else first_sentence
    return form.replace('{s}', s)


def with_name(kind, name, rng):
    """'a fox named Max', 'Max the fox', ..."""
    return rng.choice([f'{article(kind)} named {name}', f'{article(kind)} called {name}', f'{name} the {kind}'])

