/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks that were walked lately: how a walk is remembered and recognized. What plain rules
 * cannot follow is left to walker.c and not cached. Must never fault: an entry holds words
 * between the frame where its walk began and the top of the thread's own stack, and that walk
 * found them readable.
 */
#include <string.h>
#include "interpose/abi/format.h"
#include "interpose/stack/stacks.h"
#include "interpose/stack/walker_parts.h"
#include "interpose/platform/laws.h"

#if CUF_HAS_RULES /* elsewhere: walk_pointers.c */

/* Frames that are walked before an entry is searched. */
enum { KEY_FRAMES = 4 };

/* A walk on the own stack by plain rules only, with everything that decided where it went. */
struct plain_walk {
	struct cuf_walker *walker;
	/* the frame where it began; its first word is the caller's fp */
	uintptr_t start;
	uintptr_t ip, sp;
	/* the address of fp, which is read when a rule needs it */
	uintptr_t fp_at;
	/* including this library's */
	uint64_t *ips;
	/* at[i]: where ips[i + 1] was read, in words above start */
	uint16_t *at;
	/* the top of the stack, or how far `at` reaches */
	uintptr_t high;
	/* of the frames, without this library's */
	uint64_t hash;
	unsigned count, max;
	/* see struct cuf_walked */
	uint64_t extra_key;
	/* which frames are this library's */
	unsigned own_count, own[CUF_WALK_OWN];
	/* low bits set: some word was at no multiple of 8, and `at` is wrong */
	uintptr_t odd;
	/* where frame pointers were read */
	unsigned fp_words;
	uint16_t *fp_word_at;
};

enum plain_end { PLAIN_COUNT, PLAIN_END, PLAIN_OTHER };

/* ---- the walk ---- */

/* fp decides the next step. false: it is not on this stack, or out of an entry's reach. */
static READS_STACKS bool read_fp(struct plain_walk *walk, uintptr_t fp_at, uintptr_t *fp)
{
	uintptr_t above = fp_at - walk->start;

	if (above >= walk->high - 7 - walk->start || above % 8)
		return false;
	*fp = ((const struct word *)fp_at)->value;
	walk->fp_word_at[walk->fp_words++] = (uint16_t)(above / 8);
	return true;
}

/*
 * The CFA by a rule that is not the usual one. A frame of this library is none of the stack's,
 * although it may be in between: main is called by us. false: not by plain rules.
 */
static __attribute__((noinline)) bool find_cfa(struct plain_walk *walk,
					       const struct cuf_rule *rule, uintptr_t sp,
					       uintptr_t fp_at, unsigned count, uintptr_t *cfa)
{
	unsigned kind = rule->kind & ~CUF_RULE_OWN;
	uintptr_t base = sp, below = cuf_rule_return_below(rule);

	if ((kind != CUF_RULE_SP && kind != CUF_RULE_FP) ||
	    (kind == CUF_RULE_FP && !read_fp(walk, fp_at, &base)))
		return false;
	*cfa = base + (uintptr_t)(intptr_t)rule->cfa_offset;
	if (*cfa - 8 - sp >= walk->high - 7 - sp || *cfa - sp < below || (*cfa - walk->start) % 8)
		return false;
	if (kind == rule->kind)
		return true;
	if (walk->own_count == CUF_WALK_OWN)
		return false;
	walk->own[walk->own_count++] = count;
	return true;
}

static inline enum plain_end end_of(uintptr_t ip, const struct cuf_rule *rule)
{
	if (!ip || (rule->ip == ip && rule->kind == CUF_RULE_END))
		return PLAIN_END;
	return PLAIN_OTHER;
}

/*
 * walk_own_stack once more, for this purpose. Address to rule to CFA to the next address is one
 * chain of loads. All other work (the hash, where the words were) must be small enough to hide
 * behind it.
 */
