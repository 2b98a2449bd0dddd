/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks that were seen lately. Owns the memos: how a walk is remembered and recognised. What plain rules cannot follow is
 * left to walker.c, and not remembered. Must never fault: memos hold words between the frame where the walk began and the
 * top of the thread's own stack, which that walk found readable.
 */
#include <string.h>
#include "interpose/abi/format.h"
#include "interpose/stack/stacks.h"
#include "interpose/stack/walker_parts.h"
#include "interpose/platform/laws.h"

#if defined __x86_64__ /* elsewhere: walk_pointers.c */

enum { KEY_FRAMES = 4 }; /* walked before a memo is looked for */

/* A walk on the own stack by plain rules alone, with all that decided where it went. */
struct plain_walk {
	struct cuf_walker *walker;
	uintptr_t start;  /* the frame where it began; its first word is the caller's fp */
	uintptr_t ip, sp;
	uintptr_t fp_at;  /* where fp is. Read when a rule wants it */
	uint64_t *ips;    /* our own, too */
	uint16_t *at;     /* at[i]: where ips[i + 1] was read, in words above start */
	uintptr_t high;   /* the top of the stack, or how far at reaches */
	uint64_t hash;    /* of the frames: all but our own */
	unsigned count, max;
	uint64_t beside;  /* see cuf_walked */
	unsigned own_count, own[CUF_WALK_OWN]; /* which are ours */
	uintptr_t odd;    /* its low bits: some word lay at no multiple of 8, and at is not true */
	unsigned fp_words;
	uint16_t *fp_word_at; /* where frame pointers were read */
};

enum plain_end { PLAIN_COUNT, PLAIN_END, PLAIN_OTHER };

/* fp decides the next step. false: it lies nowhere on this stack, or out of a memo's reach. */
static READS_STACKS bool read_fp(struct plain_walk *w, uintptr_t fp_at, uintptr_t *fp)
{
	uintptr_t above = fp_at - w->start;
	if (above >= w->high - 7 - w->start || above % 8)
		return false;
	*fp = ((const struct word *)fp_at)->value;
	w->fp_word_at[w->fp_words++] = (uint16_t)(above / 8);
	return true;
}

/* The CFA by a rule that is not the usual one. A frame of ours (main is called by us) is no frame of the stack. false:
 * not by plain rules. */
static __attribute__((noinline)) bool find_cfa(
	struct plain_walk *w, const struct cuf_rule *rule, uintptr_t sp, uintptr_t fp_at, unsigned count, uintptr_t *cfa)
{
	unsigned kind = rule->kind & ~CUF_RULE_OWN;
	uintptr_t base = sp;
	if ((kind != CUF_RULE_SP && kind != CUF_RULE_FP) || (kind == CUF_RULE_FP && !read_fp(w, fp_at, &base)))
		return false;
	*cfa = base + (uintptr_t)(intptr_t)rule->cfa_offset;
	if (*cfa - 8 - sp >= w->high - 7 - sp || (*cfa - w->start) % 8)
		return false;
	if (kind == rule->kind)
		return true;
	if (w->own_count == CUF_WALK_OWN)
		return false;
	w->own[w->own_count++] = count;
	return true;
}

static inline enum plain_end end_of(uintptr_t ip, const struct cuf_rule *rule)
{
	return !ip || (rule->ip == ip && rule->kind == CUF_RULE_END) ? PLAIN_END : PLAIN_OTHER;
}

/*
 * walk_own_stack once more for this purpose. Address to rule to CFA to the next address is one chain of loads: what is
 * beside it (the hash, where the words were) must be little enough to hide in its shadow.
 */
