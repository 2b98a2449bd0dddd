/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A treap: a search tree by address that is a heap by random weights, so it stays flat without any
 * balancing. Published nodes never change. A change copies the nodes on its path, links the copies
 * and exchanges the root, which also counts the changes. The nodes that it replaced are then used
 * again.
 *
 * A thread that still walks an older tree may meet such a node and read nonsense. It cannot leave
 * the pool of nodes, its steps are bounded, and its exchange fails, because the root has changed.
 *
 * A spin lock has to be given up when its holder was interrupted, and then a map stays in the table
 * after its munmap. Blocking signals around a lock costs a tenth of a call of mmap.
 */
#include "interpose/hooks/malloc/map_table.h"

#include <sys/mman.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/sys.h"
#include "interpose/record/recorder.h"
#include "interpose/platform/laws.h"

enum {
	SLAB_NODES = 1 << 13,
	SLABS = CUF_MAPS_MAX / SLAB_NODES,
	/* stay free: a change needs nodes, also one that removes a map */
	SPARE_NODES = 1 << 12,
	STOCK_MAX = 16,
	/* of a path; some 60 among a million maps */
	DEPTH_MAX = 160,
	STEPS_MAX = 4 * DEPTH_MAX
};

/* 0 is no node. */
struct node {
	struct cuf_map map;
	uint64_t change;         /* the attempt that made it */
	uint32_t left, right;
	uint32_t weight;         /* no node is heavier than the one above it */
	uint32_t next_free;
};

static struct node first_slab[SLAB_NODES];
static struct node *slabs[SLABS] = { first_slab };
static uint32_t capacity = SLAB_NODES;
static uint32_t ever_used = 1;  /* nodes from here on were never used */
static uint64_t free_nodes;     /* count of exchanges << 32 | first node */
static uint64_t root;           /* count of changes << 32 | node */
static uint64_t last_change, map_count;
static struct cuf_map_sums live;

/* A forked child's recording starts without its parent's maps. */
static void forget_maps(void)
{
	root = free_nodes = map_count = 0;
	ever_used = 1;
	live = (struct cuf_map_sums){ 0 };
}
CUF_AT_FORK_CHILD(forget_maps);

/* Another thread may write to what is read. Then nothing comes of it. */
#define GET(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define SET(place, value) __atomic_store_n(&(place), value, __ATOMIC_RELAXED)

/* ---- nodes ---- */

static inline struct node *at(uint32_t node)
{
	return &GET(slabs[node / SLAB_NODES % SLABS])[node % SLAB_NODES];
}

static void copy_map(struct cuf_map *to, const struct cuf_map *from)
{
	SET(to->start, GET(from->start));
	SET(to->end, GET(from->end));
	SET(to->stack, GET(from->stack));
	SET(to->block, GET(from->block));
}