static READS_STACKS enum plain_end walk_plain(struct plain_walk *walk, const unsigned max)
{
	struct cuf_rule *const rules = walk->walker->rules;
	uint64_t *const ips = walk->ips;
	uint16_t *const at = walk->at;
	const uintptr_t high = walk->high, start = walk->start;
	uintptr_t ip = walk->ip, sp = walk->sp, fp_at = walk->fp_at, cfa;
	uint64_t hash = walk->hash, odd = walk->odd;
	unsigned count = walk->count, own = walk->own_count, limit = max + own;
	enum plain_end end = PLAIN_COUNT;

	while (count < limit) {
		struct cuf_rule *rule = find_rule(rules, ip);

		ips[count] = ip;
		if (__builtin_expect(rule->kind == CUF_RULE_SP, 1)) {
			cfa = sp + (uint32_t)rule->cfa_offset; /* upwards: see cfi.c */
			if (__builtin_expect(cfa > high, 0)) {
				end = PLAIN_OTHER;
				break;
			}
			odd |= cfa;
			hash = cuf_frames_hash_step(hash, ip);
		} else if (find_cfa(walk, rule, sp, fp_at, count, &cfa)) {
			if (own == walk->own_count)
				hash = cuf_frames_hash_step(hash, ip);
			limit = max + (own = walk->own_count);
		} else {
			end = end_of(ip, rule);
			break;
		}
		/* without a branch: whether a function saves rbp is unpredictable */
		fp_at ^= (fp_at ^ (cfa + (uintptr_t)cuf_rule_fp_offset(rule))) &
			 -(uintptr_t)(rule->fp_offset != 0);
		sp = cfa;
		cfa -= cuf_rule_return_below(rule);
		at[count++] = (uint16_t)((cfa - start) / 8);
		ip = strip_signature(((const struct word *)cfa)->value);
	}
	walk->ip = ip;
	walk->sp = sp;
	walk->fp_at = fp_at;
	walk->hash = hash;
	walk->odd = odd;
	walk->count = count;
	return end;
}

#if defined __aarch64__
/*
 * Where the hook's caller stood: a frame record is at the lower end of its frame, so the frames
 * from here to the hook are stepped through. false: the hook runs on another stack.
 */
static __attribute__((noinline)) READS_STACKS bool find_caller(struct plain_walk *walk)
{
	const struct word *frame = __builtin_frame_address(0);
	const uintptr_t hook = walk->start;
	uintptr_t ip = strip_signature(frame[1].value), cfa;
	uintptr_t sp = callers_sp(walk->walker->rules, frame);

	if (!cuf_walker_on_own_stack(walk->walker, sp))
		return false;
	walk->start = walk->fp_at = (uintptr_t)frame;
	while (sp <= hook) {
		const struct cuf_rule *rule = find_rule(walk->walker->rules, ip);

		if (!find_cfa(walk, rule, sp, walk->fp_at, 0, &cfa))
			return false;
		walk->own_count = walk->fp_words = 0;
		if (rule->fp_offset)
			walk->fp_at = cfa + (uintptr_t)cuf_rule_fp_offset(rule);
		sp = cfa;
		cfa -= cuf_rule_return_below(rule);
		ip = strip_signature(((const struct word *)cfa)->value);
	}
	walk->start = hook;
	walk->sp = sp;
	return ip == walk->ip && walk->fp_at == hook;
}

/* Where a frame begins, above the word that has the address of its caller. */
static inline uintptr_t return_below(struct cuf_walker *walker, uintptr_t ip)
{
	return cuf_rule_return_below(find_rule(walker->rules, ip));
}
#else
static inline bool find_caller(struct plain_walk *walk)
{
	walk->sp = walk->start + 16;
	return true;
}

static inline uintptr_t return_below(struct cuf_walker *walker, uintptr_t ip) { return 8; }
#endif

/* ---- recognizing ---- */

/*
 * Four chains, because one would wait for itself. A multiple of four words, because the length of
 * a second loop for the rest could not be predicted.
 */
static inline READS_STACKS uint64_t hash_words(uintptr_t start, const uint16_t *at, unsigned words)
{
	const struct word *stack = (const struct word *)start;
	const uint64_t factor = 0x9E3779B97F4A7C15ull;
	uint64_t a = 1, b = 2, c = 3, d = 4;

	for (unsigned i = 0; i < words; i += 4) {
		a = a * factor + stack[at[i]].value;
		b = b * factor + stack[at[i + 1]].value;
		c = c * factor + stack[at[i + 2]].value;
		d = d * factor + stack[at[i + 3]].value;
	}
	a = cuf_frames_hash_step(a, b ^ b >> 32);
	c = cuf_frames_hash_step(c, d ^ d >> 32);
	return cuf_frames_hash_step(a ^ a >> 32, c ^ c >> 32);
}

/*
 * The words are in the part of the stack that the entry's walk found readable, and that part only
 * grows.
 */
static inline bool is_same(const struct cuf_cached_stack *entry, uint32_t epoch, uintptr_t ip,
			   uintptr_t start, unsigned max, uint64_t extra_key)
{
	return entry->ip == ip && entry->start == start && entry->epoch == epoch &&
	       entry->max == max && entry->extra_key == extra_key && entry->id &&
	       hash_words(start, entry->at, entry->words) == entry->words_hash;
}