static READS_STACKS enum plain_end walk_plain(struct plain_walk *w, const unsigned max)
{
	struct cuf_rule *const rules = w->walker->rules;
	uint64_t *const ips = w->ips;
	uint16_t *const at = w->at;
	const uintptr_t high = w->high, start = w->start;
	uintptr_t ip = w->ip, sp = w->sp, fp_at = w->fp_at, cfa;
	uint64_t hash = w->hash, odd = w->odd;
	unsigned count = w->count, own = w->own_count, limit = max + own;
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
		} else if (find_cfa(w, rule, sp, fp_at, count, &cfa)) {
			if (own == w->own_count)
				hash = cuf_frames_hash_step(hash, ip);
			limit = max + (own = w->own_count);
		} else {
			end = end_of(ip, rule);
			break;
		}
		/* without a branch: whether a function saves rbp cannot be guessed */
		fp_at ^= (fp_at ^ (cfa + (uintptr_t)(intptr_t)rule->fp_offset)) & -(uintptr_t)(rule->fp_offset != 0);
		sp = cfa;
		at[count++] = (uint16_t)((cfa - 8 - start) / 8);
		ip = ((const struct word *)(cfa - 8))->value;
	}
	w->ip = ip;
	w->sp = sp;
	w->fp_at = fp_at;
	w->hash = hash;
	w->odd = odd;
	w->count = count;
	return end;
}

/* Four chains, because one would be waited for; a multiple of four, because another loop for the rest could not be guessed. */
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

/* The words lie in the part of the stack that the memo's walk found readable, which only grows. */
static inline bool is_same(
	const struct cuf_memo *memo, uint32_t epoch, uintptr_t ip, uintptr_t start, unsigned max, uint64_t beside)
{
	return memo->ip == ip && memo->start == start && memo->epoch == epoch && memo->max == max && memo->beside == beside && memo->id &&
	       hash_words(start, memo->at, memo->words) == memo->words_hash;
}

static inline bool is_this(const struct cuf_memo *memo, const struct plain_walk *w)
{
	return is_same(memo, w->walker->memos->epoch, w->ips[0], w->start, w->max, w->beside);
}

/* By the innermost frames, which were walked. *place: where this stack may be remembered. */
static struct cuf_memo *find_memo(struct cuf_memos *memos, const struct plain_walk *w, struct cuf_memo **place)
{
	uint64_t hash = (w->hash ^ w->start >> 3 ^ w->beside) * 0x9E3779B97F4A7C15ull;
	uint16_t tag = (uint16_t)(hash >> 48);
	unsigned set = hash >> 40 & (CUF_MEMO_SETS - 1), newest = memos->newest[set];
	struct cuf_memo *kept = &memos->memo[set][!newest];
	*place = &memos->memo[set][newest];
	if (memos->tags[set][!newest] == tag && is_this(kept, w))
		return kept;
	if (memos->tags[set][newest] == tag && is_this(*place, w)) {
		memos->newest[set] = !newest; /* met again: it stays, and the other makes room */
		return *place;
	}
	memos->tags[set][newest] = tag;
	return NULL;
}

/*
 * The outermost frame's caller is no word that decided, unless it was 0. The words' places are copied last: a load that is
 * wider than the stores before it waits until those have left the processor's queue.
 */
static bool remember(struct cuf_memo *memo, const struct plain_walk *w, enum plain_end end)
{
	unsigned words = w->count - (end == PLAIN_COUNT || w->ip);
	if (w->odd % 8 || words + w->fp_words > CUF_MEMO_WORDS)
		return false;
	for (unsigned i = 0; i < w->fp_words; i++)
		w->at[words++] = w->fp_word_at[i];
	while (words % 4)
		w->at[words++] = 1; /* the caller's ip: it is compared anyway */
	memo->words_hash = hash_words(w->start, w->at, words);
	memo->id = 0; /* to be told */
	memo->epoch = w->walker->memos->epoch;
	memo->ip = w->ips[0];
	memo->start = w->start;
	memo->max = (uint16_t)w->max;
	memo->beside = w->beside;
	memo->words = (uint16_t)words;
	memcpy(memo->at, w->at, words * sizeof *memo->at);
	return true;
}

/* The frames of the stack: all but our own. */
static unsigned copy_frames(struct cuf_memos *memos, uint64_t *frames)
{
	unsigned count = 0, own = 0;
	for (unsigned i = 0; i < memos->count; i++) {
		if (own < memos->own_count && memos->own[own] == i) {
			own++;
			continue;
		}
		memos->lows[count] = memos->start + (i ? memos->at[i - 1] * 8u + 8 : 16);
		frames[count++] = memos->ips[i];
	}
	return count;
}

