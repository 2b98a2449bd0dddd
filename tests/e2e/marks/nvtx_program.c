/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks its work by every function of NVTX that names a range or a mark, compiled with NVTX's
 * header. Then it prints the truth (tests/victims/README.md) on stdout. On stderr it prints what
 * the calls returned, which depends on the tool.
 */
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static nvtxDomainHandle_t engine;

static nvtxEventAttributes_t attributes(void)
{
	nvtxEventAttributes_t a = { 0 };
	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	return a;
}

static nvtxEventAttributes_t ascii(const char *text)
{
	nvtxEventAttributes_t a = attributes();
	a.messageType = NVTX_MESSAGE_TYPE_ASCII;
	a.message.ascii = text;
	return a;
}

static nvtxEventAttributes_t wide(const wchar_t *text)
{
	nvtxEventAttributes_t a = attributes();
	a.messageType = NVTX_MESSAGE_TYPE_UNICODE;
	a.message.unicode = text;
	return a;
}

static void *work_beside(void *argument)
{
	nvtxRangePushA("worker");
	nvtxRangePop();
	nvtxRangeEnd(*(nvtxRangeId_t *)argument); /* begun in another thread */
	return argument;
}

/* Pushed and popped: the stacks of two domains end in any order. */
static void nest(void)
{
	nvtxStringHandle_t name = nvtxDomainRegisterStringA(engine, "registered"),
			   wide_name = nvtxDomainRegisterStringW(engine, L"breit");
	nvtxEventAttributes_t registered = attributes(), also = ascii("ex"),
			      unicode = wide(L"wide");
	char passing[32] = "passing";
	int depths[8];
	registered.messageType = also.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	registered.message.registered = name;
	also.message.registered = wide_name;
	depths[0] = nvtxRangePushA("outer");
	depths[1] = nvtxRangePushA(passing);
	memset(passing, 'x', sizeof passing - 1); /* the text is the caller's again */
	depths[2] = nvtxDomainRangePushEx(engine, &registered);
	depths[3] = nvtxDomainRangePushEx(engine, &also);
	depths[4] = nvtxRangePushEx(&unicode);
	fprintf(stderr, "depths %d %d %d %d %d;", depths[0], depths[1], depths[2], depths[3],
	        depths[4]);
	depths[0] = nvtxRangePop();
	depths[1] = nvtxRangePop();
	depths[2] = nvtxDomainRangePop(engine);
	depths[3] = nvtxRangePop();
	depths[4] = nvtxDomainRangePop(engine);
	depths[5] = nvtxRangePop(); /* one too many */
	fprintf(stderr, " %d %d %d %d %d %d\n", depths[0], depths[1], depths[2], depths[3],
	        depths[4], depths[5]);
}

static void range_across_threads(void)
{
	nvtxEventAttributes_t a = ascii("range of a domain");
	nvtxRangeId_t across = nvtxRangeStartW(L"across"), plain = nvtxRangeStartA("plain"),
		      in_domain = nvtxDomainRangeStartEx(engine, &a);
	pthread_t thread;
	pthread_create(&thread, NULL, work_beside, &across);
	pthread_join(thread, NULL);
	nvtxDomainRangeEnd(engine, in_domain);
	nvtxRangeEnd(plain);
	fprintf(stderr, "ids %s\n",
	        across != plain && plain != in_domain ? "differ" : "are the same");
}

int main(int argc, char **argv)
{
	long flood = argc > 1 ? atol(argv[1]) : 0, strings = argc > 2 ? atol(argv[2]) : 0;
	nvtxEventAttributes_t mark = ascii("mark of a domain"), plain = ascii("plain mark");
	engine = nvtxDomainCreateA("engine");
	nest();
	range_across_threads();
	nvtxMarkA("moment");
	nvtxMarkW(L"m\u00f6ment");
	nvtxMarkEx(&plain);
	nvtxDomainMarkEx(engine, &mark);
	for (long i = 0; i < flood; i++) {
		nvtxRangePushA("flood");
		nvtxRangePop();
	}
	for (long i = 0; i < strings; i++)
		nvtxDomainRegisterStringA(engine, "one of many");
	nvtxDomainDestroy(nvtxDomainCreateW(L"short"));
	nvtxDomainDestroy(engine);
	for (const char *const *name =
	             (const char *const[]){ "outer", "passing", "wide", "engine:_registered",
	                                    "engine:_breit", "worker", "across", "plain",
	                                    "engine:_range_of_a_domain", NULL };
	     *name; name++)
		printf("phase %s sort phase source nvtx count 1 open 0\n", *name);
	for (const char *const *name =
	             (const char *const[]){ "moment", "m\303\266ment", "plain_mark",
	                                    "engine:_mark_of_a_domain", NULL };
	     *name; name++)
		printf("phase %s sort mark source nvtx count 1 open 0\n", *name);
	printf("nested passing in outer\nend state exit 0\n");
	return 0;
}