static inline bool is_walk(const struct cuf_cached_stack *entry, const struct plain_walk *walk)
{
	return is_same(entry, walk->walker->cache->epoch, walk->ips[0], walk->start, walk->max,
		       walk->extra_key);
}

/* Searches by the innermost frames, which were walked. *place: where this stack may be cached. */
static struct cuf_cached_stack *find_cached(struct cuf_stack_cache *cache,
					    const struct plain_walk *walk,
					    struct cuf_cached_stack **place)
{
	uint64_t hash = (walk->hash ^ walk->start >> 3 ^ walk->extra_key) * 0x9E3779B97F4A7C15ull;
	uint16_t tag = (uint16_t)(hash >> 48);
	unsigned set = hash >> 40 & (CUF_CACHE_SETS - 1), newest = cache->newest[set];
	struct cuf_cached_stack *kept = &cache->entries[set][!newest];

	*place = &cache->entries[set][newest];
	if (cache->tags[set][!newest] == tag && is_walk(kept, walk))
		return kept;
	if (cache->tags[set][newest] == tag && is_walk(*place, walk)) {
		/* met again: it stays, and the other one is replaced */
		cache->newest[set] = !newest;
		return *place;
	}
	cache->tags[set][newest] = tag;
	return NULL;
}

/*
 * Fills the entry in, except for the id. The outermost frame's caller is no word that decided,
 * unless it was 0. The words' places are copied last: a load that is wider than the stores before
 * it waits until those have left the processor's queue.
 */
static bool cache_walk(struct cuf_cached_stack *entry, const struct plain_walk *walk,
		       enum plain_end end)
{
	unsigned words = walk->count - (end == PLAIN_COUNT || walk->ip);

	if (walk->odd % 8 || words + walk->fp_words >= CUF_CACHE_WORDS)
		return false;
	for (unsigned i = 0; i < walk->fp_words; i++)
		walk->at[words++] = walk->fp_word_at[i];
#if defined __aarch64__
	walk->at[words++] = 0; /* the caller's fp: two hooks may have frames of two sizes */
#endif
	while (words % 4)
		walk->at[words++] = 1; /* the caller's ip, which is compared anyway */
	entry->words_hash = hash_words(walk->start, walk->at, words);
	entry->id = 0;
	entry->epoch = walk->walker->cache->epoch;
	entry->ip = walk->ips[0];
	entry->start = walk->start;
	entry->max = (uint16_t)walk->max;
	entry->extra_key = walk->extra_key;
	entry->words = (uint16_t)words;
	memcpy(entry->at, walk->at, words * sizeof *entry->at);
	return true;
}

/* ---- the frames of a walk ---- */

/* Writes the frames without this library's, and their stack pointers. Returns how many. */
static unsigned copy_frames(struct cuf_walker *walker, uint64_t *frames)
{
	struct cuf_stack_cache *cache = walker->cache;
	uintptr_t sp = cache->first_sp;
	unsigned count = 0, own = 0;

	for (unsigned i = 0; i < cache->count; i++) {
		if (i)
			sp = cache->start + cache->at[i - 1] * 8u +
			     return_below(walker, cache->ips[i - 1]);
		if (own < cache->own_count && cache->own[own] == i) {
			own++;
			continue;
		}
		cache->frame_sp[count] = sp;
		frames[count++] = cache->ips[i];
	}
	return count;
}

/* Keeps what cuf_walked_frames needs. Returns how many frames there are. */
static unsigned keep_walk(const struct plain_walk *walk)
{
	struct cuf_stack_cache *cache = walk->walker->cache;

	cache->count = walk->count;
	cache->own_count = walk->own_count;
	for (unsigned i = 0; i < walk->own_count; i++)
		cache->own[i] = walk->own[i];
	cache->start = walk->start;
	return walk->count - walk->own_count;
}

void cuf_walked_frames(struct cuf_walker *walker, struct cuf_walked *walked)
{
	if (!walked->is_written)
		copy_frames(walker, walked->frames);
	walked->is_written = true;
}

static void hash_frames(struct cuf_walked *walked)
{
	walked->hash = 0;
	for (unsigned i = 0; i < walked->depth; i++)
		walked->hash = cuf_frames_hash_step(walked->hash, walked->frames[i]);
}

/* Continues where plain rules stopped. */
static __attribute__((noinline)) READS_STACKS void finish_walk(struct plain_walk *walk,
							       struct cuf_walked *walked)
{
	struct cuf_walk_state from = { .ip = walk->ip, .sp = walk->sp };
	unsigned count;