static bool make_slab(uint32_t slab)
{
	struct node *none = NULL, *made;
	long result;
	if (GET(slabs[slab]))
		return true;
	result = cuf_sys_mmap(NULL, SLAB_NODES * sizeof *made, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (cuf_sys_failed(result))
		return false;
	made = (struct node *)result;
	if (!__atomic_compare_exchange_n(&slabs[slab], &none, made, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		cuf_sys_munmap(made, SLAB_NODES * sizeof *made);
	return true;
}

/* True when one more map may stay in the table. */
static bool has_room(void)
{
	uint32_t nodes = __atomic_load_n(&capacity, __ATOMIC_ACQUIRE);
	while (GET(map_count) + SPARE_NODES >= nodes) {
		if (nodes == CUF_MAPS_MAX || !make_slab(nodes / SLAB_NODES))
			return false;
		if (__atomic_compare_exchange_n(&capacity, &nodes, nodes + SLAB_NODES, false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			nodes += SLAB_NODES;
	}
	return true;
}

/* One that was never used; 0: there is none. */
static uint32_t fresh_node(void)
{
	uint32_t node = GET(ever_used);
	do {
		if (node >= __atomic_load_n(&capacity, __ATOMIC_ACQUIRE))
			return 0;
	} while (!__atomic_compare_exchange_n(&ever_used, &node, node + 1, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	SET(at(node)->next_free, 0);
	return node;
}

/* Chains are linked by next_free, and end with 0. */
struct chain {
	uint32_t first, last;
};

static inline void put(struct chain *chain, uint32_t node)
{
	SET(at(node)->next_free, chain->first);
	if (!chain->first)
		chain->last = node;
	chain->first = node;
}

/* At most STOCK_MAX nodes, for one exchange; none: there are none. */
static struct chain take_nodes(void)
{
	uint64_t head = __atomic_load_n(&free_nodes, __ATOMIC_ACQUIRE), after;
	uint32_t last, next;
	do {
		last = (uint32_t)head;
		if (!last) {
			last = fresh_node();
			return (struct chain){ last, last };
		}
		for (unsigned i = 1; i < STOCK_MAX && (next = GET(at(last)->next_free)); i++)
			last = next;
		after = ((head >> 32) + 1) << 32 | GET(at(last)->next_free);
	} while (!__atomic_compare_exchange_n(&free_nodes, &head, after, true, __ATOMIC_ACQUIRE,
					      __ATOMIC_ACQUIRE));
	SET(at(last)->next_free, 0);
	return (struct chain){ (uint32_t)head, last };
}

static void free_chain(struct chain chain)
{
	uint64_t head = GET(free_nodes);
	if (!chain.first)
		return;
	do
		SET(at(chain.last)->next_free, (uint32_t)head);
	while (!__atomic_compare_exchange_n(&free_nodes, &head,
					    ((head >> 32) + 1) << 32 | chain.first, true,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* ---- a change ---- */

/* One attempt of a change, on the caller's stack until it is published or given up. */
struct change {
	uint64_t before;         /* the root that it began with */
	uint64_t number;
	uint32_t root;
	struct chain made;       /* nodes of its own */
	struct chain stock;      /* nodes to spare */
	unsigned steps;
	bool is_lost;            /* it met nonsense, or there are no nodes */
	unsigned replaced_count;
	uint32_t replaced[DEPTH_MAX]; /* published nodes that are not needed after it */
};

static void change_begin(struct change *change)
{
	change->before = __atomic_load_n(&root, __ATOMIC_ACQUIRE);
	change->number = __atomic_add_fetch(&last_change, 1, __ATOMIC_RELAXED);
	change->root = (uint32_t)change->before;
	change->made = change->stock = (struct chain){ 0, 0 };
	change->steps = change->replaced_count = 0;
	change->is_lost = false;
}

/* 0: none, and the change is lost. */
static uint32_t make_node(struct change *change)
{
	uint32_t node;
	if (!change->stock.first)
		change->stock = take_nodes();
	node = change->stock.first;
	if (!node) {
		change->is_lost = true;
		return 0;
	}
	change->stock.first = GET(at(node)->next_free);
	put(&change->made, node);
	SET(at(node)->change, change->number);
	return node;
}

/* The node that the change may write to: its own, or a copy. 0: the change is lost. */
static uint32_t own(struct change *change, uint32_t node)
{
	const struct node *from = at(node);
	uint32_t made;
	if (change->is_lost || ++change->steps > STEPS_MAX || change->replaced_count == DEPTH_MAX) {
		change->is_lost = true;
		return 0;
	}
	if (GET(from->change) == change->number)
		return node;
	made = make_node(change);
	if (made) {
		copy_map(&at(made)->map, &from->map);
		SET(at(made)->left, GET(from->left));
		SET(at(made)->right, GET(from->right));
		SET(at(made)->weight, GET(from->weight));
		change->replaced[change->replaced_count++] = node;
	}
	return made;
}

/* True while nobody has changed the table since. */
static bool is_present(const struct change *change)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return GET(root) == change->before;
}

/* Exchanges the root. false: undone. */
static bool change_end(struct change *change)
{
	uint64_t after = ((change->before >> 32) + 1) << 32 | change->root, before = change->before;
	if (change->is_lost || !__atomic_compare_exchange_n(&root, &before, after, false,
							    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		free_chain(change->stock);
		free_chain(change->made);
		return false;
	}
	for (unsigned i = 0; i < change->replaced_count; i++)
		put(&change->stock, change->replaced[i]);
	free_chain(change->stock);
	return true;
}

/* ---- the tree ---- */

static uint32_t random_weight(uint64_t number, uint32_t node)
{
	uint64_t mixed = (number ^ (uint64_t)node << 40) * 0x9E3779B97F4A7C15ull;
	mixed ^= mixed >> 29;
	return (uint32_t)(mixed * 0xBF58476D1CE4E5B9ull >> 32);
}

/* The subtree below is divided: what is before the node's map becomes its left side. */
static void divide(struct change *change, uint32_t node, uint32_t below)
{
	uint32_t *left = &at(node)->left, *right = &at(node)->right;
	uint64_t start = at(node)->map.start;
	while (below && (below = own(change, below))) {
		bool is_left = GET(at(below)->map.start) < start;
		uint32_t **side = is_left ? &left : &right;
		SET(**side, below);
		*side = is_left ? &at(below)->right : &at(below)->left;
		below = GET(**side);
	}
	SET(*left, 0);
	SET(*right, 0);
}

static void insert(struct change *change, struct cuf_map map)
{
	uint32_t added = make_node(change), *link = &change->root, node;
	uint32_t weight = random_weight(change->number, added);
	if (!added)
		return;
	while ((node = GET(*link)) && GET(at(node)->weight) >= weight) {
		node = own(change, node);
		if (!node)
			return;
		SET(*link, node);
		link = map.start < GET(at(node)->map.start) ? &at(node)->left : &at(node)->right;
	}
	copy_map(&at(added)->map, &map);
	SET(at(added)->weight, weight);
	SET(*link, added);
	divide(change, added, node);
}

/* The two sides of a node are joined in its place. */
static void join(struct change *change, uint32_t *link, uint32_t left, uint32_t right)
{
	while (left && right) {
		bool is_left = GET(at(left)->weight) >= GET(at(right)->weight);
		uint32_t node = own(change, is_left ? left : right);
		if (!node)
			return;
		SET(*link, node);
		link = is_left ? &at(node)->right : &at(node)->left;
		*(is_left ? &left : &right) = GET(*link);
	}
	SET(*link, left ? left : right);
}

/* A map that is in the tree. */
static void take_out(struct change *change, uint64_t start)
{
	uint32_t *link = &change->root, node;
	while ((node = GET(*link)) && GET(at(node)->map.start) != start) {
		node = own(change, node);
		if (!node)
			return;
		SET(*link, node);
		link = start < GET(at(node)->map.start) ? &at(node)->left : &at(node)->right;
	}
	if (!node || change->replaced_count == DEPTH_MAX) {
		change->is_lost = true;
		return;
	}
	change->replaced[change->replaced_count++] = node;
	join(change, link, GET(at(node)->left), GET(at(node)->right));
}

/* The first map that ends behind addr, where the table is present. false: none. */
static bool find_behind(const struct change *change, uint64_t addr, struct cuf_map *map)
{
	uint32_t node = change->root, found = 0;
	for (unsigned step = 0; node && step < DEPTH_MAX; step++) {
		bool is_behind = GET(at(node)->map.end) > addr;
		if (is_behind)
			found = node;
		node = is_behind ? GET(at(node)->left) : GET(at(node)->right);
	}
	if (found)
		copy_map(map, &at(found)->map);
	return found;
}

/* ---- the interface ---- */

static void count(struct cuf_map map, int by)
{
	uint64_t bytes = cuf_map_bytes(map);
	__atomic_fetch_add(&map_count, (uint64_t)(int64_t)by, __ATOMIC_RELAXED);
	__atomic_fetch_add(&live.count[cuf_map_kind(map)], (uint64_t)(int64_t)by, __ATOMIC_RELAXED);
	__atomic_fetch_add(&live.bytes[cuf_map_kind(map)], by < 0 ? -bytes : bytes,
			   __ATOMIC_RELAXED);
}

bool cuf_map_add(struct cuf_map map)
{
	while (has_room()) {
		struct change change;
		change_begin(&change);
		insert(&change, map);
		if (change_end(&change)) {
			count(map, 1);
			return true;
		}
		if (change.is_lost && is_present(&change))
			break;
	}
	cuf_note_dropped(CUF_LOST_HOST_LEDGER);
	return false;
}

bool cuf_map_find(uint64_t addr, struct cuf_map *map)
{
	struct change look;
	bool is_found;
	do {
		look.before = __atomic_load_n(&root, __ATOMIC_ACQUIRE);
		look.root = (uint32_t)look.before;
		is_found = find_behind(&look, addr, map);
	} while (!is_present(&look));
	return is_found;
}

/* What is left of a map on one side of what was cut out. Returns how many pieces that makes. */
static unsigned add_piece(struct cuf_map *pieces, struct cuf_map piece, uint64_t bytes_min)
{
	bool is_small = cuf_map_bytes(piece) < bytes_min;
	if (piece.start >= piece.end)
		return 0;
	if (is_small && cuf_map_kind(piece) == CUF_MAP_ANONYMOUS)
		piece = cuf_map_make(piece.start, piece.end, CUF_MAP_SMALL);
	else if (is_small && cuf_map_is_memory(piece))
		return 0;
	*pieces = piece;
	return 1;
}

static unsigned pieces_of(struct cuf_map map, uint64_t start, uint64_t end, uint64_t bytes_min,
			  struct cuf_map *pieces)
{
	struct cuf_map before = map, after = map;
	unsigned found;
	before.end = start;
	after.start = end;
	found = add_piece(pieces, before, bytes_min);
	found += add_piece(pieces + found, after, bytes_min);
	if (found == 2 && !has_room()) {
		cuf_note_dropped(CUF_LOST_HOST_LEDGER);
		found = 1;
	}
	return found;
}

bool cuf_map_cut(uint64_t start, uint64_t end, uint64_t piece_bytes_min, struct cuf_map *taken)
{
	struct cuf_map pieces[2];
	unsigned pieces_count;
	struct change change;
	do {
		change_begin(&change);
		if (!find_behind(&change, start, taken) || taken->start >= end) {
			if (is_present(&change))
				return false;
			continue;
		}
		take_out(&change, taken->start);
		pieces_count = pieces_of(*taken, start, end, piece_bytes_min, pieces);
		for (unsigned i = 0; i < pieces_count; i++)
			insert(&change, pieces[i]);
		if (change_end(&change)) {
			count(*taken, -1);
			for (unsigned i = 0; i < pieces_count; i++)
				count(pieces[i], 1);
			return true;
		}
	} while (!change.is_lost || !is_present(&change));
	cuf_note_dropped(CUF_LOST_HOST_LEDGER);
	return false;
}

void cuf_map_sum(struct cuf_map_sums *sums)
{
	for (unsigned kind = 0; kind < CUF_MAP_KINDS; kind++) {
		sums->bytes[kind] = GET(live.bytes[kind]);
		sums->count[kind] = GET(live.count[kind]);
	}
}

uint64_t cuf_map_count(enum cuf_map_kind kind) { return GET(live.count[kind]); }
