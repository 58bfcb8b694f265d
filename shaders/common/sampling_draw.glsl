// Draws a token: every token that is left gets a score, its noise less its distance below the largest
// logit, and the largest score wins. Scores do not depend on each other, so tokens may be looked at in any
// order and by any lane, and nothing is added up.
//
// Include after sampling_key.glsl, sampling_reduce.glsl and sampling_noise.glsl.
#ifndef HEARTH_SAMPLING_DRAW_GLSL
#define HEARTH_SAMPLING_DRAW_GLSL

// The best token that a lane has seen.
struct Race {
  float score;
  uint id;
};

// No token has a score as low as this, if one at distance 0 takes part.
const Race kRaceBegins = Race(kLeastNoise, 0xffffffffu);

// `distance` is that of the token's logit after temperature.
void enter(inout Race race, uint bits, float distance, uint id) {
  // Most tokens cannot win, which is seen without a logarithm.
  precise const float hope = most_noise(bits) - distance;
  if (hope < race.score) return;
  precise const float score = noise_of(bits) - distance;
  if (score < race.score || (score == race.score && id > race.id)) return;
  race = Race(score, id);
}

// Whether a token at this distance could still win.
bool may_win(Race race, float distance) {
  return most_noise(0) - distance >= race.score;
}

uint score_key(Race race) { return logit_key(floatBitsToUint(race.score)); }

// The best of all lanes' keys of scores, and among equals the lowest id. Every invocation of the workgroup
// must call these functions.
uint winner_of(uint key, uint id) {
  const uint best = workgroup_max(key);
  return workgroup_min(key == best ? id : 0xffffffffu);
}

uint winner(Race race) { return winner_of(score_key(race), race.id); }

#endif