	if (walk->fp_at - walk->start < walk->walker->stack_high - 7 - walk->start)
		from.fp = ((const struct word *)walk->fp_at)->value;
	keep_walk(walk);
	count = copy_frames(walk->walker, walked->frames);
	walked->is_written = true;
	walked->depth = cuf_walk_continue(walk->walker, &from, walked->frames, count, walk->max,
					  &walked->stop);
	hash_frames(walked);
}

/* From here on, without the frames up to the hook's. */
static __attribute__((noinline)) READS_STACKS void walk_uncached(struct plain_walk *walk,
								 uintptr_t hook,
								 struct cuf_walked *walked)
{
	const struct word *frame = __builtin_frame_address(0);
	const struct cuf_walk_state from = {
		.ip = strip_signature(frame[1].value),
		.sp = callers_sp(walk->walker->rules, frame),
		.fp = frame[0].value,
		.above = hook,
	};

	walked->is_written = true;
	walked->depth = cuf_walk_continue(walk->walker, &from, walked->frames, 0, walk->max,
					  &walked->stop);
	hash_frames(walked);
}

/* ---- the interface ---- */

/* For a stack that was not recognized by where it began. */
static __attribute__((noinline)) uint32_t walk_and_cache(struct plain_walk *walk,
							 struct cuf_cached_stack **last,
							 struct cuf_walked *walked)
{
	struct cuf_cached_stack *place = NULL, *entry = NULL;
	const uintptr_t hook = walk->start;
	enum plain_end end;

	if (!find_caller(walk)) {
		walk_uncached(walk, hook, walked);
		return 0;
	}
	walk->walker->cache->first_sp = walk->sp;
	if (!cuf_walker_on_own_stack(walk->walker, walk->sp)) {
		finish_walk(walk, walked);
		return 0;
	}
	walk->walker->cache_used = true;
	end = walk_plain(walk, walk->max < KEY_FRAMES ? walk->max : KEY_FRAMES);
	if (walk->count)
		entry = find_cached(walk->walker->cache, walk, &place);
	if (entry) {
		*last = entry;
		return entry->id;
	}
	if (end == PLAIN_COUNT)
		end = walk_plain(walk, walk->max);
	if (end == PLAIN_OTHER || !walk->count) {
		finish_walk(walk, walked);
		return 0;
	}
	if (end == PLAIN_END && walk->ip) { /* the outermost frame is one too */
		walk->ips[walk->count++] = walk->ip;
		walk->hash = cuf_frames_hash_step(walk->hash, walk->ip);
	}
	cuf_stack_expect(walk->hash); /* caching takes about as long as a cold load */
	if (cache_walk(place, walk, end)) {
		walked->id = &place->id;
		*last = place;
	}
	walked->hash = walk->hash;
	walked->depth = keep_walk(walk);
	walked->stop = end == PLAIN_END ? CUF_STOP_END : CUF_STOP_DEPTH;
	return 0;
}

/* The walk is initialised member by member: most of it is not used when the stack is recognized. */
READS_STACKS uint32_t cuf_walk_cached(struct cuf_walker *walker, uint64_t generation,
				      const void *frame, unsigned max, struct cuf_walked *walked)
{
	const struct word *start = frame;
	uintptr_t ip = strip_signature(start[1].value);
	struct cuf_cached_stack **last;
	struct plain_walk walk;

	walked->is_written = false;
	if (__builtin_expect(!walker->rules || walker->generation != generation, 0)) {
		walked->depth = 0;
		if (!walker->rules)
			return 0;
		cuf_walker_renew(walker, generation);
	}
	last = &walker->cache->last[(ip ^ ip >> 8 ^ (uintptr_t)start >> 4) % CUF_CACHE_LAST];
	if (*last && is_same(*last, walker->cache->epoch, ip, (uintptr_t)start, max,
			     walked->extra_key))
		return (*last)->id;
	walk.walker = walker;
	walk.ip = ip;
	walk.start = walk.fp_at = (uintptr_t)start;
	walk.max = max;
	walk.extra_key = walked->extra_key;
	walk.high = walk.start + UINT16_MAX * 8u;
	if (walk.high >= walker->stack_high)
		walk.high = walker->stack_high;
	walk.hash = walk.odd = 0;
	walk.count = walk.fp_words = walk.own_count = 0;
	walk.ips = walker->cache->ips;
	walk.at = walker->cache->at;
	walk.fp_word_at = walk.at + CUF_WALK_FRAMES_MAX + CUF_WALK_OWN;
	walked->id = &walker->no_id;
	return walk_and_cache(&walk, last, walked);
}
#endif