/* For cuf_walked_frames. Returns how many frames there are. */
static unsigned keep_walk(const struct plain_walk *w)
{
	struct cuf_memos *memos = w->walker->memos;
	memos->count = w->count;
	memos->own_count = w->own_count;
	for (unsigned i = 0; i < w->own_count; i++)
		memos->own[i] = w->own[i];
	memos->start = w->start;
	return w->count - w->own_count;
}

void cuf_walked_frames(struct cuf_walker *walker, struct cuf_walked *walked)
{
	if (!walked->is_written)
		copy_frames(walker->memos, walked->frames);
	walked->is_written = true;
}

/* What plain rules do not follow, from where they stopped. */
static __attribute__((noinline)) READS_STACKS void walk_on(struct plain_walk *w, struct cuf_walked *walked)
{
	bool has_fp = w->fp_at - w->start < w->walker->stack_high - 7 - w->start;
	uintptr_t fp = has_fp ? ((const struct word *)w->fp_at)->value : 0;
	keep_walk(w);
	walked->is_written = true;
	walked->depth = cuf_walk_on(w->walker, w->ip, w->sp, fp, walked->frames, copy_frames(w->walker->memos, walked->frames), w->max, &walked->stop);
	walked->hash = 0;
	for (unsigned i = 0; i < walked->depth; i++)
		walked->hash = cuf_frames_hash_step(walked->hash, walked->frames[i]);
}

/* Not recognised by where it began alone. */
static __attribute__((noinline)) uint32_t walk_and_remember(
	struct plain_walk *w, struct cuf_memo **last, struct cuf_walked *walked)
{
	struct cuf_memo *place = NULL, *memo;
	enum plain_end end;
	if (!cuf_walker_on_own_stack(w->walker, w->sp)) {
		walk_on(w, walked);
		return 0;
	}
	w->walker->has_memos = true;
	end = walk_plain(w, w->max < KEY_FRAMES ? w->max : KEY_FRAMES);
	memo = w->count ? find_memo(w->walker->memos, w, &place) : NULL;
	if (memo) {
		*last = memo;
		return memo->id;
	}
	if (end == PLAIN_COUNT)
		end = walk_plain(w, w->max);
	if (end == PLAIN_OTHER || !w->count) {
		walk_on(w, walked);
		return 0;
	}
	if (end == PLAIN_END && w->ip) { /* the outermost frame is one, too */
		w->ips[w->count++] = w->ip;
		w->hash = cuf_frames_hash_step(w->hash, w->ip);
	}
	cuf_stack_expect(w->hash); /* remembering takes about as long as a cold load */
	if (remember(place, w, end)) {
		walked->id = &place->id;
		*last = place;
	}
	walked->hash = w->hash;
	walked->depth = keep_walk(w);
	walked->stop = end == PLAIN_END ? CUF_STOP_END : CUF_STOP_DEPTH;
	return 0;
}

READS_STACKS uint32_t cuf_walk_cached(
	struct cuf_walker *walker, uint64_t generation, const void *frame, unsigned max, struct cuf_walked *walked)
{
	const struct word *start = frame;
	uintptr_t ip = start[1].value;
	struct cuf_memo **last;
	struct plain_walk w;
	walked->is_written = false;
	if (__builtin_expect(!walker->rules || walker->generation != generation, 0)) {
		walked->depth = 0;
		if (!walker->rules)
			return 0;
		cuf_walker_renew(walker, generation);
	}
	last = &walker->memos->last[(ip ^ ip >> 8 ^ (uintptr_t)start >> 4) % CUF_MEMO_LAST];
	if (*last && is_same(*last, walker->memos->epoch, ip, (uintptr_t)start, max, walked->beside))
		return (*last)->id;
	w.walker = walker;
	w.ip = ip;
	w.start = w.fp_at = (uintptr_t)start;
	w.sp = (uintptr_t)(start + 2);
	w.max = max;
	w.beside = walked->beside;
	w.high = w.start + UINT16_MAX * 8u < walker->stack_high ? w.start + UINT16_MAX * 8u : walker->stack_high;
	w.hash = w.odd = 0;
	w.count = w.fp_words = w.own_count = 0;
	w.ips = walker->memos->ips;
	w.at = walker->memos->at;
	w.fp_word_at = w.at + CUF_WALK_FRAMES_MAX + CUF_WALK_OWN;
	walked->id = &walker->no_id;
	return walk_and_remember(&w, last, walked);
}
#endif
